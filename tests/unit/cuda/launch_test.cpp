// Every launch option on its way to the driver, and what is refused before it gets there.
#include <thread>

#include "unit/cuda/fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using cuda::LaunchOptions;
using Dim = std::vector<unsigned>;

constexpr const char* kDynamic = R"(
extern "C" __global__ void dynamic(int* out) {
    extern __shared__ int data[];
    data[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = data[blockDim.x - 1 - threadIdx.x];
}
)";

class CudaLaunch : public CudaStandIn {
protected:
    void SetUp() override {
        CudaStandIn::SetUp();
        if (IsSkipped())
            return;
        use_device(0);
        jit = std::make_unique<JIT>(config());
        nothing = load(kNothing);
        dynamic = load(kDynamic);
        stand_in->reset();
    }

    /// Launches and returns what the driver was given.
    stand_in::Launch launch(const LaunchOptions& options) {
        const auto before = stand_in->launch_count();
        jit->launch(nothing, options);
        EXPECT_EQ(stand_in->launch_count(), before + 1);
        return stand_in->last_launch();
    }
    stand_in::Launch launch_with_smem(int bytes) {
        int* const pointer = nullptr;
        jit->launch(dynamic, {.num_smem_bytes = bytes, .grid_dim = dim3(1), .block_dim = dim3(32)},
                    pointer);
        return stand_in->last_launch();
    }
    std::string refusal(const LaunchOptions& options) {
        const auto before = stand_in->launch_count();
        auto text = message_of<LaunchError>([&] { jit->launch(nothing, options); });
        EXPECT_CONTAINS(text, "Cannot launch kernel nothing");
        EXPECT_EQ(stand_in->launch_count(), before);
        return text;
    }

    std::unique_ptr<JIT> jit;
    std::shared_ptr<cuda::Kernel> nothing, dynamic;
};

TEST_F(CudaLaunch, GridAndBlockAreEnough) {
    const auto record = launch({.grid_dim = dim3(5, 6, 7), .block_dim = dim3(8, 9, 2)});
    EXPECT_EQ(record.name, "nothing");
    EXPECT_EQ(xyz(record.grid), (Dim{5, 6, 7}));
    EXPECT_EQ(xyz(record.block), (Dim{8, 9, 2}));
    EXPECT_EQ(xyz(record.cluster), (Dim{0, 0, 0}));
    EXPECT_EQ(record.smem, 0U);
    EXPECT_EQ(record.stream, nullptr);
    EXPECT_EQ(record.cooperative, 0);
    EXPECT_EQ(record.pdl, 0);
    EXPECT_EQ(record.nonportable, 0);
    EXPECT_EQ(record.through_kernel, 1);
    // One call of the driver and no other.
    EXPECT_EQ(stand_in->calls(), 1U);
    EXPECT_EQ(stand_in->calls("cuLaunchKernelEx"), 1U);
}

TEST_F(CudaLaunch, AllOptionsAtOnce) {
    auto* stream = make_stream();
    const auto record = launch({
        .stream = stream,
        .num_smem_bytes = 60000,
        .grid_dim = dim3(16, 2, 1),
        .block_dim = dim3(64, 1, 1),
        .cluster_dim = dim3(16, 1, 1),
        .cooperative = true,
        .enable_pdl = true,
        .nonportable_cluster_size_allowed = true,
    });
    EXPECT_EQ(record.stream, stream);
    EXPECT_EQ(record.smem, 60000U);
    EXPECT_EQ(xyz(record.grid), (Dim{16, 2, 1}));
    EXPECT_EQ(xyz(record.block), (Dim{64, 1, 1}));
    EXPECT_EQ(xyz(record.cluster), (Dim{16, 1, 1}));
    EXPECT_EQ(record.cooperative, 1);
    EXPECT_EQ(record.pdl, 1);
    EXPECT_EQ(record.nonportable, 1);
    EXPECT_EQ(record.max_dynamic_smem, 60000);
}

TEST_F(CudaLaunch, ClustersOfEveryShape) {
    for (const auto& cluster : {dim3(4, 1, 1), dim3(1, 4, 1), dim3(1, 1, 2), dim3(2, 2, 2)}) {
        const auto record =
            launch({.grid_dim = dim3(8, 8, 8), .block_dim = dim3(32), .cluster_dim = cluster});
        EXPECT_EQ(xyz(record.cluster), (Dim{cluster.x, cluster.y, cluster.z}));
    }
}

TEST_F(CudaLaunch, CooperativeAndPdlAreIndependent) {
    const LaunchOptions base{.grid_dim = dim3(2), .block_dim = dim3(32)};
    auto record = launch(base.override_with({.cooperative = true}));
    EXPECT_EQ(std::pair(record.cooperative, record.pdl), std::pair(1, 0));
    record = launch(base.override_with({.enable_pdl = true}));
    EXPECT_EQ(std::pair(record.cooperative, record.pdl), std::pair(0, 1));
}

