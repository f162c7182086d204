// Compiling with the real NVRTC, without a GPU: what the cache gets, and what goes wrong how.
#include <pthread.h>

#include <functional>
#include <thread>

#include "unit/cuda/nvrtc_fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

/// Needs more registers than its launch bounds leave it.
constexpr const char* kSpilling = R"(
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* p) {
    float v[128];
    #pragma unroll
    for (int i = 0; i < 128; ++i) v[i] = p[i * 7 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 128; ++i) p[i * threadIdx.x] = v[i] * v[(i * 5 + 3) % 128];
}
)";

/// Indexes an array with what is known only at run time; no registers are spilled.
constexpr const char* kLocal = R"(
extern "C" __global__ void indexing(int* p, int n) {
    int v[64];
    for (int i = 0; i < n; ++i) v[i & 63] = p[i];
    p[0] = v[n & 63];
}
)";

class CudaNvrtcOddPaths : public CudaNvrtc {
protected:
    CudaNvrtcOddPaths() : CudaNvrtc(kOddName) {}
};

TEST_F(CudaNvrtc, AnEntryHoldsWhatIsDocumented) {
    const auto path = compile(kNvrtcScale);
    EXPECT_EQ(names_in(path),
              (std::vector<std::string>{".committed", "kernel.cu", "kernel.cubin", "meta.json"}));
    EXPECT_EQ(slurp(path / "kernel.cu"), kNvrtcScale);
    EXPECT_EQ(cuda::cubin_arch(slurp(path / "kernel.cubin")), 90);
    const auto meta = json::parse(slurp(path / "meta.json"));
    const auto command = *meta.get<json::array_t>("command");
    EXPECT_EQ(command.at(0), json(library.path.string()));
    EXPECT_EQ(command.at(2), json("--gpu-architecture=sm_90a"));
    const auto* info = meta.find("compiler_info");
    EXPECT_EQ(info->get<std::string>("path"), library.path.string());
    EXPECT_TRUE(info->get<std::string>("version")->starts_with("NVRTC 1"));
    EXPECT_EQ(meta.find("compiler_options")->get<std::string>("compiler"), "nvrtc");
    EXPECT_EQ(logged(), "");
    EXPECT_EQ(names_in(temp / "cache" / "tmp"), std::vector<std::string>());
}

TEST_F(CudaNvrtc, ArchitecturesAndFlagsReachTheCode) {
    EXPECT_EQ(cuda::cubin_arch(slurp(compile(kNvrtcScale, {.arch = "80"}) / "kernel.cubin")), 80);
    const auto ptx = ptx_of("extern \"C\" __global__ void k(float* p) { *p = p[1] / p[2] * X; }\n",
                            {.fast_math = true, .extra_nvcc_flags = {"-DX=3.0f"}});
    EXPECT_CONTAINS(ptx, "div.approx.ftz.f32");
    EXPECT_CONTAINS(ptx, ".target sm_90a");
}

TEST_F(CudaNvrtc, TheKeyIsOfTheCompilerToo) {
    auto jit = make();
    const auto own = jit.cache_key(kNvrtcScale);
    EXPECT_NE(own, jit.cache_key(kNvrtcScale, {.with_line_info = true}));
    EXPECT_EQ(own, jit.cache_key(kNvrtcScale, {.dump_ptx = true}));
    EXPECT_EQ(own, make({temp / "include"}).cache_key(kNvrtcScale));
    EXPECT_EQ(own, jit.cache_key(kNvrtcScale, {.compiler = "nvrtc"}));
    try {
        CUDA::find_cuda_toolkit(Env("CUDATEST"));
    } catch (const ToolchainError& error) {
        GTEST_SKIP() << error.what();
    }
    const auto other = jit.cache_key(kNvrtcScale, {.compiler = "nvcc"});
    EXPECT_NE(own, other);
    // A kernel's compiler counts, the runtime's does not hide it.
    compiler.set("nvcc");
    auto second = make();
    const auto plain = second.cache_key(kNvrtcScale);
    EXPECT_NE(plain, own);
    EXPECT_NE(plain, second.cache_key(kNvrtcScale, {.compiler = "nvrtc"}));
    compiler.set("auto");
    EXPECT_EQ(make().cache_key(kNvrtcScale), plain);
    EXPECT_CONTAINS(
        message_of<ConfigError>([&] { second.cache_key(kNvrtcScale, {.compiler = "gcc"}); }),
        "CompilerOptions::compiler is 'gcc'");
}

