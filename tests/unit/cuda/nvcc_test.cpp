// Compiling with the real NVCC, without a GPU: what the cache gets, and what goes wrong how.
#include <deep_jit/backend/cuda/backend.hpp>

#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

constexpr const char* kScale = R"(
extern "C" __global__ void scale(float* output, const float* input, int count) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * 2.0f;
}
)";

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

class CudaNvcc : public testing::Test {
protected:
    explicit CudaNvcc(std::string_view name = "plain") : temp(name) {}

    void SetUp() override {
        try {
            nvcc = CUDA::find_cuda_toolkit(Env("CUDATEST")).nvcc;
        } catch (const ToolchainError& error) {
            GTEST_SKIP() << error.what();
        }
        log.set((temp / "log").string());
        cache.set((temp / "cache").string());
    }

    Runtime<CUDA> make(std::vector<fs::path> include_dirs = {}) const {
        return Runtime<CUDA>(Config(temp.path(), "CUDATEST", "", std::move(include_dirs)));
    }
    fs::path compile(std::string_view source, const cuda::CompilerOptions& options = {}) const {
        return make().compile_without_load("kernel", source, options);
    }
    std::string compile_failure(std::string_view source, const cuda::CompilerOptions& options) {
        return message_of<CompileError>([&] { compile(source, options); });
    }
    std::string logged() const { return fs::exists(temp / "log") ? slurp(temp / "log") : ""; }

    TempDir temp;
    fs::path nvcc;
    ScopedEnv cache{"CUDATEST_JIT_CACHE_DIR"}, log{"CUDATEST_JIT_LOG_FILE"};
    ScopedEnv arch{"CUDATEST_JIT_ARCH", "90a"};
};

class CudaNvccOddPaths : public CudaNvcc {
protected:
    CudaNvccOddPaths() : CudaNvcc(kOddName) {}
};

TEST_F(CudaNvcc, AnEntryHoldsWhatIsDocumented) {
    const auto path = compile(kScale);
    EXPECT_EQ(names_in(path),
              (std::vector<std::string>{".committed", "kernel.cu", "kernel.cubin", "meta.json"}));
    EXPECT_EQ(slurp(path / "kernel.cu"), kScale);
    const auto cubin = slurp(path / "kernel.cubin");
    EXPECT_TRUE(cuda::is_cubin(cubin));
    EXPECT_EQ(cuda::cubin_arch(cubin), 90);
    EXPECT_FALSE(cuda::is_cubin(cubin.substr(0, cubin.size() / 2)));

    const auto meta = json::parse(slurp(path / "meta.json"));
    const auto command = *meta.get<json::array_t>("command");
    std::vector<std::string> words;
    for (const auto& word : command) words.push_back(*word.get_if<std::string>());
    ASSERT_GT(words.size(), 6U);
    const auto directory = fs::path(words[1]).parent_path();
    EXPECT_EQ(words[0], nvcc.string());
    EXPECT_EQ(words[1], (directory / "kernel.cu").string());
    EXPECT_EQ(words[2], "--cubin");
    EXPECT_EQ(words[3], "--output-file");
    EXPECT_EQ(words[4], (directory / "kernel.cubin").string());
    EXPECT_EQ(words[5], "--gpu-architecture=sm_90a");
    const auto* info = meta.find("compiler_info");
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->get<std::string>("path"), nvcc.string());
    EXPECT_CONTAINS(*info->get<std::string>("version"), "release ");
    EXPECT_EQ(meta.find("compiler_options")->get<std::string>("arch"), "90a");
    EXPECT_EQ(logged(), "");
}

TEST_F(CudaNvcc, ASecondRuntimeHitsAndStartsNothing) {
    const auto first = compile(kScale);
    // A compiler that is there but no longer works.
    const ScopedEnv prepend("NVCC_PREPEND_FLAGS", "--no-such-flag");
    EXPECT_EQ(compile(kScale), first);
    EXPECT_EQ(compile(kScale, {.dump_ptx = true}), first);
}

