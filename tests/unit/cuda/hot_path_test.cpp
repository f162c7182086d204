// compile() of a kernel in memory and launch() allocate nothing.
#include "unit/cuda/allocation_count.hpp"
#include "unit/cuda/fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

constexpr int kRounds = 100;

template <typename Action>
std::size_t allocations_in(Action&& action) {
    action();  // what happens once only
    const auto before = allocations_of_this_thread();
    for (int i = 0; i < kRounds; ++i) action();
    return allocations_of_this_thread() - before;
}

class CudaHotPath : public CudaStandIn {
protected:
    void SetUp() override {
        if (!kAllocationsAreCounted)
            GTEST_SKIP() << "allocations are not counted here";
        CudaStandIn::SetUp();
        if (IsSkipped())
            return;
        use_device(0);
        nvcc = std::make_unique<FakeNvcc>(cubin_of(kScale));
        jit = std::make_unique<JIT>(config());
        kernel = jit->compile("scale", kScale);
        stand_in->record(false);
    }

    /// Of the driver alone, called as `launch` with these options should call it.
    std::size_t allocations_of_bare_launches(const cuda::LaunchOptions& options) {
        return allocations_in([&] {
            CUlaunchConfig config{};
            config.gridDimX = 4;
            config.gridDimY = config.gridDimZ = 1;
            config.blockDimX = 256;
            config.blockDimY = config.blockDimZ = 1;
            config.sharedMemBytes = static_cast<unsigned>(options.num_smem_bytes.value_or(0));
            config.hStream = options.stream.value_or(nullptr);
            void* params[] = {&output, &input, &count};
            ASSERT_EQ(
                driver::lazy_cuLaunchKernelEx(
                    &config, reinterpret_cast<CUfunction>(kernel->kernel_handle), params, nullptr),
                CUDA_SUCCESS);
        });
    }

    std::unique_ptr<FakeNvcc> nvcc;
    std::unique_ptr<JIT> jit;
    std::shared_ptr<cuda::Kernel> kernel;
    float* output = nullptr;
    const float* input = nullptr;
    int count = 1000;
};

TEST_F(CudaHotPath, TheCounterCounts) {
    const std::string text(100, 'x');
    EXPECT_EQ(allocations_in([&] { const auto copy = text; }), std::size_t{kRounds});
    EXPECT_EQ(allocations_in([&] { const std::vector<int> copy(3); }), std::size_t{kRounds});
}

TEST_F(CudaHotPath, CompilingWhatIsInMemoryAllocatesNothing) {
    const std::string source = kScale;
    EXPECT_EQ(allocations_in([&] { jit->compile("scale", source); }), 0U);
    const cuda::CompilerOptions options{.fast_math = true,
                                        .extra_nvcc_flags = {"-DA_LONG_NAME_FOR_A_MACRO=1234567"}};
    EXPECT_EQ(allocations_in([&] { jit->compile("scale", source, options); }), 0U);
    // A comparison of 64 KiB, still without a copy.
    const std::string large = source + "// " + std::string(65536, 'x') + "\n";
    EXPECT_EQ(allocations_in([&] { jit->compile("scale", large); }), 0U);
    const auto calls = stand_in->calls();
    jit->compile("scale", large);
    EXPECT_EQ(stand_in->calls(), calls);
}

TEST_F(CudaHotPath, LaunchingAllocatesNothing) {
    for (const cuda::LaunchOptions& options :
         {cuda::LaunchOptions{}, cuda::LaunchOptions{.stream = make_stream()},
          cuda::LaunchOptions{.num_smem_bytes = 60000}}) {
        const auto all = options.override_with({.grid_dim = dim3(4), .block_dim = dim3(256)});
        const auto launches =
            allocations_in([&] { jit->launch(kernel, all, output, input, count); });
        EXPECT_EQ(launches, allocations_of_bare_launches(options));
    }
    EXPECT_GE(stand_in->launch_count(), 6U * kRounds);
}

TEST_F(CudaHotPath, LookingForAStreamProviderAllocatesNothing) {
    EXPECT_EQ(allocations_in([] { cuda::current_stream(); }), 0U);
    cuda::set_current_stream_provider([]() -> CUstream { return nullptr; });
    EXPECT_EQ(allocations_in([] { cuda::current_stream(); }), 0U);
}

}  // namespace
