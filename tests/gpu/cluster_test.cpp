// Thread block clusters: blocks that run together and read each other's shared memory.
#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

/// Each block gets what the next one of its cluster has in its shared memory.
constexpr const char* kNext = R"(
#include <cooperative_groups.h>
#ifndef ATTRIBUTES
#define ATTRIBUTES
#endif
extern "C" __global__ void ATTRIBUTES next(int* output) {
    __shared__ int mine;
    const auto cluster = cooperative_groups::this_cluster();
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    if (threadIdx.x == 0)
        mine = block * 10 + 7;
    cluster.sync();
    const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    if (threadIdx.x == 0)
        output[block] = *cluster.map_shared_rank(&mine, next);
    cluster.sync();  // no block leaves while another reads its memory
}
)";

unsigned volume(dim3 dim) { return dim.x * dim.y * dim.z; }

/// What the kernel should give, block by block.
std::vector<int> expected_of(dim3 grid, dim3 cluster) {
    std::vector<int> out;
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                const unsigned rank =
                    x % cluster.x + cluster.x * (y % cluster.y + cluster.y * (z % cluster.z));
                const unsigned next = (rank + 1) % volume(cluster);
                const unsigned nx = x / cluster.x * cluster.x + next % cluster.x;
                const unsigned ny = y / cluster.y * cluster.y + next / cluster.x % cluster.y;
                const unsigned nz = z / cluster.z * cluster.z + next / cluster.x / cluster.y;
                out.push_back(static_cast<int>((nx + grid.x * (ny + grid.y * nz)) * 10 + 7));
            }
    return out;
}

class GpuCluster : public GpuTest {
protected:
    std::shared_ptr<cuda::Kernel> compile(const std::string& before = "") {
        return jit->compile("next", before + kNext);
    }

    testing::AssertionResult works(const std::shared_ptr<cuda::Kernel>& kernel, dim3 grid,
                                   dim3 cluster, cuda::LaunchOptions options = {}) {
        const DeviceArray<int> out(volume(grid));
        options.grid_dim = grid;
        options.block_dim = dim3(64);
        if (volume(cluster) > 1)
            options.cluster_dim = cluster;
        jit->launch(kernel, options, out.get());
        return same(out.download(), expected_of(grid, cluster));
    }
};

TEST_F(GpuCluster, OneDimension) {
    const auto kernel = compile();
    EXPECT_TRUE(works(kernel, dim3(24), dim3(1)));
    EXPECT_TRUE(works(kernel, dim3(24), dim3(2)));
    EXPECT_TRUE(works(kernel, dim3(24), dim3(3)));
    EXPECT_TRUE(works(kernel, dim3(24), dim3(8)));
}

TEST_F(GpuCluster, TwoDimensions) {
    const auto kernel = compile();
    EXPECT_TRUE(works(kernel, dim3(6, 4), dim3(2, 2)));
    EXPECT_TRUE(works(kernel, dim3(3, 8), dim3(1, 4)));
}

TEST_F(GpuCluster, ThreeDimensions) {
    const auto kernel = compile();
    EXPECT_TRUE(works(kernel, dim3(4, 6, 2), dim3(2, 2, 2)));
    EXPECT_TRUE(works(kernel, dim3(4, 3, 4), dim3(1, 1, 4)));
}

TEST_F(GpuCluster, WhatTheKernelDeclaresIsTheDefault) {
    const auto kernel = compile("#define ATTRIBUTES __cluster_dims__(4, 1, 1)");
    const DeviceArray<int> out(16);
    jit->launch(kernel, {.grid_dim = dim3(16), .block_dim = dim3(32)}, out.get());
    EXPECT_TRUE(same(out.download(), expected_of(dim3(16), dim3(4))));
}

TEST_F(GpuCluster, SixteenBlocksAreAllowedAndThenNoMore) {
    const auto kernel = compile();
    const cuda::LaunchOptions allowed{.nonportable_cluster_size_allowed = true};
    const auto refused = [&] {
        const auto message = message_of<LaunchError>([&] { works(kernel, dim3(32), dim3(16)); });
        EXPECT_CONTAINS(message, "cluster (16, 1, 1)");
    };
    refused();
    EXPECT_TRUE(works(kernel, dim3(32), dim3(16), allowed));
    EXPECT_TRUE(works(kernel, dim3(32), dim3(4, 1, 1), allowed));
    // The permission was of those launches.
    refused();
    EXPECT_TRUE(works(kernel, dim3(32), dim3(8)));
    EXPECT_TRUE(works(kernel, dim3(8, 4), dim3(4, 4), allowed));
}

TEST_F(GpuCluster, AGridThatIsNoMultipleIsRefused) {
    const auto kernel = compile();
    const auto message = message_of<LaunchError>([&] { works(kernel, dim3(9), dim3(2)); });
    EXPECT_CONTAINS(message, "must be a multiple of the cluster dimension (2, 1, 1)");
}

TEST_F(GpuCluster, WithMuchSharedMemory) {
    const auto kernel = compile();
    EXPECT_TRUE(works(kernel, dim3(8), dim3(4), {.num_smem_bytes = 96 * 1024}));
}

}  // namespace