TEST_F(CudaNvcc, TheKeyIsOfEverythingThatCounts) {
    auto jit = make();
    const auto base = jit.cache_key(kScale);
    EXPECT_EQ(base.size(), 32U);
    std::set<std::string> keys = {base};
    const auto differs = [&](const cuda::CompilerOptions& options) {
        EXPECT_TRUE(keys.insert(jit.cache_key(kScale, options)).second);
    };
    differs({.optimize_level = "1"});
    differs({.fast_math = true});
    differs({.ptxas_verbose = true});
    differs({.ptxas_register_usage_level = 1});
    differs({.check_no_spills = true});
    differs({.check_no_local_memory = true});
    differs({.with_line_info = true});
    differs({.arch = "90"});
    differs({.nvcc_flags = std::vector<std::string>{"-std=c++20"}});
    differs({.extra_nvcc_flags = {"-DX"}});
    EXPECT_EQ(jit.cache_key(kScale, {.dump_ptx = true, .dump_sass = true}), base);
    EXPECT_EQ(make({temp / "include"}).cache_key(kScale), base);
    jit.default_compiler_options.nvcc_flags->push_back("-DY");
    EXPECT_NE(jit.cache_key(kScale), base);
    Runtime<CUDA> signed_jit(Config(temp.path(), "CUDATEST", "cutlass-40000"));
    EXPECT_NE(signed_jit.cache_key(kScale), base);
}

TEST_F(CudaNvcc, TheHookIsInTheKeyByPathAndContent) {
    auto jit = make();
    write(temp / "a.py", "pass");
    write(temp / "b.py", "pass");
    const auto a = jit.cache_key(kScale, {.post_hook = "a.py"});
    EXPECT_NE(a, jit.cache_key(kScale));
    EXPECT_NE(a, jit.cache_key(kScale, {.post_hook = "b.py"}));
    write(temp / "a.py", "path");
    EXPECT_NE(a, jit.cache_key(kScale, {.post_hook = "a.py"}));
}

TEST_F(CudaNvcc, ErrorsCarryCommandLogAndSource) {
    try {
        compile("__global__ void f() { nonsense; }\n");
        FAIL();
    } catch (const CompileError& error) {
        EXPECT_CONTAINS(error.what(), "command failed with exit code ");
        EXPECT_CONTAINS(error.what(), "\"nonsense\" is undefined");
        EXPECT_CONTAINS(error.command(), "--output-file");
        EXPECT_CONTAINS(error.log(), "nonsense");
        EXPECT_CONTAINS(slurp(error.source_path()), "nonsense");
        EXPECT_TRUE(error.key().starts_with("kernel."));
        EXPECT_CONTAINS(error.what(), error.source_path());
    }
}

TEST_F(CudaNvcc, OutputThatIsNoCubinIsAnError) {
    EXPECT_CONTAINS(compile_failure(kScale, {.extra_nvcc_flags = {"--dryrun"}}),
                    "did not produce a valid CUBIN");
}

TEST_F(CudaNvcc, SpillsAreErrorsWhenForbidden) {
    EXPECT_NO_THROW(compile(kSpilling));
    for (const std::vector<std::string>& extra : {std::vector<std::string>(), {"-w"}}) {
        const auto text =
            compile_failure(kSpilling, {.check_no_spills = true, .extra_nvcc_flags = extra});
        EXPECT_CONTAINS(text, "register spills in function 'spilling': ");
        EXPECT_CONTAINS(text, " bytes stored, ");
    }
    EXPECT_NO_THROW(compile(kLocal, {.check_no_spills = true}));
    EXPECT_NO_THROW(compile(kScale, {.check_no_spills = true, .check_no_local_memory = true}));
}

TEST_F(CudaNvcc, LocalMemoryIsAnErrorWhenForbidden) {
    EXPECT_NO_THROW(compile(kLocal));
    EXPECT_CONTAINS(compile_failure(kLocal, {.check_no_local_memory = true}),
                    "local memory usage in function 'indexing': 256 bytes");
}

TEST_F(CudaNvcc, TheLogIsKeptAndPrintedWhenVerbose) {
    const auto path = compile(kScale, {.ptxas_verbose = true});
    EXPECT_CONTAINS(slurp(path / "kernel.log"), "Function properties for scale");
    EXPECT_CONTAINS(logged(), "Function properties for scale");
}

TEST_F(CudaNvcc, TheLogIsKeptButNotPrintedForChecks) {
    const auto path = compile(kScale, {.check_no_spills = true});
    EXPECT_CONTAINS(slurp(path / "kernel.log"), "Function properties for scale");
    EXPECT_EQ(logged(), "");
}

TEST_F(CudaNvcc, CommandsArePrintedWhenAskedForAtThatTime) {
    auto jit = make();
    const ScopedEnv print("CUDATEST_JIT_PRINT_COMPILER_COMMAND", "1");
    jit.compile_without_load("kernel", kScale);
    EXPECT_CONTAINS(logged(), "Running command: " + nvcc.string());
}

