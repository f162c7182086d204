// Several devices: one kernel serves all of its architecture, and is refused by others.
#include <thread>

#include "unit/cuda/fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using cuda::LaunchOptions;

class CudaMultiDevice : public CudaStandIn {
protected:
    stand_in::Launch launch(const std::shared_ptr<cuda::Kernel>& kernel,
                            const LaunchOptions& options = {}) {
        jit().launch(
            kernel,
            LaunchOptions{.grid_dim = dim3(1), .block_dim = dim3(32)}.override_with(options));
        return stand_in->last_launch();
    }
    JIT& jit() {
        if (jit_ == nullptr)
            jit_ = std::make_unique<JIT>(config());
        return *jit_;
    }

private:
    std::unique_ptr<JIT> jit_;
};

TEST_F(CudaMultiDevice, OneKernelRunsOnWhicheverIsCurrent) {
    restart("9.0,9.0,9.0");
    const auto kernel = load(kNothing);
    for (const int device : {1, 0, 2, 1}) {
        auto* context = use_device(device);
        const auto record = launch(kernel);
        EXPECT_EQ(record.device, device);
        EXPECT_EQ(record.context, context);
    }
    EXPECT_EQ(stand_in->library_loads(), 1U);
}

TEST_F(CudaMultiDevice, SharedMemoryIsOptedIntoOnEach) {
    restart("9.0,9.0");
    const auto kernel = load(kNothing);
    for (const int device : {0, 1}) {
        use_device(device);
        const auto record = launch(kernel, {.num_smem_bytes = 100000});
        EXPECT_EQ(record.device, device);
        EXPECT_EQ(record.max_dynamic_smem, 100000);
        launch(kernel, {.num_smem_bytes = 90000});
    }
    EXPECT_EQ(stand_in->calls("cuKernelSetAttribute"), 2U);
    use_device(0);
    EXPECT_EQ(launch(kernel, {.num_smem_bytes = 100000}).device, 0);
    EXPECT_EQ(stand_in->calls("cuKernelSetAttribute"), 2U);
}

TEST_F(CudaMultiDevice, NonPortableClustersAreAllowedOnEach) {
    restart("9.0,9.0");
    const auto kernel = load(kNothing);
    const LaunchOptions large{.grid_dim = dim3(16),
                              .cluster_dim = dim3(16, 1, 1),
                              .nonportable_cluster_size_allowed = true};
    use_device(0);
    EXPECT_EQ(launch(kernel, large).nonportable, 1);
    use_device(1);
    EXPECT_EQ(launch(kernel).nonportable, 0);
    EXPECT_EQ(launch(kernel, large).nonportable, 1);
    EXPECT_EQ(launch(kernel).nonportable, 0);
    use_device(0);
    EXPECT_EQ(launch(kernel).nonportable, 0);  // set back there, too
}

TEST_F(CudaMultiDevice, ThreadsUseTheirOwnDevice) {
    restart("9.0,9.0,9.0,9.0");
    const auto kernel = load(kScale);
    jit();
    std::vector<std::thread> threads;
    for (int device = 0; device < 4; ++device)
        threads.emplace_back([&, device] {
            use_device(device);
            const float* pointer = nullptr;
            for (int i = 0; i < 50; ++i)
                jit().launch(
                    kernel,
                    {.num_smem_bytes = 50000 + i, .grid_dim = dim3(1), .block_dim = dim3(32)},
                    pointer, pointer, device);
        });
    for (auto& thread : threads) thread.join();
    const auto records = stand_in->launches();
    ASSERT_EQ(records.size(), 200U);
    for (const auto& record : records) EXPECT_EQ(record.device, record.argument<int>(2));
}

TEST_F(CudaMultiDevice, AnotherArchitectureIsRefusedByName) {
    restart("9.0,10.0");
    const auto kernel = load(kNothing, "90a");
    use_device(1);
    const auto text = message_of<LaunchError>([&] { launch(kernel); });
    EXPECT_CONTAINS(text, "CUDA_ERROR_NO_BINARY_FOR_GPU");
    EXPECT_CONTAINS(text, "compiled for sm_90");
    EXPECT_CONTAINS(text, "device 1 (Stand-in GPU 10.0, sm_100)");
    EXPECT_CONTAINS(text, "one runtime for each architecture");
    use_device(0);
    EXPECT_EQ(launch(kernel).device, 0);
}

TEST_F(CudaMultiDevice, OtherErrorsOfCodeThatFitsDoNotBlameTheArchitecture) {
    restart("8.9");
    const auto kernel = load(kNothing, "80");
    use_device(0);
    EXPECT_EQ(launch(kernel).name, "nothing");
    const auto text = message_of<LaunchError>([&] { launch(kernel, {.block_dim = dim3(2000)}); });
    EXPECT_CONTAINS(text, "CUDA_ERROR_INVALID_VALUE");
    EXPECT_EQ(text.find("compiled for"), std::string::npos);
}

TEST_F(CudaMultiDevice, ARuntimeForEachCompilesForItsOwn) {
    restart("9.0,10.0");
    use_device(0);
    JIT hopper(config());
    const auto first = hopper.cache_key(kNothing);
    const auto hopper_kernel = hopper.compile("nothing", kNothing);
    use_device(1);
    EXPECT_EQ(hopper.cache_key(kNothing), first);  // its device does not change
    JIT blackwell(config());
    EXPECT_NE(blackwell.cache_key(kNothing), first);
    const auto blackwell_kernel = blackwell.compile("nothing", kNothing);
    EXPECT_EQ(hopper_kernel->arch(), 90);
    EXPECT_EQ(blackwell_kernel->arch(), 100);
    blackwell.launch(blackwell_kernel, {.grid_dim = dim3(1), .block_dim = dim3(1)});
    EXPECT_EQ(stand_in->last_launch().device, 1);
}

TEST_F(CudaMultiDevice, AThreadWithoutAContextGetsTheRuntimesDevice) {
    restart("9.0,9.0");
    use_device(1);
    jit().device.get_index();
    const auto kernel = load(kNothing);
    std::thread([&] {
        EXPECT_EQ(launch(kernel).device, 1);
        EXPECT_EQ(launch(kernel, {.num_smem_bytes = 60000}).max_dynamic_smem, 60000);
    }).join();
}

}  // namespace
