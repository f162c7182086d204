// Cooperative launches, where all blocks wait for each other, and dependent launches (PDL).
#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

using GpuCooperative = GpuTest;
using GpuDependentLaunch = GpuTest;

/// Every block gets the sum over all blocks.
constexpr const char* kTotal = R"(
#include <cooperative_groups.h>
extern "C" __global__ void total(unsigned long long* output, unsigned long long* partial,
                                 const int* input, int count) {
    const auto grid = cooperative_groups::this_grid();
    __shared__ unsigned long long sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    for (int i = grid.thread_rank(); i < count; i += grid.size())
        atomicAdd(&sum, static_cast<unsigned long long>(input[i]));
    __syncthreads();
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
    grid.sync();
    if (threadIdx.x == 0) {
        unsigned long long all = 0;
        for (int i = 0; i < gridDim.x; ++i) all += partial[i];
        output[blockIdx.x] = all;
    }
}
)";

TEST_F(GpuCooperative, TheGridSynchronizes) {
    const auto blocks = static_cast<unsigned>(jit->device.get_num_sms());
    const int count = 1'000'000;
    const auto input = counting(count);
    const DeviceArray<int> in(input);
    const DeviceArray<unsigned long long> out(blocks), partial(blocks);
    const auto kernel = jit->compile("total", kTotal);
    for (int repeat = 0; repeat < 3; ++repeat)
        jit->launch(kernel, {.grid_dim = dim3(blocks), .block_dim = dim3(256), .cooperative = true},
                    out.get(), partial.get(), in.cget(), count);
    EXPECT_TRUE(
        same(out.download(), std::vector<unsigned long long>(blocks, 999'999ULL * 1'000'000 / 2)));
}

TEST_F(GpuCooperative, MoreBlocksThanRunAtOnceAreRefused) {
    const DeviceArray<unsigned long long> memory(1);
    const DeviceArray<int> in(1);
    const int count = 0;
    const auto kernel = jit->compile("total", kTotal);
    const auto message = message_of<LaunchError>([&] {
        jit->launch(kernel,
                    {.grid_dim = dim3(1 << 20), .block_dim = dim3(256), .cooperative = true},
                    memory.get(), memory.get(), in.cget(), count);
    });
    EXPECT_CONTAINS(message, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
    EXPECT_CONTAINS(message, "cooperative");
}

/// Lets the next launch start at once, then waits for the one before.
constexpr const char* kStep = R"(
extern "C" __global__ void step(unsigned* data, unsigned number) {
    asm volatile("griddepcontrol.launch_dependents;");
    const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    data[index] = data[index] * 3 + number + index;
}
)";

constexpr unsigned kSize = 64 * 256;

std::vector<unsigned> after_steps(unsigned steps, unsigned repeats = 1) {
    std::vector<unsigned> out(kSize, 1);
    for (unsigned repeat = 0; repeat < repeats; ++repeat)
        for (unsigned step = 0; step < steps; ++step)
            for (unsigned i = 0; i < kSize; ++i) out[i] = out[i] * 3 + step + i;
    return out;
}

TEST_F(GpuDependentLaunch, AChainIsInOrder) {
    const auto kernel = jit->compile("step", kStep);
    const DeviceArray<unsigned> data(std::vector<unsigned>(kSize, 1));
    const Stream stream;
    for (unsigned step = 0; step < 200; ++step)
        jit->launch(kernel,
                    {.stream = stream.get(),
                     .grid_dim = dim3(64),
                     .block_dim = dim3(256),
                     .enable_pdl = true},
                    data.get(), step);
    stream.synchronize();
    EXPECT_TRUE(same(data.download(), after_steps(200)));
}

TEST_F(GpuDependentLaunch, ItCanBeALibrarysDefault) {
    jit->default_launch_options.enable_pdl = true;
    jit->default_launch_options.block_dim = dim3(256);
    const auto kernel = jit->compile("step", kStep);
    const DeviceArray<unsigned> data(std::vector<unsigned>(kSize, 1));
    for (unsigned step = 0; step < 50; ++step)
        // Off again for every third: such a launch waits by itself.
        jit->launch(kernel, {.grid_dim = dim3(64), .enable_pdl = step % 3 != 0}, data.get(), step);
    EXPECT_TRUE(same(data.download(), after_steps(50)));
}

TEST_F(GpuDependentLaunch, AChainIsCaptured) {
    const auto kernel = jit->compile("step", kStep);
    const DeviceArray<unsigned> data(std::vector<unsigned>(kSize, 1));
    const Stream stream;
    DJ_CUDA_DRIVER_CHECK(
        driver::lazy_cuStreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (unsigned step = 0; step < 10; ++step)
        jit->launch(kernel,
                    {.stream = stream.get(),
                     .grid_dim = dim3(64),
                     .block_dim = dim3(256),
                     .enable_pdl = true},
                    data.get(), step);
    CUgraph graph = nullptr;
    CUgraphExec runnable = nullptr;
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamEndCapture(stream.get(), &graph));
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuGraphInstantiate(&runnable, graph, 0));
    for (int repeat = 0; repeat < 3; ++repeat)
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuGraphLaunch(runnable, stream.get()));
    stream.synchronize();
    EXPECT_TRUE(same(data.download(), after_steps(10, 3)));
    driver::lazy_cuGraphExecDestroy(runnable);
    driver::lazy_cuGraphDestroy(graph);
}

/// The runtime's own functions for the same.
TEST_F(GpuDependentLaunch, WithTheFunctionsOfCuda) {
    const auto kernel = jit->compile("step", R"(
        extern "C" __global__ void step(unsigned* data, unsigned number) {
            cudaTriggerProgrammaticLaunchCompletion();
            const unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
            cudaGridDependencySynchronize();
            data[index] = data[index] * 3 + number + index;
        }
    )");
    const DeviceArray<unsigned> data(std::vector<unsigned>(kSize, 1));
    for (unsigned step = 0; step < 20; ++step)
        jit->launch(kernel, {.grid_dim = dim3(64), .block_dim = dim3(256), .enable_pdl = true},
                    data.get(), step);
    EXPECT_TRUE(same(data.download(), after_steps(20)));
}

}  // namespace