TEST_F(CudaNvcc, DebugWorksWithoutCuobjdump) {
    const ScopedEnv debug("CUDATEST_JIT_DEBUG", "1");
    const auto path = compile(kScale);
    EXPECT_TRUE(fs::exists(path / "kernel.ptx"));
    EXPECT_EQ(slurp(path / "kernel.cu"), kScale);
    EXPECT_EQ(count_of(logged(), "Running command: " + nvcc.string()), 1U);
    EXPECT_CONTAINS(logged(), "Function properties for scale");
}

TEST_F(CudaNvcc, PtxComesFromTheSameRun) {
    const ScopedEnv print("CUDATEST_JIT_PRINT_COMPILER_COMMAND", "1");
    const auto path = compile(kScale, {.dump_ptx = true});
    EXPECT_CONTAINS(slurp(path / "kernel.ptx"), ".visible .entry scale(");
    EXPECT_EQ(count_of(logged(), "Running command: "), 1U);
    EXPECT_EQ(names_in(path), (std::vector<std::string>{".committed", "kernel.cu", "kernel.cubin",
                                                        "kernel.ptx", "meta.json"}));
}

TEST_F(CudaNvcc, SassComesFromCuobjdumpOfTheToolkit) {
    make_script(temp / "toolkit" / "bin" / "cuobjdump",
                "#!/bin/sh\ntest \"$1 $2\" = '--dump-sass kernel.cubin' && test -s kernel.cubin && "
                "echo 'Function : scale'\n");
    const ScopedEnv home("CUDA_HOME", (temp / "toolkit").string());
    const ScopedEnv compiler("CUDATEST_JIT_NVCC_COMPILER", nvcc.string());
    const auto path = compile(kScale, {.dump_sass = true});
    EXPECT_EQ(slurp(path / "kernel.sass"), "Function : scale\n");
}

TEST_F(CudaNvcc, SassWithoutCuobjdumpSaysWhatIsMissing) {
    if (CUDA::find_cuda_toolkit(Env("CUDATEST")).cuobjdump)
        GTEST_SKIP() << "this toolkit has cuobjdump";
    EXPECT_CONTAINS(message_of<ToolchainError>([&] { compile(kScale, {.dump_sass = true}); }),
                    "cuobjdump");
}

TEST_F(CudaNvcc, LineInfoNamesThePublishedSource) {
    const auto path = compile(kScale, {.with_line_info = true, .dump_ptx = true});
    EXPECT_EQ(slurp(path / "kernel.cu"), kScale);
    const auto ptx = slurp(path / "kernel.ptx");
    EXPECT_CONTAINS(ptx, (path / "kernel.cu").string());
    EXPECT_EQ(ptx.find((temp / "cache" / "tmp").string()), std::string::npos);
    // The line of the multiplication.
    EXPECT_CONTAINS(ptx, ".loc\t1 5 ");
    EXPECT_FALSE(fs::exists(path / "kernel.cu.original"));
}

TEST_F(CudaNvcc, AFailureWithLineInfoKeepsTheGivenSource) {
    try {
        compile("nonsense;\n", {.with_line_info = true});
        FAIL();
    } catch (const CompileError& error) {
        EXPECT_EQ(slurp(error.source_path()), "nonsense;\n");
    }
}

TEST_F(CudaNvcc, AHookEditsTheCubin) {
    write(temp / "hooks" / "hook.py",
          "import os, sys\n"
          "assert len(sys.argv) == 2 and os.path.isabs(sys.argv[1])\n"
          "assert os.path.samefile(os.path.dirname(sys.argv[1]), os.getcwd())\n"
          "open(sys.argv[1], 'ab').write(b'edited')\n");
    const auto path = compile(kScale, {.post_hook = "hooks/hook.py"});
    EXPECT_TRUE(slurp(path / "kernel.cubin").ends_with("edited"));
    const auto meta = json::parse(slurp(path / "meta.json"));
    EXPECT_EQ(meta.find("compiler_options")->get<std::string>("post_hook"), "hooks/hook.py");
    EXPECT_EQ(meta.get<json::array_t>("command")->at(0), json(nvcc.string()));
}