TEST_F(CudaLaunch, TheSharedMemoryAttributeIsSetOnceAndOnlyRaised) {
    const auto sets = [&] { return stand_in->calls("cuKernelSetAttribute"); };
    EXPECT_EQ(launch_with_smem(48 << 10).smem, 49152U);
    EXPECT_EQ(sets(), 0U);  // allowed anyway
    EXPECT_EQ(launch_with_smem(60000).max_dynamic_smem, 60000);
    EXPECT_EQ(sets(), 1U);
    EXPECT_EQ(launch_with_smem(60000).smem, 60000U);
    EXPECT_EQ(launch_with_smem(50000).max_dynamic_smem, 60000);
    EXPECT_EQ(sets(), 1U);
    EXPECT_EQ(launch_with_smem(227 << 10).max_dynamic_smem, 232448);
    EXPECT_EQ(sets(), 2U);
    stand_in->reset();
    launch_with_smem(100000);
    EXPECT_EQ(stand_in->calls(), 1U);
}

TEST_F(CudaLaunch, WhatTheKernelsOwnerHasSetIsNotLowered) {
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuKernelSetAttribute(
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000, dynamic->kernel_handle, 0));
    EXPECT_EQ(launch_with_smem(60000).max_dynamic_smem, 200000);
    EXPECT_EQ(stand_in->calls("cuKernelSetAttribute"), 1U);
}

TEST_F(CudaLaunch, MoreSharedMemoryThanThereIsIsADriverError) {
    const auto text = message_of<LaunchError>([&] { launch_with_smem((227 << 10) + 1); });
    EXPECT_CONTAINS(text, "dynamic shared memory");
    EXPECT_CONTAINS(text, "CUDA_ERROR_INVALID_VALUE");
    EXPECT_CONTAINS(text, "232449 bytes of dynamic shared memory");
    EXPECT_EQ(launch_with_smem(227 << 10).smem, 232448U);  // and does no harm
}

TEST_F(CudaLaunch, NonPortableClustersAreAllowedAndForbiddenAgain) {
    const LaunchOptions large{
        .grid_dim = dim3(16), .block_dim = dim3(32), .cluster_dim = dim3(16, 1, 1)};
    EXPECT_CONTAINS(refusal(large), "CUDA_ERROR_INVALID_CLUSTER_SIZE");
    const auto allowed = large.override_with({.nonportable_cluster_size_allowed = true});
    EXPECT_EQ(launch(allowed).nonportable, 1);
    EXPECT_EQ(launch(allowed).nonportable, 1);
    EXPECT_EQ(stand_in->calls("cuKernelSetAttribute"), 1U);
    EXPECT_CONTAINS(refusal(large), "CUDA_ERROR_INVALID_CLUSTER_SIZE");
    EXPECT_EQ(launch({.grid_dim = dim3(1), .block_dim = dim3(32)}).nonportable, 0);
    EXPECT_EQ(launch(allowed).nonportable, 1);
}

TEST_F(CudaLaunch, OptionsComeFromTheDefaultsUnlessGiven) {
    auto* stream = make_stream();
    auto& defaults = jit->default_launch_options;
    defaults.grid_dim = dim3(3);
    defaults.block_dim = dim3(64);
    defaults.enable_pdl = true;
    defaults.num_smem_bytes = 128;
    defaults.stream = stream;
    defaults.cluster_dim = dim3(3, 1, 1);
    auto record = launch({});
    EXPECT_EQ(xyz(record.grid), (Dim{3, 1, 1}));
    EXPECT_EQ(xyz(record.block), (Dim{64, 1, 1}));
    EXPECT_EQ(xyz(record.cluster), (Dim{3, 1, 1}));
    EXPECT_EQ(record.pdl, 1);
    EXPECT_EQ(record.smem, 128U);
    EXPECT_EQ(record.stream, stream);
    record = launch({.stream = nullptr,
                     .num_smem_bytes = 0,
                     .grid_dim = dim3(4),
                     .cluster_dim = dim3(1, 1, 1),
                     .enable_pdl = false});
    EXPECT_EQ(xyz(record.grid), (Dim{4, 1, 1}));
    EXPECT_EQ(xyz(record.block), (Dim{64, 1, 1}));
    EXPECT_EQ(xyz(record.cluster), (Dim{0, 0, 0}));
    EXPECT_EQ(record.pdl, 0);
    EXPECT_EQ(record.smem, 0U);
    EXPECT_EQ(record.stream, nullptr);
}

TEST_F(CudaLaunch, WhatIsRequired) {
    EXPECT_CONTAINS(refusal({.block_dim = dim3(32)}), "grid dimension must be specified");
    EXPECT_CONTAINS(refusal({.grid_dim = dim3(1)}), "block dimension must be specified");
    const LaunchOptions enough{.grid_dim = dim3(1), .block_dim = dim3(32)};
    jit->default_launch_options.num_smem_bytes = std::nullopt;
    EXPECT_CONTAINS(refusal(enough), "shared-memory size must be specified");
    jit->default_launch_options.cluster_dim = std::nullopt;
    EXPECT_CONTAINS(refusal(enough), "cluster dimension must be specified");
}

