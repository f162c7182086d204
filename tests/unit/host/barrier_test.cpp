// Barriers, shared memory and atomics, by both compilers.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class HostBarrierTest : public HostTest, public testing::WithParamInterface<const char*> {
protected:
    void SetUp() override {
        if (host::detail::search_path(GetParam()).empty())
            GTEST_SKIP() << GetParam() << " is not installed";
        compiler_env_.set(GetParam());
    }

    template <typename... Args>
    void run(const std::string& source, HostLaunch options, const Args&... args) {
        HostJit jit = make();
        const auto kernel = jit.compile("barrier", source);
        const HostStream stream;
        options.stream = stream;
        jit.launch(kernel, options, args...);
        stream.synchronize();
    }
};

INSTANTIATE_TEST_SUITE_P(Host, HostBarrierTest, testing::Values("g++", "clang++"),
                         [](const auto& info) {
                             return info.param == std::string("g++") ? "Gcc" : "Clang";
                         });

TEST_P(HostBarrierTest, ReductionInStaticSharedMemory) {
    std::vector<int> in(10 * 256);
    std::iota(in.begin(), in.end(), -700);
    std::vector<long> out(10, -1);
    run(R"(
__global__ void sum(const int* in, long* out) {
    __shared__ long parts[256];
    const unsigned t = threadIdx.x;
    parts[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (unsigned step = 128; step > 0; step /= 2) {
        if (t < step) parts[t] += parts[t + step];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = parts[0];
}
)",
        {.grid_dim = dim3(10), .block_dim = dim3(256)}, static_cast<const int*>(in.data()),
        out.data());
    for (std::size_t b = 0; b < 10; ++b)
        EXPECT_EQ(out[b], std::accumulate(in.begin() + b * 256, in.begin() + (b + 1) * 256, 0L));
}

TEST_P(HostBarrierTest, DynamicSharedMemoryIsOneBlockUnderEveryName) {
    std::vector<int> out(64, -1);
    run(R"(
extern __shared__ int words[];
extern __shared__ __align__(128) unsigned char bytes[];
__device__ int* local() {
    extern __shared__ int inner[];
    return inner;
}
__global__ void k(int* out) {
    const int t = threadIdx.x;
    words[t] = t * 3 + 65536 * t;
    __syncthreads();
    const int other = 63 - t;
    out[t] = words[other] + (bytes[4 * other] == (other * 3) % 256 ? 0 : 1) +
             (local()[other] == words[other] ? 0 : 2) + ((uintptr_t)bytes % 128 == 0 ? 0 : 4);
}
)",
        {.num_smem_bytes = 256, .grid_dim = dim3(1), .block_dim = dim3(64)}, out.data());
    for (int t = 0; t < 64; ++t) EXPECT_EQ(out[t], (63 - t) * 65539);
}

TEST_P(HostBarrierTest, AllOfTheLargestDynamicSharedMemory) {
    long sum = 0;
    const int size = host::kMaxSharedBytes;
    run(R"(
__global__ void k(int size, long* sum) {
    extern __shared__ unsigned char all[];
    for (int i = threadIdx.x; i < size; i += blockDim.x) all[i] = i % 251;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 0; i < size; ++i) *sum += all[i];
}
)",
        {.num_smem_bytes = size, .grid_dim = dim3(1), .block_dim = dim3(96)}, size, &sum);
    long expected = 0;
    for (int i = 0; i < size; ++i) expected += i % 251;
    EXPECT_EQ(sum, expected);
}

