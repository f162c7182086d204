// Discovery of toolkits: made-up ones in temporary directories. Nothing of them is ever started.
#include <deep_jit/backend/cuda/backend.hpp>

#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class CudaToolkit : public testing::Test {
protected:
    /// A toolkit whose programs fail when they are run.
    fs::path make_toolkit(const fs::path& root, bool with_cuobjdump = false) const {
        make_script(root / "bin" / "nvcc", "#!/bin/sh\nexit 1\n");
        write(root / "bin" / "nvcc.profile", "");
        if (with_cuobjdump)
            make_script(root / "bin" / "cuobjdump", "#!/bin/sh\nexit 1\n");
        return root;
    }
    cuda::Toolkit find() const { return CUDA::find_cuda_toolkit(Env("CUDATEST")); }
    std::string failure() const {
        return message_of<ToolchainError>([this] { find(); });
    }

    TempDir temp{"tool kit; $(touch pwned)"};
    ScopedEnv home{"CUDA_HOME"}, cuda_path{"CUDA_PATH"}, nvcc{"CUDATEST_JIT_NVCC_COMPILER"};
    ScopedEnv path{"PATH", "/nonexistent"}, venv{"VIRTUAL_ENV"}, conda{"CONDA_PREFIX"};
    ScopedEnv python_path{"PYTHONPATH"};
};

TEST_F(CudaToolkit, CudaHomeBeforeCudaPathBeforePath) {
    const auto a = make_toolkit(temp / "a"), b = make_toolkit(temp / "b"),
               c = make_toolkit(temp / "c");
    path.set((c / "bin").string());
    EXPECT_EQ(find().nvcc, c / "bin" / "nvcc");
    cuda_path.set(b.string());
    EXPECT_EQ(find().nvcc, b / "bin" / "nvcc");
    home.set(a.string());
    const auto found = find();
    EXPECT_EQ(found.nvcc, a / "bin" / "nvcc");
    EXPECT_EQ(found.root, a);
    EXPECT_FALSE(found.cuobjdump.has_value());
}

TEST_F(CudaToolkit, EmptyVariablesAreUnset) {
    const auto c = make_toolkit(temp / "c", true);
    home.set("");
    cuda_path.set("");
    nvcc.set("");
    path.set("::relative:" + (c / "bin").string());
    EXPECT_EQ(find().nvcc, c / "bin" / "nvcc");
    EXPECT_EQ(find().cuobjdump, c / "bin" / "cuobjdump");
}

TEST_F(CudaToolkit, ABadVariableIsAnErrorThatQuotesIt) {
    make_toolkit(temp / "c");
    path.set((temp / "c" / "bin").string());
    home.set((temp / "missing").string());
    EXPECT_CONTAINS(failure(), "CUDA_HOME is '" + (temp / "missing").string() + "'");
    fs::create_directories(temp / "empty");
    home.set((temp / "empty").string());
    EXPECT_CONTAINS(failure(), "CUDA_HOME is '" + (temp / "empty").string() + "'");
    EXPECT_CONTAINS(failure(), "NVCC compiler is not executable");
    home.set(std::nullopt);
    cuda_path.set("/dev/null");
    EXPECT_CONTAINS(failure(), "CUDA_PATH is '/dev/null'");
}

TEST_F(CudaToolkit, ANvccThatIsNotExecutableDoesNotCount) {
    write(temp / "a" / "bin" / "nvcc", "#!/bin/sh\n");
    home.set((temp / "a").string());
    EXPECT_CONTAINS(failure(), "NVCC compiler is not executable");
}

TEST_F(CudaToolkit, AGivenCompilerOverridesTheOneOfTheRoot) {
    const auto a = make_toolkit(temp / "a", true), b = make_toolkit(temp / "b");
    home.set(a.string());
    nvcc.set((b / "bin" / "nvcc").string());
    auto found = find();
    EXPECT_EQ(found.nvcc, b / "bin" / "nvcc");
    EXPECT_EQ(found.root, a);
    EXPECT_EQ(found.cuobjdump, a / "bin" / "cuobjdump");
    nvcc.set((temp / "no nvcc").string());
    EXPECT_CONTAINS(failure(), "NVCC compiler is not executable");
    EXPECT_CONTAINS(failure(), "CUDATEST_JIT_NVCC_COMPILER is '" + (temp / "no nvcc").string());
    home.set((temp / "missing").string());
    nvcc.set((b / "bin" / "nvcc").string());
    EXPECT_CONTAINS(failure(), "CUDA_HOME is '");
}

