// Threads that compile and launch, also such that have no context yet.
#include <thread>

#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

using GpuThread = GpuTest;

constexpr const char* kAdd = R"(
extern "C" __global__ void add(int* data, int value) {
    data[blockIdx.x * blockDim.x + threadIdx.x] += value;
}
)";

constexpr int kSize = 32 * 256;

TEST_F(GpuThread, TwoThreadsOnTwoStreams) {
    constexpr int kLaunches = 500;
    const Stream streams[2];
    const DeviceArray<int> data[2] = {DeviceArray<int>(counting(kSize)),
                                      DeviceArray<int>(counting(kSize))};
    std::string errors[2];
    const auto work = [&](int which) {
        try {
            for (int i = 0; i < kLaunches; ++i) {
                const auto kernel = jit->compile("add", kAdd);
                jit->launch(
                    kernel,
                    {.stream = streams[which].get(), .grid_dim = dim3(32), .block_dim = dim3(256)},
                    data[which].get(), which + 1);
            }
            streams[which].synchronize();
        } catch (const std::exception& error) {
            errors[which] = error.what();
        }
    };
    std::thread first(work, 0), second(work, 1);
    first.join();
    second.join();
    for (int which = 0; which < 2; ++which) {
        EXPECT_EQ(errors[which], "");
        EXPECT_TRUE(same(data[which].download(), counting(kSize, kLaunches * (which + 1))));
    }
}

TEST_F(GpuThread, CompilesAndLaunchesWithoutAContext) {
    const DeviceArray<int> data(counting(kSize));
    const Stream stream;
    std::string problem;
    // Once on a stream, whose context is taken, and once on the default stream.
    for (const CUstream target : {stream.get(), CUstream(nullptr)})
        std::thread([&] {
            try {
                CUcontext context = nullptr;
                DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxGetCurrent(&context));
                EXPECT_EQ(context, nullptr);
                const auto own = make();
                const auto kernel = own->compile("add", kAdd);
                own->launch(kernel,
                            {.stream = target, .grid_dim = dim3(32), .block_dim = dim3(256)},
                            data.get(), 10);
                DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamSynchronize(target));
            } catch (const std::exception& error) {
                problem += error.what();
            }
        }).join();
    EXPECT_EQ(problem, "");
    EXPECT_TRUE(same(data.download(), counting(kSize, 20)));
}

TEST_F(GpuThread, ManyThreadsCompileTheSameKernels) {
    constexpr int kThreads = 8, kKernels = 4;
    const auto source = [](int which) {
        return "extern \"C\" __global__ void add_" + std::to_string(which) +
               "(int* data) { atomicAdd(data + " + std::to_string(which) + ", " +
               std::to_string(which + 1) + "); }\n";
    };
    const DeviceArray<int> data(std::vector<int>(kKernels, 0));
    std::vector<std::string> errors(kThreads);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&, thread] {
            try {
                for (int i = 0; i < kKernels; ++i) {
                    const auto kernel = jit->compile("add", source((thread + i) % kKernels));
                    jit->launch(kernel,
                                {.stream = nullptr, .grid_dim = dim3(1), .block_dim = dim3(32)},
                                data.get());
                }
            } catch (const std::exception& error) {
                errors[thread] = error.what();
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(errors, std::vector<std::string>(kThreads));
    std::vector<int> expected;
    for (int i = 0; i < kKernels; ++i) expected.push_back(kThreads * 32 * (i + 1));
    EXPECT_TRUE(same(data.download(), expected));
}

}  // namespace
