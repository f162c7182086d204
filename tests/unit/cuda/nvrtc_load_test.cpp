// What NVRTC makes, loaded by the stand-in driver.
#include "unit/cuda/fixture.hpp"
#include "unit/cuda/rerun.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class CudaNvrtcLoad : public CudaStandIn {
protected:
    void SetUp() override {
        CudaStandIn::SetUp();
        try {
            cuda::find_nvrtc(Env("CUDATEST"));
        } catch (const ToolchainError& error) {
            GTEST_SKIP() << error.what();
        }
    }
    ScopedEnv compiler{"CUDATEST_JIT_COMPILER", "nvrtc"};
};

TEST_F(CudaNvrtcLoad, AKernelIsLoadedAndLaunched) {
    use_device(0);
    JIT jit(config());
    const auto kernel = jit.compile("scale", kScale);
    EXPECT_EQ(kernel->name(), "scale");
    EXPECT_EQ(kernel->arch(), 90);
    EXPECT_EQ(kernel->param_sizes(), (std::vector<std::uint32_t>{8, 8, 4}));
    jit.launch(kernel, {.grid_dim = dim3(2), .block_dim = dim3(64)}, static_cast<float*>(nullptr),
               static_cast<const float*>(nullptr), 100);
    EXPECT_EQ(stand_in->launch_count(), 1U);
    EXPECT_EQ(jit.compile("scale", kScale), kernel);
}

TEST_F(CudaNvrtcLoad, OneKernelAndNoOther) {
    JIT jit(config());
    EXPECT_CONTAINS(message_of<LoadError>([&] {
                        jit.compile("two",
                                    "__global__ void one(float*) {}\n"
                                    "__global__ void other(int) {}\n");
                    }),
                    "expected exactly one kernel, but there are 2: ");
    EXPECT_CONTAINS(
        message_of<LoadError>([&] { jit.compile("none", "int x;\nint f() { return x; }\n"); }),
        "expected exactly one kernel, but there are 0");
    // Named by a function that nobody calls, as template kernels are.
    const auto kernel = jit.compile("named",
                                    "template <int N> __global__ void k(int* p) { *p = N; }\n"
                                    "static void __instantiate_kernel() {\n"
                                    "    auto ptr = reinterpret_cast<void*>(&k<7>);\n}\n");
    EXPECT_EQ(cuda::detail::demangle(kernel->name()), "void k<7>(int*)");
}

TEST_F(CudaNvrtcLoad, DISABLED_AHitOpensNothing) {
    // The cache is the one of the test that started this.
    const ScopedEnv root("CUDATEST_JIT_CACHE_DIR", get_env<std::string>("NVRTC_TEST_CACHE"));
    const auto path = JIT(config()).compile_without_load("scale", kScale);
    EXPECT_TRUE(fs::exists(path / "kernel.cubin"));
    EXPECT_FALSE(contains(slurp("/proc/self/maps"), "libnvrtc"));
}

TEST_F(CudaNvrtcLoad, AnotherProcessHitsWithoutTheLibrary) {
    JIT(config()).compile_without_load("scale", kScale);
    const ScopedEnv root("NVRTC_TEST_CACHE", (temp / "cache").string());
    EXPECT_RERUN("CudaNvrtcLoad.DISABLED_AHitOpensNothing");
}

TEST_F(CudaNvrtcLoad, AutoTakesNvrtcWhereThereIsNoNvcc) {
    const auto library = cuda::find_nvrtc(Env("CUDATEST"));
    const ScopedEnv given("CUDATEST_JIT_NVRTC_LIBRARY", library.path.string());
    const ScopedEnv home("CUDA_HOME", (temp / "no toolkit").string());
    compiler.set("auto");
    JIT jit(config());
    const auto path = jit.compile_without_load("scale", kScale);
    EXPECT_EQ(jit.backend.compiler_info.path.get(), library.path);
    EXPECT_EQ(json::parse(slurp(path / "meta.json"))
                  .find("compiler_options")
                  ->get<std::string>("compiler"),
              "nvrtc");
    // NVCC is still asked for by name.
    EXPECT_CONTAINS(message_of<ToolchainError>(
                        [&] { jit.compile_without_load("scale", kScale, {.compiler = "nvcc"}); }),
                    "CUDA_HOME");
    // And a runtime for which there is no NVCC compiles with NVRTC what asks for it.
    compiler.set("nvcc");
    JIT other(config());
    EXPECT_NO_THROW(other.compile_without_load("scale", kScale, {.compiler = "nvrtc"}));
    EXPECT_THROW(other.compile_without_load("scale", kScale), ToolchainError);
}

}  // namespace
