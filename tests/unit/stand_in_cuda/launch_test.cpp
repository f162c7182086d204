// What a launch has to keep to.
#include "unit/stand_in_cuda/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInLaunch : public KernelsTest {
protected:
    CUresult blocks(const char* name, unsigned x, unsigned y = 1, unsigned z = 1) {
        auto what = config();
        what.blockDimX = x;
        what.blockDimY = y;
        what.blockDimZ = z;
        return launch(name, what);
    }
    CUresult grid(const char* name, unsigned x, unsigned y, unsigned z,
                  std::vector<CUlaunchAttribute> attributes = {}) {
        auto what = config();
        what.gridDimX = x;
        what.gridDimY = y;
        what.gridDimZ = z;
        return launch(name, what, std::move(attributes));
    }
    CUresult smem(const char* name, unsigned bytes) {
        auto what = config();
        what.sharedMemBytes = bytes;
        return launch(name, what);
    }
    CUresult set(CUfunction_attribute which, const char* name, int value) {
        return cuKernelSetAttribute(which, value, kernel(name), 0);
    }
    static constexpr auto kMaxSmem = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    static constexpr auto kNonPortable = CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
};

TEST_F(StandInLaunch, BlocksHaveLimits) {
    EXPECT_CU_OK(blocks("bounded", 64, 2, 1));
    EXPECT_CU_OK(blocks("bounded", 1, 1, 64));
    EXPECT_EQ(blocks("clustered", 1025), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(blocks("clustered", 32, 33), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(blocks("bounded", 1, 1, 65), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(blocks("bounded", 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(blocks("bounded", 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU_OK(cuCtxSynchronize());
}

TEST_F(StandInLaunch, GridsHaveLimits) {
    EXPECT_CU_OK(grid("bounded", 3, 2, 2));
    EXPECT_EQ(grid("bounded", 1, 65536, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(grid("bounded", 1, 1, 65536), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(grid("bounded", 0x80000000U, 1, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(grid("bounded", 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU_OK(cuCtxSynchronize());
}

TEST_F(StandInLaunch, LaunchBoundsAndRegistersLimitTheBlock) {
    EXPECT_CU_OK(blocks("bounded", 128));
    EXPECT_EQ(blocks("bounded", 129), CUDA_ERROR_INVALID_VALUE);
    int fits = 0;
    CU_OK(
        cuKernelGetAttribute(&fits, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel("greedy"), 0));
    EXPECT_CU_OK(blocks("greedy", static_cast<unsigned>(fits)));
    EXPECT_EQ(blocks("greedy", 1024), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    EXPECT_CU_OK(cuCtxSynchronize());
}

TEST_F(StandInLaunch, MoreSharedMemoryHasToBeOptedInto) {
    EXPECT_CU_OK(smem("dynamic_smem", 48 << 10));
    EXPECT_EQ(smem("dynamic_smem", (48 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
    CU_OK(set(kMaxSmem, "dynamic_smem", 100 << 10));
    EXPECT_CU_OK(smem("dynamic_smem", 100 << 10));
    EXPECT_EQ(smem("dynamic_smem", (100 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
    CU_OK(set(kMaxSmem, "dynamic_smem", 227 << 10));
    EXPECT_CU_OK(smem("dynamic_smem", 227 << 10));
    EXPECT_EQ(set(kMaxSmem, "dynamic_smem", (227 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(set(kMaxSmem, "dynamic_smem", -1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU_OK(cuCtxSynchronize());
}

TEST_F(StandInLaunch, StaticSharedMemoryCounts) {
    EXPECT_CU_OK(smem("static_smem", 16 << 10));
    EXPECT_EQ(smem("static_smem", (16 << 10) + 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(set(kMaxSmem, "static_smem", (195 << 10) + 4), CUDA_ERROR_INVALID_VALUE);
    CU_OK(set(kMaxSmem, "static_smem", 195 << 10));
    EXPECT_CU_OK(smem("static_smem", 195 << 10));
    EXPECT_CU_OK(cuCtxSynchronize());
}

TEST_F(StandInLaunch, ClustersOfUpToEightBlocks) {
    EXPECT_CU_OK(grid("bounded", 16, 1, 1, {cluster(8, 1, 1)}));
    EXPECT_CU_OK(grid("bounded", 4, 4, 4, {cluster(2, 2, 2)}));
    EXPECT_CU_OK(grid("bounded", 1, 8, 1, {cluster(1, 4, 1)}));
    // The grid is in whole clusters.
    EXPECT_EQ(grid("bounded", 3, 1, 1, {cluster(2, 1, 1)}), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT_EQ(grid("bounded", 2, 3, 1, {cluster(1, 2, 1)}), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT_EQ(grid("bounded", 2, 1, 1, {cluster(0, 1, 1)}), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT_CU_OK(cuCtxSynchronize());
}

TEST_F(StandInLaunch, LargerClustersHaveToBeAllowed) {
    EXPECT_EQ(grid("bounded", 16, 1, 1, {cluster(16, 1, 1)}), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CU_OK(set(kNonPortable, "bounded", 1));
    EXPECT_CU_OK(grid("bounded", 16, 1, 1, {cluster(16, 1, 1)}));
    EXPECT_EQ(grid("bounded", 32, 1, 1, {cluster(32, 1, 1)}), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CU_OK(set(kNonPortable, "bounded", 0));
    EXPECT_EQ(grid("bounded", 16, 1, 1, {cluster(16, 1, 1)}), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT_CU_OK(cuCtxSynchronize());
}

TEST_F(StandInLaunch, ClustersDeclaredInTheSourceAreKept) {
    EXPECT_CU_OK(grid("clustered", 4, 1, 1));
    EXPECT_CU_OK(grid("clustered", 4, 1, 1, {cluster(2, 1, 1)}));
    EXPECT_EQ(grid("clustered", 3, 1, 1), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT_EQ(grid("clustered", 4, 1, 1, {cluster(4, 1, 1)}), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    EXPECT_EQ(set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, "clustered", 4),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU_OK(cuCtxSynchronize());
}

TEST_F(StandInLaunch, ClustersNeedADeviceThatHasThem) {
    NEEDS_STAND_IN();
    const ScopedEnv devices("DJ_STAND_IN_CUDA_DEVICES", "8.9");
    restart();
    const auto cubin =
        cubin_of("extern \"C\" __global__ void bounded(int* out) { *out = 1; }", "89");
    CU_OK(cuLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    EXPECT_CU_OK(grid("bounded", 2, 1, 1));
    EXPECT_EQ(grid("bounded", 2, 1, 1, {cluster(2, 1, 1)}), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(StandInLaunch, CooperativeGridsFitOnTheDevice) {
    int per_sm = 0;
    CU_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &per_sm, reinterpret_cast<CUfunction>(kernel("bounded")), 128, 0));
    EXPECT_EQ(per_sm, 16);  // 2048 threads of 128
    const auto limit = static_cast<unsigned>(per_sm) * 132;
    auto what = config();
    what.blockDimX = 128;
    what.gridDimX = limit;
    EXPECT_CU_OK(launch("bounded", what, {cooperative()}));
    what.gridDimX = limit + 1;
    EXPECT_EQ(launch("bounded", what, {cooperative()}), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    EXPECT_CU_OK(launch("bounded", what));
    void* params[] = {&memory};
    EXPECT_EQ(cuLaunchCooperativeKernel(reinterpret_cast<CUfunction>(kernel("bounded")), limit + 1,
                                        1, 1, 128, 1, 1, 0, nullptr, params),
              CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    EXPECT_CU_OK(cuCtxSynchronize());
}

TEST_F(StandInLaunch, ArgumentsMustBeThere) {
    auto what = config();
    const auto function = reinterpret_cast<CUfunction>(kernel("plain"));
    EXPECT_EQ(cuLaunchKernelEx(&what, function, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuLaunchKernelEx(nullptr, function, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU_OK(
        cuLaunchKernelEx(&what, reinterpret_cast<CUfunction>(kernel("nothing")), nullptr, nullptr));
    EXPECT_CU_OK(cuCtxSynchronize());
}

TEST_F(StandInLaunch, ArgumentsCanBePackedInABufferOfTheRightSize) {
    struct {
        CUdeviceptr out, in;
        int count;
    } packed{memory, memory, 1};
    std::size_t size = 20;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    auto what = config();
    const auto function = reinterpret_cast<CUfunction>(kernel("plain"));
    EXPECT_CU_OK(cuLaunchKernelEx(&what, function, nullptr, extra));
    for (const std::size_t wrong : {16, 19, 24}) {
        size = wrong;
        EXPECT_EQ(cuLaunchKernelEx(&what, function, nullptr, extra),
                  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
            << wrong;
    }
    void* params[] = {&packed.out, &packed.in, &packed.count};
    size = 20;
    EXPECT_EQ(cuLaunchKernelEx(&what, function, params, extra), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU_OK(cuCtxSynchronize());
}

TEST_F(StandInLaunch, ANullArgumentIsRefused) {
    NEEDS_STAND_IN();  // the real driver reads what is not there
    auto what = config();
    void* params[] = {&memory, nullptr, &memory};
    EXPECT_EQ(
        cuLaunchKernelEx(&what, reinterpret_cast<CUfunction>(kernel("plain")), params, nullptr),
        CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(stand_in().launch_count(), 0U);
}

TEST_F(StandInLaunch, NeedsAKernelAndAContext) {
    auto what = config();
    EXPECT_EQ(cuLaunchKernelEx(&what, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
    const auto function = reinterpret_cast<CUfunction>(kernel("nothing"));
    CU_OK(cuCtxSetCurrent(nullptr));
    EXPECT_EQ(cuLaunchKernelEx(&what, function, nullptr, nullptr), CUDA_ERROR_INVALID_CONTEXT);
    CU_OK(cuCtxSetCurrent(context));
    EXPECT_CU_OK(cuLaunchKernelEx(&what, function, nullptr, nullptr));
}

TEST_F(StandInLaunch, AStreamOfAContextIsEnoughForAKernelHandle) {
    CUstream stream = nullptr;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    auto what = config();
    what.hStream = stream;
    const auto function = reinterpret_cast<CUfunction>(kernel("nothing"));
    CU_OK(cuCtxSetCurrent(nullptr));
    EXPECT_CU_OK(cuLaunchKernelEx(&what, function, nullptr, nullptr));
    CU_OK(cuCtxSetCurrent(context));
    EXPECT_CU_OK(cuStreamSynchronize(stream));
    EXPECT_CU_OK(cuStreamDestroy(stream));
}

}  // namespace
