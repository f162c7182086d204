// Binaries that do not load, and kernels that are gone.
#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

using GpuLoad = GpuTest;

constexpr const char* kOneKernel = "extern \"C\" __global__ void one(int* data) { *data = 1; }\n";
const cuda::LaunchOptions kOne{.grid_dim = dim3(1), .block_dim = dim3(1)};

TEST_F(GpuLoad, AnotherArchitectureIsNamed) {
    const std::string other = jit->device.get_arch_major() == 9 ? "100a" : "90a";
    const DeviceArray<int> data(1);
    // A driver may look at the binary when it is loaded, or when it is first launched.
    const auto message = message_of<Error>(
        [&] { jit->launch(jit->compile("one", kOneKernel, {.arch = other}), kOne, data.get()); });
    EXPECT_CONTAINS(message, "compiled for sm_" + other.substr(0, other.size() - 1));
    EXPECT_CONTAINS(message, std::string("device 0 (") + jit->device.get_prop().name);
    // The same source for this device works all the same.
    jit->launch(jit->compile("one", kOneKernel), kOne, data.get());
    EXPECT_TRUE(same(data.download(), std::vector<int>{1}));
}

TEST_F(GpuLoad, ASourceHasOneKernel) {
    const std::string two = std::string(kOneKernel) + "__global__ void other(float*) {}\n";
    const auto message = message_of<LoadError>([&] { jit->compile("two", two); });
    EXPECT_CONTAINS(message, "expected exactly one kernel");
    EXPECT_CONTAINS(message, "other(float*)");
    EXPECT_CONTAINS(
        message_of<LoadError>([&] { jit->compile("none", "__device__ int nothing;\n"); }),
        "expected exactly one kernel");
}

TEST_F(GpuLoad, AnUnloadedKernelIsNotLaunched) {
    const DeviceArray<int> data(1);
    const auto kernel = jit->compile("one", kOneKernel);
    jit->launch(kernel, kOne, data.get());
    EXPECT_TRUE(same(data.download(), std::vector<int>{1}));
    kernel->unload();
    kernel->unload();
    EXPECT_CONTAINS(message_of<LaunchError>([&] { jit->launch(kernel, kOne, data.get()); }),
                    "unloaded");
}

TEST_F(GpuLoad, ADirectoryIsLoadedDirectly) {
    const auto directory = jit->compile_without_load("one", kOneKernel);
    const auto kernel = CUDA::load(directory, jit->env);
    const DeviceArray<int> data(1);
    jit->launch(kernel, kOne, data.get());
    EXPECT_TRUE(same(data.download(), std::vector<int>{1}));
}

TEST_F(GpuLoad, ADamagedEntryIsCompiledAgain) {
    const TempDir temp("plain");
    const ScopedEnv cache("GPUTEST_JIT_CACHE_DIR", temp.path().string());
    const ScopedEnv log("GPUTEST_JIT_LOG_FILE", (temp / "log").string());
    const auto directory = make()->compile_without_load("one", kOneKernel);
    auto bytes = slurp(directory / "kernel.cubin");
    bytes[bytes.size() / 2] ^= 1;
    write(directory / "kernel.cubin", bytes);
    const auto again = make();
    const DeviceArray<int> data(1);
    again->launch(again->compile("one", kOneKernel), kOne, data.get());
    EXPECT_TRUE(same(data.download(), std::vector<int>{1}));
    EXPECT_CONTAINS(slurp(temp / "log"), "damaged");
}

TEST_F(GpuLoad, LaunchesThatTheDriverRefusesAreDescribed) {
    const DeviceArray<int> data(1);
    const auto kernel = jit->compile("one", kOneKernel);
    const auto message = message_of<LaunchError>([&] {
        jit->launch(kernel, {.grid_dim = dim3(2, 3, 4), .block_dim = dim3(4096)}, data.get());
    });
    EXPECT_CONTAINS(message, "one");
    EXPECT_CONTAINS(message, "grid (2, 3, 4), block (4096, 1, 1)");
    EXPECT_CONTAINS(message, "CUDA_ERROR_INVALID_VALUE");
    jit->launch(kernel, kOne, data.get());
    EXPECT_TRUE(same(data.download(), std::vector<int>{1}));
}

}  // namespace