TEST_F(CudaToolkit, AGivenCompilerIsLookedForInPath) {
    const auto b = make_toolkit(temp / "b");
    fs::rename(b / "bin" / "nvcc", b / "bin" / "my-nvcc");
    path.set((b / "bin").string());
    nvcc.set("my-nvcc");
    EXPECT_EQ(find().nvcc, b / "bin" / "my-nvcc");
}

TEST_F(CudaToolkit, ALinkIsFollowedToWhereThePartsAre) {
    const auto a = make_toolkit(temp / "a");
    fs::create_directories(temp / "links");
    fs::create_symlink(a / "bin" / "nvcc", temp / "links" / "nvcc");
    path.set((temp / "links").string());
    EXPECT_EQ(find().nvcc, fs::canonical(a / "bin" / "nvcc"));
    EXPECT_EQ(find().root, fs::canonical(a));
    // A link to the whole toolkit is what it was called by.
    fs::create_directory_symlink(a, temp / "cuda");
    path.set((temp / "cuda" / "bin").string());
    EXPECT_EQ(find().root, temp / "cuda");
}

TEST_F(CudaToolkit, PythonPackagesAndCondaAreTheLastResort) {
    if (fs::exists("/usr/local/cuda/bin/nvcc"))
        GTEST_SKIP() << "/usr/local/cuda comes before them";
    const auto site = temp / "venv" / "lib" / "python3.12" / "site-packages";
    venv.set((temp / "venv").string());
    make_toolkit(site / "nvidia" / "cu13");
    EXPECT_EQ(find().nvcc, site / "nvidia" / "cu13" / "bin" / "nvcc");
}

TEST_F(CudaToolkit, PackageDirectoriesOfPythonAreFound) {
    const auto site = temp / "venv" / "lib" / "python3.12" / "site-packages";
    fs::create_directories(site);
    fs::create_directories(temp / "conda" / "lib" / "python3.11" / "site-packages");
    venv.set((temp / "venv").string());
    conda.set((temp / "conda").string());
    python_path.set((temp / "extra").string() + ":relative");
    const auto dirs = cuda::detail::python_package_dirs();
    ASSERT_EQ(dirs.size(), 3U);
    EXPECT_EQ(dirs[0], temp / "extra");
    EXPECT_EQ(dirs[1], site);
    EXPECT_EQ(dirs[2], temp / "conda" / "lib" / "python3.11" / "site-packages");
}

TEST_F(CudaToolkit, TheSearchIsPrintedWhenAskedFor) {
    const auto c = make_toolkit(temp / "c");
    path.set((c / "bin").string());
    const ScopedEnv log("CUDATEST_JIT_LOG_FILE", (temp / "log").string());
    find();
    EXPECT_FALSE(fs::exists(temp / "log"));
    const ScopedEnv debug("CUDATEST_JIT_DEBUG", "1");
    find();
    const auto text = slurp(temp / "log");
    EXPECT_CONTAINS(text, "CUDA_HOME: not set");
    EXPECT_CONTAINS(text, "nvcc in PATH: " + (c / "bin" / "nvcc").string());
}

TEST_F(CudaToolkit, NothingIsLookedForBeforeItIsNeeded) {
    home.set((temp / "missing").string());
    const ScopedEnv cache("CUDATEST_JIT_CACHE_DIR", (temp / "cache").string());
    const Runtime<CUDA> jit(Config(temp.path(), "CUDATEST"));
    EXPECT_FALSE(jit.backend.toolkit.found.initialized());
    EXPECT_FALSE(jit.backend.compiler_info.version.initialized());
    EXPECT_THROW(jit.backend.compiler_info.version.get(), ToolchainError);
}

TEST_F(CudaToolkit, TheVersionIsRememberedAndCheckedEachTime) {
    const auto a = make_toolkit(temp / "a");
    make_script(a / "bin" / "nvcc", "#!/bin/sh\necho run >> '" + (temp / "runs").string() +
                                        "'\necho 'Cuda compilation tools, release 12.8, V1'\n");
    home.set(a.string());
    const ScopedEnv arch("CUDATEST_JIT_ARCH", "90a");
    const ScopedEnv cache("CUDATEST_JIT_CACHE_DIR", (temp / "cache").string());
    for (int i = 0; i < 2; ++i) {
        Runtime<CUDA> jit(Config(temp.path(), "CUDATEST"));
        EXPECT_CONTAINS(
            message_of<ToolchainError>([&] { jit.compile_without_load("k", "// nothing"); }),
            "NVCC version must be at least 12.9");
    }
    EXPECT_EQ(slurp(temp / "runs"), "run\n");
}

}  // namespace
