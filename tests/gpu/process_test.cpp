// Processes: fork before and after the first use, exit after use, and a fault of a kernel. Each
// runs in a process of its own, since all of them depend on whether CUDA was used before.
#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

constexpr const char* kAdd = R"(
extern "C" __global__ void add(int* data, int value) { data[threadIdx.x] += value; }
)";
const cuda::LaunchOptions kOneBlock{.grid_dim = dim3(1), .block_dim = dim3(64)};

/// Compiles, launches and looks at the result, as the first thing that a process does with CUDA.
int use_cuda(JIT& jit) {
    CUcontext context = nullptr;
    driver::initialize();
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuDevicePrimaryCtxRetain(&context, 0));
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxSetCurrent(context));
    const DeviceArray<int> data(counting(64));
    jit.launch(jit.compile("add", kAdd), kOneBlock, data.get(), 5);
    return same(data.download(), counting(64, 5)) ? 0 : 1;
}

/// The tests that run alone. Nothing has used CUDA when they start.
class GpuAlone : public testing::Test {
protected:
    JIT jit{Config("/", "GPUTEST")};
};

/// The tests that start them.
class GpuProcess : public GpuTest {
protected:
    static std::string run(const std::string& name) {
        const auto result = run_alone("GpuAlone.DISABLED_" + name);
        EXPECT_EQ(result.exit_code, 0) << result.output;
        EXPECT_CONTAINS(result.output, "[  PASSED  ] 1 test.");
        return result.output;
    }
};

TEST_F(GpuAlone, DISABLED_ForkBeforeFirstUse) {
    // The runtime itself was made before the fork.
    EXPECT_TRUE(run_child([&] { return use_cuda(jit); }).ok());
    EXPECT_TRUE(run_child([&] { return use_cuda(jit); }).ok());
    EXPECT_EQ(use_cuda(jit), 0);
}
TEST_F(GpuProcess, ForkBeforeFirstUse) { run("ForkBeforeFirstUse"); }

TEST_F(GpuAlone, DISABLED_ForkAfterUse) {
    ASSERT_EQ(use_cuda(jit), 0);
    const auto kernel = jit.compile("add", kAdd);
    const auto child = run_child([&] {
        const auto message = message_of<LaunchError>(
            [&] { jit.launch(kernel, kOneBlock, static_cast<int*>(nullptr), 1); });
        EXPECT_CONTAINS(message, "forked");
        // What the parent has loaded is not the child's to unload.
        const_cast<cuda::Kernel&>(*kernel).unload();
        return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_TRUE(child.ok()) << child;
    // The parent goes on.
    EXPECT_EQ(use_cuda(jit), 0);
}
TEST_F(GpuProcess, ForkAfterUse) { run("ForkAfterUse"); }

TEST_F(GpuAlone, DISABLED_ExitOfAForkedChild) {
    ASSERT_EQ(use_cuda(jit), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        // With destructors and handlers, as an ordinary program ends.
        static auto kernel = jit.compile("add", kAdd);
        std::exit(0);
    }
    const auto result = wait_child(child);
    EXPECT_TRUE(result.ok()) << result;
}
TEST_F(GpuProcess, ExitOfAForkedChild) { run("ExitOfAForkedChild"); }

TEST_F(GpuAlone, DISABLED_ExitWithLoadedKernels) {
    // Destroyed after the driver has shut down, since they were made before it started.
    static std::shared_ptr<cuda::Kernel> before;
    ASSERT_EQ(use_cuda(jit), 0);
    before = jit.compile("add", kAdd);
    static auto lazy = create_lazy_jit<CUDA>(Config("/", "GPUTEST"));
    lazy->compile("add", kAdd);
}
TEST_F(GpuProcess, ExitWithLoadedKernels) { run("ExitWithLoadedKernels"); }

TEST_F(GpuAlone, DISABLED_ExitInTheMiddleOfWork) {
    ASSERT_EQ(use_cuda(jit), 0);
    const auto kernel = jit.compile("spin", R"(
        extern "C" __global__ void spin(int* data) {
            const long long start = clock64();
            while (clock64() - start < 200000000) {}
            if (data != nullptr) *data = 1;
        }
    )");
    jit.launch(kernel, kOneBlock, static_cast<int*>(nullptr));
}
TEST_F(GpuProcess, ExitInTheMiddleOfWork) { run("ExitInTheMiddleOfWork"); }

TEST_F(GpuAlone, DISABLED_FaultOfAnEarlierKernel) {
    ASSERT_EQ(use_cuda(jit), 0);
    const DeviceArray<int> data(counting(64));
    const auto good = jit.compile("add", kAdd);
    const auto bad = jit.compile("bad", R"(
        extern "C" __global__ void bad(int* data) { *data = 1; }
    )");
    jit.launch(bad, kOneBlock, reinterpret_cast<int*>(16));
    EXPECT_NE(driver::lazy_cuCtxSynchronize(), CUDA_SUCCESS);
    const auto message =
        message_of<LaunchError>([&] { jit.launch(good, kOneBlock, data.get(), 1); });
    EXPECT_CONTAINS(message, "add");
    EXPECT_CONTAINS(message, "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_CONTAINS(message, "from an earlier kernel");
}
TEST_F(GpuProcess, FaultOfAnEarlierKernel) {
    if (!kernels_run())
        GTEST_SKIP() << "kernels of the stand-in make no faults";
    run("FaultOfAnEarlierKernel");
}

}  // namespace
