// Options, names of architectures, and what is read out of CUBINs and ptxas logs.
#include <deep_jit/backend/cuda/backend.hpp>

#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using cuda::CompilerOptions;
using cuda::LaunchOptions;
using Flags = std::vector<std::string>;

CompilerOptions defaults() {
    return CompilerOptions::default_options(Env("CUDATEST"), cuda::Device());
}

TEST(CudaOptions, DefaultFlagsInTheDocumentedOrder) {
    auto options = defaults();
    EXPECT_FALSE(options.arch.has_value());
    options.arch = "90a";
    EXPECT_EQ(options.get_flags(),
              (Flags{"--gpu-architecture=sm_90a", "-O3", "--compiler-options=-O3",
                     "--ptxas-options=--register-usage-level=10", "-std=c++20",
                     "--compiler-options=-fPIC", "--compiler-options=-fconcepts",
                     "--expt-relaxed-constexpr", "--expt-extended-lambda"}));
}

TEST(CudaOptions, EveryFlagInTheDocumentedOrder) {
    const auto options = defaults().override_with({
        .optimize_level = "2",
        .fast_math = true,
        .ptxas_verbose = true,
        .ptxas_register_usage_level = 5,
        .check_no_spills = true,
        .check_no_local_memory = true,
        .with_line_info = true,
        .dump_ptx = true,
        .dump_sass = true,
        .arch = "100f",
        .nvcc_flags = Flags{"-std=c++17"},
        .extra_nvcc_flags = {"-DA=1"},
        .post_hook = "hook.py",
    });
    EXPECT_EQ(
        options.get_flags(),
        (Flags{"--gpu-architecture=sm_100f", "-O2", "--compiler-options=-O2", "--use_fast_math",
               "--ptxas-options=--verbose", "--ptxas-options=--register-usage-level=5",
               "--ptxas-options=--warn-on-spills", "--ptxas-options=--warn-on-local-memory-usage",
               "--generate-line-info", "-std=c++17", "-DA=1"}));
}

TEST(CudaOptions, SetFieldsReplaceAndExtraFlagsAppend) {
    auto base = defaults();
    base.extra_nvcc_flags = {"-DA"};
    base.fast_math = true;
    const auto merged =
        base.override_with({.fast_math = false, .extra_nvcc_flags = {"-DB"}, .post_hook = "h.py"});
    EXPECT_EQ(merged.extra_nvcc_flags, (Flags{"-DA", "-DB"}));
    EXPECT_EQ(merged.fast_math, false);
    EXPECT_EQ(merged.post_hook, "h.py");
    EXPECT_EQ(merged.optimize_level, "3");
    EXPECT_TRUE(same_options(base.override_with({}), base));
}

TEST(CudaOptions, JsonNamesEveryField) {
    EXPECT_EQ(
        defaults().override_with({.arch = "90a", .extra_nvcc_flags = {"-DX"}}).to_json().dump(),
        R"({"optimize_level": "3", "use_fast_math": false, "ptxas_verbose": false, )"
        R"("ptxas_register_usage_level": 10, "check_no_spills": false, )"
        R"("check_no_local_memory": false, "with_line_info": false, "dump_ptx": false, )"
        R"("dump_sass": false, "arch": "90a", "nvcc_flags": ["-std=c++20", )"
        R"("--compiler-options=-fPIC", "--compiler-options=-fconcepts", )"
        R"("--expt-relaxed-constexpr", "--expt-extended-lambda"], "extra_nvcc_flags": ["-DX"], )"
        R"("post_hook": null, "compiler": "nvcc"})");
}

TEST(CudaOptions, EnvironmentSetsDefaults) {
    const ScopedEnv standard("CUDATEST_JIT_CPP_STANDARD", "17");
    const ScopedEnv spills("CUDATEST_JIT_CHECK_NO_SPILLS", "1");
    const ScopedEnv local("DJ_JIT_CHECK_NO_LOCAL_MEMORY", "yes");
    const ScopedEnv ptx("CUDATEST_JIT_DUMP_PTX", "true");
    const ScopedEnv arch("CUDATEST_JIT_ARCH", "sm_100f");
    const auto options = defaults();
    EXPECT_EQ(options.nvcc_flags->front(), "-std=c++17");
    EXPECT_EQ(options.check_no_spills, true);
    EXPECT_EQ(options.check_no_local_memory, true);
    EXPECT_EQ(options.dump_ptx, true);
    EXPECT_EQ(options.dump_sass, false);
    EXPECT_EQ(options.arch, "100f");
}

