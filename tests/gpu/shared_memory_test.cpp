// Dynamic shared memory: up to 48 KiB as it is, above that with the driver's consent, which the
// launch asks for.
#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

constexpr int kBlocks = 3;

/// Reverses each block's numbers by way of shared memory; STATIC more numbers lie there already.
constexpr const char* kReverse = R"(
extern "C" __global__ void reverse(int* output, const int* input, int count) {
    extern __shared__ int numbers[];
#if STATIC > 0
    __shared__ int fixed[STATIC];
    for (int i = threadIdx.x; i < STATIC; i += blockDim.x) fixed[i] = i;
    __syncthreads();
#endif
    const int first = blockIdx.x * count;
    for (int i = threadIdx.x; i < count; i += blockDim.x) numbers[i] = input[first + i];
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        output[first + i] = numbers[count - 1 - i];
#if STATIC > 0
        output[first + i] += fixed[i % STATIC] - i % STATIC;
#endif
    }
}
)";

class GpuSharedMemory : public GpuTest {
protected:
    std::shared_ptr<cuda::Kernel> compile(int static_ints = 0) {
        return jit->compile("reverse", kReverse,
                            {.extra_nvcc_flags = {"-DSTATIC=" + std::to_string(static_ints)}});
    }

    /// Uses all of `bytes`.
    testing::AssertionResult reverses(const std::shared_ptr<cuda::Kernel>& kernel, int bytes) {
        const int count = bytes / 4;
        const auto input = counting(static_cast<std::size_t>(kBlocks) * count, 17);
        std::vector<int> expected;
        for (int block = 0; block < kBlocks; ++block)
            for (int i = count - 1; i >= 0; --i) expected.push_back(input[block * count + i]);
        const DeviceArray<int> in(input), out(input.size());
        jit->launch(kernel,
                    {.num_smem_bytes = bytes, .grid_dim = dim3(kBlocks), .block_dim = dim3(256)},
                    out.get(), in.cget(), count);
        return same(out.download(), expected);
    }
};

TEST_F(GpuSharedMemory, SmallAndAtTheDefaultLimit) {
    const auto kernel = compile();
    EXPECT_TRUE(reverses(kernel, 4));
    EXPECT_TRUE(reverses(kernel, 1024));
    EXPECT_TRUE(reverses(kernel, 48 * 1024));
}

TEST_F(GpuSharedMemory, AboveTheDefaultLimit) {
    const auto kernel = compile();
    EXPECT_TRUE(reverses(kernel, 48 * 1024 + 16));
    EXPECT_TRUE(reverses(kernel, 100 * 1024));
    // Less again.
    EXPECT_TRUE(reverses(kernel, 64 * 1024));
    EXPECT_TRUE(reverses(kernel, 1024));
}

TEST_F(GpuSharedMemory, TheMostABlockCanHave) {
    const int most = jit->device.get_num_smem_bytes();
    ASSERT_GT(most, 48 * 1024);
    const auto kernel = compile();
    EXPECT_TRUE(reverses(kernel, most));
    EXPECT_TRUE(reverses(kernel, 48 * 1024));
}

TEST_F(GpuSharedMemory, MoreThanABlockCanHaveIsRefused) {
    const int most = jit->device.get_num_smem_bytes();
    const auto kernel = compile();
    const auto message = message_of<LaunchError>([&] { reverses(kernel, most + 4); });
    EXPECT_CONTAINS(message, "reverse");
    EXPECT_CONTAINS(message, std::to_string(most + 4));
    EXPECT_CONTAINS(message, "CUDA_ERROR_INVALID_VALUE");
    EXPECT_TRUE(reverses(kernel, most));
}

TEST_F(GpuSharedMemory, WhatTheKernelUsesStaticallyCounts) {
    // 4 KiB of its own: 48 KiB more is above the default limit.
    const auto kernel = compile(1024);
    EXPECT_TRUE(reverses(kernel, 44 * 1024));
    EXPECT_TRUE(reverses(kernel, 48 * 1024));
    EXPECT_TRUE(reverses(kernel, jit->device.get_num_smem_bytes() - 4 * 1024));
    EXPECT_CONTAINS(
        message_of<LaunchError>([&] { reverses(kernel, jit->device.get_num_smem_bytes()); }),
        "CUDA_ERROR_INVALID_VALUE");
}

}  // namespace