TEST_F(CudaNvrtc, ErrorsCarryCommandLogAndSource) {
    try {
        compile("__global__ void f() { nonsense; }\n");
        FAIL();
    } catch (const CompileError& error) {
        EXPECT_CONTAINS(error.what(), "command failed with exit code 6 (NVRTC_ERROR_COMPILATION)");
        EXPECT_CONTAINS(error.what(), "kernel.cu(1): error: identifier \"nonsense\" is undefined");
        EXPECT_CONTAINS(error.command(), "--gpu-architecture=sm_90a");
        EXPECT_CONTAINS(error.log(), "nonsense");
        EXPECT_CONTAINS(slurp(error.source_path()), "nonsense");
        EXPECT_TRUE(error.key().starts_with("kernel."));
        EXPECT_CONTAINS(error.what(), error.source_path());
    }
}

TEST_F(CudaNvrtc, AHeaderThatNvrtcCannotHaveIsExplained) {
    const auto text = compile_failure("#include <iostream>\n__global__ void f() {}\n");
    EXPECT_CONTAINS(text, "cannot open source file \"iostream\"");
    EXPECT_CONTAINS(text, "__CUDACC_RTC__");
}

TEST_F(CudaNvrtc, FlagsThatItDoesNotTakeAreNamed) {
    const auto refused = [&](const std::string& flag) {
        return message_of<ConfigError>([&] { compile(kNvrtcScale, {.extra_nvcc_flags = {flag}}); });
    };
    EXPECT_CONTAINS(refused("--dryrun"), "'--dryrun' cannot be translated for NVRTC");
    EXPECT_CONTAINS(refused("-std=c++98"), "c++98");
    EXPECT_CONTAINS(message_of<ConfigError>([&] { compile(kNvrtcScale, {.arch = "1"}); }), "sm_1");
}

TEST_F(CudaNvrtc, OutputThatIsNoCubinIsAnError) {
    EXPECT_CONTAINS(compile_failure(kNvrtcScale, {.arch = std::nullopt,
                                                  .extra_nvcc_flags = {"-arch=compute_90"}}),
                    "did not produce a valid CUBIN");
}

TEST_F(CudaNvrtc, SpillsAndLocalMemoryAreErrorsWhenForbidden) {
    EXPECT_NO_THROW(compile(kSpilling));
    for (const std::vector<std::string>& extra : {std::vector<std::string>(), {"-w"}})
        EXPECT_CONTAINS(
            compile_failure(kSpilling, {.check_no_spills = true, .extra_nvcc_flags = extra}),
            "register spills in function 'spilling': ");
    EXPECT_NO_THROW(compile(kLocal, {.check_no_spills = true}));
    EXPECT_CONTAINS(compile_failure(kLocal, {.check_no_local_memory = true}),
                    "local memory usage in function 'indexing': 256 bytes");
    EXPECT_NO_THROW(compile(kNvrtcScale, {.check_no_spills = true, .check_no_local_memory = true}));
    EXPECT_EQ(logged(), "");
}

TEST_F(CudaNvrtc, TheLogIsKeptAndPrintedWhenVerbose) {
    const auto path = compile(kNvrtcScale, {.ptxas_verbose = true});
    EXPECT_CONTAINS(slurp(path / "kernel.log"), "Function properties for scale");
    EXPECT_CONTAINS(logged(), "Function properties for scale");
}

TEST_F(CudaNvrtc, TheLogIsThereEachTime) {
    // NVRTC has a cache, which would come without a log.
    for (const char* name : {"one", "two"}) {
        cache.set((temp / name).string());
        EXPECT_CONTAINS(slurp(compile(kNvrtcScale, {.ptxas_verbose = true}) / "kernel.log"),
                        "Function properties for scale");
    }
}

TEST_F(CudaNvrtc, CommandsArePrintedWhenAskedForAtThatTime) {
    auto jit = make();
    const ScopedEnv print("CUDATEST_JIT_PRINT_COMPILER_COMMAND", "1");
    jit.compile_without_load("kernel", kNvrtcScale);
    EXPECT_CONTAINS(logged(), "Running command: " + library.path.string());
}

TEST_F(CudaNvrtc, PtxAndSass) {
    make_script(temp / "toolkit" / "bin" / "cuobjdump",
                "#!/bin/sh\ntest \"$1 $2\" = '--dump-sass kernel.cubin' && test -s kernel.cubin && "
                "echo 'Function : scale'\n");
    const ScopedEnv path("PATH", (temp / "toolkit" / "bin").string() + ":/usr/bin:/bin");
    if (cuda::find_nvrtc(Env("CUDATEST")).cuobjdump != temp / "toolkit" / "bin" / "cuobjdump")
        GTEST_SKIP() << "this machine has cuobjdump";
    const auto entry = compile(kNvrtcScale, {.dump_ptx = true, .dump_sass = true});
    EXPECT_EQ(slurp(entry / "kernel.sass"), "Function : scale\n");
    EXPECT_CONTAINS(slurp(entry / "kernel.ptx"), ".visible .entry scale(");
    EXPECT_NE(slurp(entry / "kernel.ptx").back(), '\0');
}