TEST_F(CudaNvcc, AHookThatFailsOrBreaksTheCubinIsACompileError) {
    write(temp / "fail.py", "import sys\nprint('no luck')\nsys.exit(3)\n");
    auto text = compile_failure(kScale, {.post_hook = "fail.py"});
    EXPECT_CONTAINS(text, "hook");
    EXPECT_CONTAINS(text, "command failed with exit code 3");
    EXPECT_CONTAINS(text, "no luck");
    write(temp / "break.py", "import sys\nopen(sys.argv[1], 'r+b').truncate(200)\n");
    text = compile_failure(kScale, {.post_hook = "break.py"});
    EXPECT_CONTAINS(text, "break.py did not produce a valid CUBIN");
    write(temp / "remove.py", "import os, sys\nos.remove(sys.argv[1])\n");
    EXPECT_CONTAINS(compile_failure(kScale, {.post_hook = "remove.py"}), "valid CUBIN");
}

TEST_F(CudaNvcc, AHookMustLieInTheLibrary) {
    const TempDir outside("outside");
    write(outside / "hook.py", "pass");
    fs::create_symlink(outside / "hook.py", temp / "link.py");
    for (const std::string& bad :
         {(outside / "hook.py").string(), std::string("../../etc/passwd"), std::string("link.py"),
          std::string("missing.py"), std::string("")})
        EXPECT_THROW(compile(kScale, {.post_hook = bad}), ConfigError) << bad;
}

TEST_F(CudaNvcc, OddDefinitionsArriveAsTheyAre) {
    const auto ptx_of = [&](const std::string& definition) {
        return slurp(compile("__device__ const char text[] = TEXT;\n"
                             "__global__ void k(const char** p) { *p = text; }\n",
                             {.dump_ptx = true, .extra_nvcc_flags = {definition}}) /
                     "kernel.ptx");
    };
    // "$HOME `x`" and "a b;'"
    EXPECT_CONTAINS(ptx_of("-DTEXT=\"$HOME `x`\""), "{36, 72, 79, 77, 69, 32, 96, 120, 96}");
    EXPECT_CONTAINS(ptx_of("-DTEXT=\"a b;'\""), "{97, 32, 98, 59, 39}");
}

TEST_F(CudaNvcc, OddTemporaryDirectoriesWork) {
    const TempDir odd;
    const ScopedEnv tmpdir("TMPDIR", odd.path().string());
    EXPECT_NO_THROW(compile(kScale));
}

TEST_F(CudaNvccOddPaths, CompileHookAndDumpsWork) {
    write(temp / "hook $(touch pwned).py",
          "import sys\nopen(sys.argv[1], 'ab').write(b'edited')\n");
    const auto path = compile(
        kScale, {.with_line_info = true, .dump_ptx = true, .post_hook = "hook $(touch pwned).py"});
    EXPECT_EQ(path.parent_path(), temp / "cache" / "cache");
    EXPECT_EQ(slurp(path / "kernel.cu"), kScale);
    EXPECT_TRUE(slurp(path / "kernel.cubin").ends_with("edited"));
    EXPECT_CONTAINS(slurp(path / "kernel.ptx"), ".visible .entry scale(");
}

TEST_F(CudaNvccOddPaths, LineInfoNamesAPublishedSourceThatPtxCanName) {
    const auto root = temp.path().parent_path() / "it's $(touch pwned); `x`";
    cache.set(root.string());
    const auto path = compile(kScale, {.with_line_info = true, .dump_ptx = true});
    EXPECT_CONTAINS(slurp(path / "kernel.ptx"), (path / "kernel.cu").string());
}

TEST_F(CudaNvccOddPaths, IncludeDirectoriesWork) {
    std::vector<fs::path> dirs;
    std::string source = "extern \"C\" __global__ void k(int* p) {\n    *p = 0";
    std::string includes;
    for (const char* name :
         {"a,b", "c d", "e'f", "g\"h", "i$(touch pwned)", "j`k", "l\\m", "n;o"}) {
        const auto index = str::to_text(dirs.size());
        dirs.push_back(temp / name);
        write(dirs.back() / ("header" + index + ".h"), "#define VALUE" + index + " 1\n");
        includes += "#include <header" + index + ".h>\n";
        source += " + VALUE" + index;
    }
    dirs.push_back(temp.path().parent_path() / "plain,dir");
    write(dirs.back() / "more.h", "#define MORE 1\n");
    source = includes + "#include <more.h>\n" + source + " + MORE;\n}\n";
    EXPECT_NO_THROW(make(dirs).compile_without_load("kernel", source));
}

}  // namespace