TEST_P(HostBarrierTest, SharedMemoryInTemplates) {
    std::vector<double> out(32, -1);
    run(R"(
template <typename T, int N>
__global__ void reverse(T* out) {
    extern __shared__ T dynamic[];
    __shared__ T fixed[N];
    __shared__ struct { T pair[2]; } one;
    fixed[threadIdx.x] = T(threadIdx.x) / 4;
    dynamic[threadIdx.x] = fixed[threadIdx.x] + 1;
    if (threadIdx.x == N - 1) one.pair[1] = T(100);
    __syncthreads();
    out[threadIdx.x] = fixed[N - 1 - threadIdx.x] + dynamic[threadIdx.x] + one.pair[1];
}
static void __instantiate_kernel() { auto p = reinterpret_cast<void*>(&reverse<double, 32>); }
)",
        {.num_smem_bytes = 256, .grid_dim = dim3(1), .block_dim = dim3(32)}, out.data());
    for (int t = 0; t < 32; ++t) EXPECT_EQ(out[t], (31 - t) / 4.0 + t / 4.0 + 1 + 100);
}

TEST_P(HostBarrierTest, BlocksDoNotSeeEachOthersSharedMemory) {
    std::vector<int> out(500, -1);
    run(R"(
__global__ void k(int* out) {
    __shared__ int value;
    if (threadIdx.x == 0) value = blockIdx.x;
    __syncthreads();
    for (int i = 0; i < 10; ++i) {
        if (threadIdx.x == i) value += 1;
        __syncthreads();
    }
    if (threadIdx.x == 15) out[blockIdx.x] = value;
}
)",
        {.grid_dim = dim3(500), .block_dim = dim3(16), .num_threads = 8}, out.data());
    for (int b = 0; b < 500; ++b) EXPECT_EQ(out[b], b + 10);
}

TEST_P(HostBarrierTest, ThreadsMayReturnBeforeABarrier) {
    // Thread t leaves after t rounds; those that are left still meet.
    std::vector<int> rounds(100, -1);
    run(R"(
__global__ void k(int* rounds) {
    __shared__ int alive;
    if (threadIdx.x == 0) alive = blockDim.x;
    __syncthreads();
    for (int i = 0; i < blockDim.x; ++i) {
        if (i == threadIdx.x) {
            rounds[i] = alive;
            atomicSub(&alive, 1);
            return;
        }
        __syncthreads();
    }
}
)",
        {.grid_dim = dim3(1), .block_dim = dim3(100)}, rounds.data());
    for (int t = 0; t < 100; ++t) EXPECT_EQ(rounds[t], 100 - t);
}

TEST_P(HostBarrierTest, IndexVariablesAndLocalsSurviveBarriers) {
    std::vector<long> out(4 * 3 * 2 * 5, -1);
    run(R"(
__device__ long deep(int depth) {
    volatile long here = depth;
    if (depth == 0) {
        __syncthreads();
        return 0;
    }
    return deep(depth - 1) + here;
}
__global__ void k(long* out) {
    const float before = threadIdx.x + 0.5f;
    const long sum = deep(20);
    const unsigned t = threadIdx.x + 4 * (threadIdx.y + 3 * threadIdx.z);
    __syncthreads();
    out[blockIdx.x * 24 + t] = sum * 1000 + t * 10 + (before == threadIdx.x + 0.5f) + blockIdx.x;
}
)",
        {.grid_dim = dim3(5), .block_dim = dim3(4, 3, 2), .num_threads = 3}, out.data());
    for (int b = 0; b < 5; ++b)
        for (int t = 0; t < 24; ++t) EXPECT_EQ(out[b * 24 + t], 210000 + t * 10 + 1 + b);
}

TEST_P(HostBarrierTest, AFullBlockAtBarriers) {
    std::vector<int> out(1024, -1);
    run(R"(
__global__ void k(int* out) {
    __shared__ int ring[1024];
    ring[threadIdx.x] = threadIdx.x;
    for (int i = 0; i < 50; ++i) {
        __syncthreads();
        const int next = ring[(threadIdx.x + 1) % 1024];
        __syncthreads();
        ring[threadIdx.x] = next;
    }
    out[threadIdx.x] = ring[threadIdx.x];
}
)",
        {.grid_dim = dim3(1), .block_dim = dim3(1024)}, out.data());
    for (int t = 0; t < 1024; ++t) EXPECT_EQ(out[t], (t + 50) % 1024);
}