TEST_F(CudaLaunch, WhatIsOutOfRange) {
    const LaunchOptions good{.grid_dim = dim3(2), .block_dim = dim3(32)};
    const auto with = [&](const LaunchOptions& change) {
        return refusal(good.override_with(change));
    };
    EXPECT_CONTAINS(with({.grid_dim = dim3(1, 0, 1)}),
                    "grid dimension must be positive: (1, 0, 1)");
    EXPECT_CONTAINS(with({.block_dim = dim3(32, 1, 0)}),
                    "block dimension must be positive: (32, 1, 0)");
    EXPECT_CONTAINS(with({.cluster_dim = dim3(0, 1, 1)}),
                    "cluster dimension must be positive: (0, 1, 1)");
    EXPECT_CONTAINS(with({.num_smem_bytes = -1}), "shared-memory size must not be negative: -1");
    EXPECT_CONTAINS(with({.grid_dim = dim3(3), .cluster_dim = dim3(2, 1, 1)}),
                    "grid dimension must be a multiple of the cluster dimension (2, 1, 1)");
}

TEST_F(CudaLaunch, NeedsALoadedKernel) {
    const LaunchOptions good{.grid_dim = dim3(2), .block_dim = dim3(32)};
    EXPECT_CONTAINS(message_of<LaunchError>([&] { jit->launch(nullptr, good); }),
                    "kernel must not be null");
    nothing->unload();
    EXPECT_CONTAINS(refusal(good), "unloaded");
}

TEST_F(CudaLaunch, ADriverErrorTellsTheWholeLaunch) {
    auto* stream = make_stream();
    const auto text = refusal({.stream = stream,
                               .num_smem_bytes = 16,
                               .grid_dim = dim3(4, 2, 1),
                               .block_dim = dim3(1025),
                               .cluster_dim = dim3(2, 2, 1),
                               .cooperative = true,
                               .enable_pdl = true});
    EXPECT_CONTAINS(text, "cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE (1): invalid argument");
    EXPECT_CONTAINS(text, "grid (4, 2, 1), block (1025, 1, 1), 16 bytes of dynamic shared memory");
    EXPECT_CONTAINS(text, str::format("stream {}", static_cast<void*>(stream)));
    EXPECT_CONTAINS(text, "cluster (2, 2, 1), cooperative, PDL");
    EXPECT_EQ(text.find("compiled for"), std::string::npos);
}

TEST_F(CudaLaunch, ErrorsThatMayComeFromEarlierSaySo) {
    stand_in->fail("cuLaunchKernelEx", CUDA_ERROR_ILLEGAL_ADDRESS);
    const auto text = refusal({.grid_dim = dim3(1), .block_dim = dim3(1)});
    EXPECT_CONTAINS(text, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    EXPECT_CONTAINS(text, "It may come from an earlier kernel");
}

TEST_F(CudaLaunch, InACaptureItBecomesANode) {
    auto* stream = make_stream();
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_EQ(launch({.stream = stream, .grid_dim = dim3(2), .block_dim = dim3(32)}).captured, 1);
    int* const pointer = nullptr;
    jit->launch(
        dynamic,
        {.stream = stream, .num_smem_bytes = 60000, .grid_dim = dim3(1), .block_dim = dim3(32)},
        pointer);
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamEndCapture(stream, &graph));
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuGraphInstantiate(&exec, graph, 0));
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuGraphLaunch(exec, stream));
    const auto records = stand_in->launches();
    ASSERT_EQ(records.size(), 4U);
    EXPECT_EQ(records[2].replayed, 1);
    EXPECT_EQ(records[3].smem, 60000U);
}

TEST_F(CudaLaunch, AThreadWithoutAContextGetsTheDevices) {
    jit->device.get_index();
    auto* here = current_context();
    std::thread([&] {
        EXPECT_EQ(launch({.grid_dim = dim3(1), .block_dim = dim3(32)}).context, here);
        EXPECT_EQ(current_context(), here);
    }).join();
    // Also when that is the first thing that anybody does, with a kernel that was loaded without.
    restart("9.0");
    nothing.reset();
    nothing = load(kNothing);
    EXPECT_EQ(launch({.grid_dim = dim3(1), .block_dim = dim3(32)}).device, 0);
}

TEST_F(CudaLaunch, AThreadWithoutAContextGetsTheStreams) {
    CUcontext other = nullptr;
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxGetCurrent(&other));
    auto* stream = make_stream();
    std::thread([&] {
        const auto fresh = load(kNothing);  // its parameters are not known yet
        jit->launch(fresh, {.stream = stream, .grid_dim = dim3(1), .block_dim = dim3(32)});
        EXPECT_EQ(stand_in->last_launch().context, other);
        EXPECT_EQ(stand_in->calls("cuDevicePrimaryCtxRetain"), 0U);
    }).join();
}

}  // namespace
