// A tensor map as an argument: the copy engine (TMA) reads the descriptor from the parameters.
#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

using GpuTensorMap = GpuTest;

constexpr int kRows = 48, kColumns = 64, kBoxRows = 16, kBoxColumns = 32;

constexpr const char* kBox = R"(
#include <cstdint>
#include <cuda.h>
extern "C" __global__ void box(float* output, const __grid_constant__ CUtensorMap map, int x,
                               int y) {
    __shared__ alignas(128) float box[16 * 32];
    __shared__ alignas(8) std::uint64_t barrier;
    const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(box));
    const auto done = static_cast<std::uint32_t>(__cvta_generic_to_shared(&barrier));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(done) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     ::"r"(done), "r"(static_cast<std::uint32_t>(sizeof(box))) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%3, %4}], [%2];"
                     ::"r"(at), "l"(&map), "r"(done), "r"(x), "r"(y) : "memory");
    }
    __syncthreads();
    for (std::uint32_t ready = 0; ready == 0;)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
                     "selp.u32 %0, 1, 0, p; }" : "=r"(ready) : "r"(done) : "memory");
    for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) output[i] = box[i];
}
)";

TEST_F(GpuTensorMap, TheCopyEngineFetchesABox) {
    if (!kernels_run())
        GTEST_SKIP() << "the stand-in makes no tensor maps";
    if (jit->device.get_arch_major() < 9)
        GTEST_SKIP() << "the device has no TMA";
    std::vector<float> input(kRows * kColumns);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = 0.5f * static_cast<float>(i);
    const DeviceArray<float> in(input), out(kBoxRows * kBoxColumns);

    CUtensorMap map;
    const cuuint64_t sizes[] = {kColumns, kRows};
    const cuuint64_t strides[] = {kColumns * sizeof(float)};
    const cuuint32_t box[] = {kBoxColumns, kBoxRows};
    const cuuint32_t steps[] = {1, 1};
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuTensorMapEncodeTiled(
        &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, in.get(), sizes, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));

    const auto kernel = jit->compile("box", kBox);
    EXPECT_EQ(kernel->param_sizes(), (std::vector<std::uint32_t>{8, 128, 4, 4}));
    // Inside, and over the right and the lower edge, where it reads zeros.
    for (const auto& [x, y] : {std::pair(0, 0), std::pair(32, 16), std::pair(48, 40)}) {
        std::vector<float> expected;
        for (int row = y; row < y + kBoxRows; ++row)
            for (int column = x; column < x + kBoxColumns; ++column)
                expected.push_back(row < kRows && column < kColumns ? input[row * kColumns + column]
                                                                    : 0.0f);
        jit->launch(kernel, {.grid_dim = dim3(1), .block_dim = dim3(128)}, out.get(), map, x, y);
        EXPECT_TRUE(same(out.download(), expected)) << x << ", " << y;
    }
}

/// On the stand-in too: the kernel compiles and has these parameters.
TEST_F(GpuTensorMap, TheKernelCompiles) {
    EXPECT_EQ(jit->compile("box", kBox)->param_sizes(), (std::vector<std::uint32_t>{8, 128, 4, 4}));
}

}  // namespace