TEST(CudaOptions, CompilerOfTheEnvironmentIsChecked) {
    ScopedEnv compiler("CUDATEST_JIT_COMPILER"), all("DJ_JIT_COMPILER");
    EXPECT_EQ(defaults().compiler, "nvcc");
    all.set("auto");
    EXPECT_EQ(defaults().compiler, "auto");
    compiler.set(" NVRTC ");
    EXPECT_EQ(defaults().compiler, "nvrtc");
    compiler.set("");
    EXPECT_EQ(defaults().compiler, "nvcc");
    compiler.set("gcc");
    EXPECT_CONTAINS(message_of<ConfigError>([] { defaults(); }),
                    "CUDATEST_JIT_COMPILER has an invalid value 'gcc'");
}

TEST(CudaOptions, DebugTurnsDiagnosticsOnAndSingleOnesOffAgain) {
    const ScopedEnv debug("CUDATEST_JIT_DEBUG", "1");
    auto options = defaults();
    EXPECT_EQ(options.ptxas_verbose, true);
    EXPECT_EQ(options.with_line_info, true);
    EXPECT_EQ(options.dump_ptx, true);
    EXPECT_EQ(options.dump_sass, true);
    EXPECT_EQ(options.check_no_spills, false);
    const ScopedEnv sass("CUDATEST_JIT_DUMP_SASS", "0");
    options = defaults();
    EXPECT_EQ(options.dump_ptx, true);
    EXPECT_EQ(options.dump_sass, false);
}

TEST(CudaOptions, DumpAsmIsPtxAndSass) {
    const ScopedEnv dump("CUDATEST_JIT_DUMP_ASM", "1");
    EXPECT_EQ(defaults().dump_ptx, true);
    EXPECT_EQ(defaults().dump_sass, true);
}

TEST(CudaOptions, ArchOfTheEnvironmentIsChecked) {
    for (const char* bad : {"hopper", "90b", "a90", "90 a", "sm_", "compute_90"}) {
        const ScopedEnv arch("CUDATEST_JIT_ARCH", bad);
        const auto text = message_of<ConfigError>([] { defaults(); });
        EXPECT_CONTAINS(text, "CUDATEST_JIT_ARCH has an invalid value");
        EXPECT_CONTAINS(text, bad);
    }
    const ScopedEnv empty("CUDATEST_JIT_ARCH", "");
    EXPECT_FALSE(defaults().arch.has_value());
}

TEST(CudaOptions, LaunchDefaultsAndMerging) {
    const auto base = LaunchOptions::default_options(Env("CUDATEST"));
    EXPECT_FALSE(base.stream || base.grid_dim || base.block_dim);
    EXPECT_EQ(base.num_smem_bytes, 0);
    EXPECT_EQ(base.cluster_dim->x, 1U);
    EXPECT_EQ(base.cooperative, false);
    EXPECT_EQ(base.enable_pdl, false);
    EXPECT_EQ(base.nonportable_cluster_size_allowed, false);
    const auto merged = base.override_with({.stream = nullptr, .grid_dim = dim3(3, 1, 1)});
    EXPECT_TRUE(merged.stream.has_value());
    EXPECT_EQ(merged.grid_dim->x, 3U);
    EXPECT_EQ(merged.num_smem_bytes, 0);
}

TEST(CudaArch, Names) {
    EXPECT_EQ(cuda::arch_name(8, 0), "80");
    EXPECT_EQ(cuda::arch_name(8, 9, false), "89");
    EXPECT_EQ(cuda::arch_name(9, 0), "90a");
    EXPECT_EQ(cuda::arch_name(9, 0, false), "90a");
    EXPECT_EQ(cuda::arch_name(10, 0), "100f");
    EXPECT_EQ(cuda::arch_name(10, 3, false), "103a");
    EXPECT_EQ(cuda::arch_name(12, 1), "121f");
    EXPECT_EQ(cuda::arch_name(10, 3, true, true), "103");
    EXPECT_EQ(cuda::arch_name(9, 0, false, true), "90");
}