TEST_F(CudaNvrtc, SassWithoutCuobjdumpSaysWhatIsMissing) {
    if (library.cuobjdump)
        GTEST_SKIP() << "this machine has cuobjdump";
    EXPECT_CONTAINS(message_of<ToolchainError>([&] { compile(kNvrtcScale, {.dump_sass = true}); }),
                    "cuobjdump");
    const ScopedEnv debug("CUDATEST_JIT_DEBUG", "1");
    EXPECT_TRUE(fs::exists(compile(kNvrtcScale) / "kernel.ptx"));
}

TEST_F(CudaNvrtc, LineInfoNamesThePublishedSource) {
    const auto path = compile(kNvrtcScale, {.with_line_info = true, .dump_ptx = true});
    const auto ptx = slurp(path / "kernel.ptx");
    EXPECT_CONTAINS(ptx, (path / "kernel.cu").string());
    EXPECT_EQ(ptx.find((temp / "cache" / "tmp").string()), std::string::npos);
    // The line of the multiplication.
    EXPECT_CONTAINS(ptx, ".loc\t1 5 ");
}

TEST_F(CudaNvrtc, AHookEditsTheCubin) {
    write(temp / "hook.py", "import sys\nopen(sys.argv[1], 'ab').write(b'edited')\n");
    EXPECT_TRUE(
        slurp(compile(kNvrtcScale, {.post_hook = "hook.py"}) / "kernel.cubin").ends_with("edited"));
}

TEST_F(CudaNvrtc, TheSameSourceGivesTheSameBytes) {
    const auto first = slurp(compile(kNvrtcScale) / "kernel.cubin");
    cache.set((temp / "another place").string());
    EXPECT_TRUE(slurp(compile(kNvrtcScale) / "kernel.cubin") == first);
}

TEST_F(CudaNvrtc, AThreadsStackMayBeSmall) {
    std::string error = "did not run";
    std::function<void()> task = [&] {
        try {
            // Each instantiation within the one before it: some megabytes.
            compile(
                "template <int N> struct Sum { static constexpr int f(int x) { return x + "
                "Sum<N - 1>::f(x); } };\n"
                "template <> struct Sum<0> { static constexpr int f(int x) { return x; } };\n"
                "extern \"C\" __global__ void k(int* p) { *p = Sum<190>::f(*p); }\n");
            error.clear();
        } catch (const std::exception& problem) {
            error = problem.what();
        }
    };
    const auto run = [](void* argument) -> void* {
        (*static_cast<std::function<void()>*>(argument))();
        return nullptr;
    };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &task), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    EXPECT_EQ(error, "");
}

TEST_F(CudaNvrtc, ThreadsCompileAtOnce) {
    auto jit = make();
    std::vector<fs::path> paths(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < paths.size(); ++i)
        threads.emplace_back([&, i] {
            paths[i] = jit.compile_without_load("kernel", kNvrtcScale,
                                                {.extra_nvcc_flags = {"-DN=" + std::to_string(i)}});
        });
    for (auto& thread : threads) thread.join();
    for (const auto& path : paths) EXPECT_TRUE(cuda::is_cubin(slurp(path / "kernel.cubin")));
    EXPECT_NE(paths[0], paths[1]);
}

TEST_F(CudaNvrtcOddPaths, EverythingWorks) {
    write(temp / "hook $(touch pwned).py",
          "import sys\nopen(sys.argv[1], 'ab').write(b'edited')\n");
    std::vector<fs::path> dirs;
    std::string source;
    for (const char* name :
         {"a,b", "c d", "e'f", "g\"h", "i$(touch pwned)", "j`k", "l\\m", "n;o=p"}) {
        const auto index = str::to_text(dirs.size());
        dirs.push_back(temp / name);
        write(dirs.back() / ("header" + index + ".h"), "#define VALUE" + index + " 1\n");
        source += "#include <header" + index + ".h>\n";
    }
    source += "extern \"C\" __global__ void k(int* p) { *p = VALUE0 + VALUE7 + sizeof(TEXT); }\n";
    const auto path =
        make(dirs).compile_without_load("kernel", source,
                                        {.with_line_info = true,
                                         .dump_ptx = true,
                                         .extra_nvcc_flags = {"-DTEXT=\"$HOME `x` 'y' \\\\\""},
                                         .post_hook = "hook $(touch pwned).py"});
    EXPECT_EQ(path.parent_path(), temp / "cache" / "cache");
    EXPECT_EQ(slurp(path / "kernel.cu"), source);
    EXPECT_TRUE(slurp(path / "kernel.cubin").ends_with("edited"));
    // "$HOME `x` 'y' \" and the end.
    EXPECT_CONTAINS(slurp(path / "kernel.ptx"), ", 18;");
}

}  // namespace
