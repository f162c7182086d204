// Discovery of NVRTC: made-up libraries in temporary directories. None of them is ever opened.
#include <deep_jit/backend/cuda/backend.hpp>

#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class CudaNvrtcLibrary : public testing::Test {
protected:
    fs::path make_toolkit(const fs::path& root, const std::string& lib = "lib64") const {
        write(root / lib / "libnvrtc.so.13", "no ELF");
        write(root / "include" / "cuda_fp16.h", "");
        write(root / "include" / "cccl" / "cuda" / "std" / "cstdint", "");
        return root;
    }
    cuda::NvrtcLibrary find() const { return cuda::find_nvrtc(Env("CUDATEST")); }

    TempDir temp{"tool kit; $(touch pwned)"};
    ScopedEnv home{"CUDA_HOME"}, cuda_path{"CUDA_PATH"}, given{"CUDATEST_JIT_NVRTC_LIBRARY"};
    ScopedEnv path{"PATH", "/nonexistent"}, venv{"VIRTUAL_ENV"}, conda{"CONDA_PREFIX"};
    ScopedEnv python_path{"PYTHONPATH"}, log{"CUDATEST_JIT_LOG_FILE"};
    ScopedEnv debug{"CUDATEST_JIT_DEBUG"};
};

TEST_F(CudaNvrtcLibrary, CudaHomeBeforeCudaPathBeforePath) {
    const auto a = make_toolkit(temp / "a"), b = make_toolkit(temp / "b", "lib"),
               c = make_toolkit(temp / "c", "targets/x86_64-linux/lib");
    make_script(c / "bin" / "nvcc", "#!/bin/sh\nexit 1\n");
    path.set((c / "bin").string());
    EXPECT_EQ(find().path, c / "targets/x86_64-linux/lib/libnvrtc.so.13");
    cuda_path.set(b.string());
    EXPECT_EQ(find().path, b / "lib/libnvrtc.so.13");
    home.set(a.string());
    EXPECT_EQ(find().path, a / "lib64/libnvrtc.so.13");
    EXPECT_EQ(find().include_dirs, (std::vector<fs::path>{a / "include", a / "include" / "cccl"}));
    // A toolkit without NVRTC is passed over.
    fs::remove_all(a / "lib64");
    EXPECT_EQ(find().path, b / "lib/libnvrtc.so.13");
}

TEST_F(CudaNvrtcLibrary, TheNewestInADirectory) {
    for (const char* name : {"libnvrtc.so", "libnvrtc.so.9", "libnvrtc.so.12", "libnvrtc.alt.so.13",
                             "libnvrtc-builtins.so.13.0", "libnvrtc.so.old", "libnvrtc_static.a"})
        write(temp / "lib" / name, "");
    EXPECT_EQ(cuda::detail::nvrtc_in(temp / "lib"), temp / "lib" / "libnvrtc.so.12");
    fs::remove(temp / "lib" / "libnvrtc.so.12");
    fs::remove(temp / "lib" / "libnvrtc.so.9");
    EXPECT_EQ(cuda::detail::nvrtc_in(temp / "lib").filename(), "libnvrtc.so");
    EXPECT_EQ(cuda::detail::nvrtc_in(temp / "missing"), fs::path());
    EXPECT_EQ(cuda::nvrtc::Api::find_builtins(temp / "lib" / "libnvrtc.so"),
              temp / "lib" / "libnvrtc-builtins.so.13.0");
}

TEST_F(CudaNvrtcLibrary, WheelsOfOneComponentEachKeepHeadersApart) {
    const auto site = temp / "site-packages" / "nvidia";
    write(site / "cuda_nvrtc" / "lib" / "libnvrtc.so.12", "");
    write(site / "cuda_nvrtc" / "include" / "nvrtc.h", "");
    write(site / "cuda_runtime" / "include" / "cuda_fp16.h", "");
    write(site / "cuda_cccl" / "include" / "cuda" / "std" / "cstdint", "");
    given.set((site / "cuda_nvrtc" / "lib" / "libnvrtc.so.12").string());
    EXPECT_EQ(find().path, site / "cuda_nvrtc" / "lib" / "libnvrtc.so.12");
    EXPECT_EQ(find().include_dirs, (std::vector<fs::path>{site / "cuda_runtime" / "include",
                                                          site / "cuda_cccl" / "include"}));
}

TEST_F(CudaNvrtcLibrary, PythonPackages) {
    if (fs::exists("/usr/local/cuda"))
        GTEST_SKIP() << "the toolkit of this machine comes first";
    write(temp / "site" / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13", "");
    python_path.set((temp / "site").string());
    EXPECT_EQ(find().path, temp / "site" / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13");
}

TEST_F(CudaNvrtcLibrary, AGivenLibraryMustBeThere) {
    given.set((temp / "missing.so").string());
    const auto text = message_of<ToolchainError>([&] { find(); });
    EXPECT_CONTAINS(text, "CUDATEST_JIT_NVRTC_LIBRARY is '");
    EXPECT_CONTAINS(text, "missing.so");
}

TEST_F(CudaNvrtcLibrary, WhatIsNoNvrtcIsNamed) {
    write(temp / "no_elf.so", "no ELF");
    EXPECT_CONTAINS(message_of<ToolchainError>([&] { cuda::nvrtc::Api::open(temp / "no_elf.so"); }),
                    "no_elf.so");
    // Some other library.
    EXPECT_CONTAINS(message_of<ToolchainError>([] { cuda::nvrtc::Api::open("libm.so.6"); }),
                    "it has no nvrtcVersion");
}

TEST_F(CudaNvrtcLibrary, DebugPrintsWhereItLooked) {
    debug.set("1");
    log.set((temp / "log").string());
    home.set(make_toolkit(temp / "a").string());
    make_script(temp / "a" / "bin" / "cuobjdump", "#!/bin/sh\n");
    EXPECT_EQ(find().cuobjdump, temp / "a" / "bin" / "cuobjdump");
    const auto text = slurp(temp / "log");
    EXPECT_CONTAINS(text, "NVRTC search:\n  CUDA_HOME: uses ");
    EXPECT_CONTAINS(text, "CCCL's headers: " + (temp / "a/include/cccl").string());
}

TEST_F(CudaNvrtcLibrary, NoneAtAllSaysWhereItLooked) {
    if (fs::exists("/usr/local/cuda"))
        GTEST_SKIP() << "this machine has a toolkit";
    fs::create_directories(temp / "empty");
    home.set((temp / "empty").string());
    const auto text = message_of<ToolchainError>([&] { find(); });
    EXPECT_CONTAINS(text, "nvidia-cuda-nvrtc");
    EXPECT_CONTAINS(text, "no libnvrtc.so in " + (temp / "empty").string());
}

TEST_F(CudaNvrtcLibrary, TheIdentityIsOfBytesNotOfPlaces) {
    write(temp / "a.so", "one");
    write(temp / "b.so", "one");
    write(temp / "c.so", "two");
    using cuda::nvrtc::detail::library_id;
    EXPECT_EQ(library_id(temp / "a.so"), library_id(temp / "b.so"));
    EXPECT_NE(library_id(temp / "a.so"), library_id(temp / "c.so"));
    EXPECT_EQ(library_id(temp / "missing.so"), "");
    write(temp / "version.h", "#define X_OLD 3\n#define X 13000 \n");
    EXPECT_EQ(cuda::nvrtc::detail::macro_in(temp / "version.h", "X"), "13000");
    EXPECT_EQ(cuda::nvrtc::detail::macro_in(temp / "version.h", "Y"), "unknown");
}

}  // namespace