TEST(CudaCubin, OnlyCompleteCudaElfFilesAreCubins) {
    EXPECT_FALSE(cuda::is_cubin(""));
    EXPECT_FALSE(cuda::is_cubin("not ELF"));
    EXPECT_FALSE(cuda::is_cubin(slurp("/proc/self/exe")));
    EXPECT_EQ(cuda::cubin_arch("not ELF"), 0);

    // A seed of the fuzz tests.
    const auto cubin =
        slurp(fs::path(DEEP_JIT_REPO_ROOT) / "fuzz" / "corpus" / "elf" / "k.sm_90a.cubin");
    EXPECT_EQ(cuda::cubin_arch(cubin), 90);
    for (const auto cut : {std::size_t{1}, cubin.size() / 2, cubin.size() - 10})
        EXPECT_FALSE(cuda::is_cubin(cubin.substr(0, cubin.size() - cut))) << cut;
    // Tables with rows of another size are not read as if they had the usual one.
    for (const auto field :
         {offsetof(Elf64_Ehdr, e_shentsize), offsetof(Elf64_Ehdr, e_phentsize)}) {
        auto changed = cubin;
        changed[field] = static_cast<char>(changed[field] + 8);
        EXPECT_FALSE(cuda::is_cubin(changed)) << field;
    }
}

TEST(CudaPtxasLog, WarningsAndVerboseLinesSayTheSame) {
    const auto warned = cuda::parse_ptxas_log(
        "ptxas warning : Local memory used for function 'f', size of stack frame: 1056 bytes\n"
        "ptxas warning : Registers are spilled to local memory in function 'f', 1336 bytes spill "
        "stores, 1376 bytes spill loads\n");
    ASSERT_EQ(warned.count("f"), 1U);
    EXPECT_EQ(warned.at("f").spill_stores, 1336U);
    EXPECT_EQ(warned.at("f").spill_loads, 1376U);
    EXPECT_EQ(warned.at("f").stack, 1056U);

    const auto verbose = cuda::parse_ptxas_log(
        "ptxas info    : Compiling entry function '_Z1gv' for 'sm_90a'\n"
        "ptxas info    : Function properties for _Z1gv\n"
        "    128 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Function properties for h\n"
        "    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
        "ptxas info    : Used 32 registers, used 0 barriers, 128 bytes cumulative stack size\n");
    EXPECT_EQ(verbose.at("_Z1gv").stack, 128U);
    EXPECT_FALSE(verbose.at("_Z1gv").spills());
    EXPECT_EQ(verbose.at("h").spill_stores, 8U);
    EXPECT_EQ(verbose.at("h").spill_loads, 4U);
}

TEST(CudaNvccCommand, DefinitionsKeepWhatAShellWouldReplace) {
    Flags environment;
    EXPECT_EQ(cuda::detail::protect_definitions(
                  {"-O3", "-DX=\"a$b\"", "-D", "Y=`ls`", "-I/a$b", "-DZ='1'"}, environment),
              (Flags{"-O3", "-DX=\"a${DJ_NVCC_DOLLAR}b\"", "-D",
                     "Y=${DJ_NVCC_BACKQUOTE}ls${DJ_NVCC_BACKQUOTE}", "-I/a$b", "-DZ='1'"}));
    EXPECT_EQ(environment.size(), 2U);
    environment.clear();
    EXPECT_EQ(cuda::detail::protect_definitions({"-DX=1", "$"}, environment),
              (Flags{"-DX=1", "$"}));
    EXPECT_TRUE(environment.empty());
}

TEST(CudaNvccVersion, IsReadFromTheText) {
    const auto check = [](const std::string& text) { cuda::check_nvcc_version("/x/nvcc", text); };
    EXPECT_NO_THROW(check("Cuda compilation tools, release 12.9, V12.9.41\n"));
    EXPECT_NO_THROW(check("Cuda compilation tools, release 13.0, V13.0.88\n"));
    EXPECT_NO_THROW(check("Cuda compilation tools, release 12.10, V12.10.1\n"));
    for (const char* old : {"12.8", "11.9", "9.2"}) {
        const auto text = message_of<ToolchainError>(
            [&] { check(std::string("Cuda compilation tools, release ") + old + ", V1\n"); });
        EXPECT_CONTAINS(text, "NVCC version must be at least 12.9");
        EXPECT_CONTAINS(text, old);
        EXPECT_CONTAINS(text, "/x/nvcc");
    }
    EXPECT_CONTAINS(message_of<ToolchainError>([&] { check("hello"); }), "hello");
    // Numbers of any length are numbers.
    EXPECT_NO_THROW(check("release 99999999999999999999.0"));
    EXPECT_NO_THROW(check("release 13.99999999999999999999"));
    EXPECT_NO_THROW(check("release 4294967296.0"));
    EXPECT_THROW(check("release 12.00000000000000000008"), ToolchainError);
}

}  // namespace