TEST_P(HostBarrierTest, Atomics) {
    struct Results {
        int added = 0, subtracted = 0, lowest = 1 << 30, highest = -1, all = -1, any = 0,
            parity = 0;
        unsigned long long wide = 0;
        float floats = 0;
        double doubles = 0;
        long exchanged = 0;
        int slot = 0, claimed = 0;
        std::uint32_t owner = 0;
    } results;
    run(R"(
struct Results {
    int added, subtracted, lowest, highest, all, any, parity;
    unsigned long long wide;
    float floats;
    double doubles;
    long exchanged;
    int slot, claimed;
    uint32_t owner;
};
__global__ void k(Results* r) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&r->added, i);
    atomicSub(&r->subtracted, 2);
    atomicMin(&r->lowest, 5000 - i);
    atomicMax(&r->highest, i);
    atomicAnd(&r->all, ~(1 << (i % 8)));
    atomicOr(&r->any, 1 << (i % 16));
    atomicXor(&r->parity, i);
    atomicAdd(&r->wide, 1ull << 32);
    atomicAdd(&r->floats, 0.5f);
    atomicAdd(&r->doubles, 0.25);
    atomicAdd(&r->exchanged, atomicExch(&r->slot, i + 1));
    if (atomicCAS(&r->owner, 0u, i + 1u) == 0u) atomicAdd(&r->claimed, 1);
}
)",
        {.grid_dim = dim3(16), .block_dim = dim3(256), .num_threads = 4}, &results);
    constexpr int kThreads = 4096;
    EXPECT_EQ(results.subtracted, -2 * kThreads);
    EXPECT_EQ(results.lowest, 5000 - (kThreads - 1));
    EXPECT_EQ(results.highest, kThreads - 1);
    EXPECT_EQ(results.all, ~255);
    EXPECT_EQ(results.any, 65535);
    EXPECT_EQ(results.parity, 0);
    EXPECT_EQ(results.wide, 4096ull << 32);
    EXPECT_EQ(results.floats, 2048.0f);
    EXPECT_EQ(results.doubles, 1024.0);
    EXPECT_EQ(results.added, kThreads * (kThreads - 1) / 2);
    // What was put in came out once, but for the last.
    EXPECT_EQ(results.exchanged + results.slot, long(kThreads) * (kThreads + 1) / 2);
    EXPECT_EQ(results.claimed, 1);
    EXPECT_GE(results.owner, 1u);
    EXPECT_LE(results.owner, 4096u);
}

TEST_P(HostBarrierTest, MathAndVectorTypes) {
    std::vector<double> out(12, -1);
    run(R"(
__global__ void k(double* out) {
    out[0] = sqrtf(2.25f) + sqrt(6.25);
    out[1] = max(3, 5) * 10 + min(2u, 7u);
    out[2] = fmaxf(1.5f, -2.f) + min(0.5, 0.25);
    out[3] = rsqrtf(4.f) + rsqrt(16.0);
    out[4] = fma(2.0, 3.0, 4.0) + fmaf(1.f, 2.f, 3.f);
    float4 v = make_float4(1, 2, 3, 4);
    int2 i = make_int2(5, 6);
    out[5] = v.x + v.y * 10 + v.z * 100 + v.w * 1000 + sizeof(float4) + alignof(float4);
    out[6] = i.x * i.y + sizeof(double2);
    dim3 d(2, 3);
    out[7] = d.x * 100 + d.y * 10 + d.z;
    out[8] = powf(2.f, 10.f) + floor(-1.5) + ceilf(1.25f);
    uint3 u = threadIdx;
    out[9] = u.x + u.y + u.z;
    __threadfence();
    __threadfence_block();
#ifdef DEEP_JIT_HOST
    out[10] = 1;
#endif
    float3 f = make_float3(1, 2, 3);
    out[11] = f.x + f.y + f.z;
}
)",
        {.grid_dim = dim3(1), .block_dim = dim3(1)}, out.data());
    EXPECT_EQ(out, (std::vector<double>{4, 52, 1.75, 0.75, 15, 4321 + 32, 46, 231, 1024, 0, 1, 6}));
}

}  // namespace
