// Launches: grids and blocks, arguments, and what is refused.
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class HostLaunchTest : public HostTest {
protected:
    HostJit jit_{config()};
    HostStream stream_;

    HostKernel compile(const std::string& source) { return jit_.compile("launch", source); }

    /// The message of a launch that is refused; nothing may run.
    template <typename... Args>
    std::string refused(const HostKernel& kernel, HostLaunch options, const Args&... args) {
        options.stream = stream_;
        auto message = message_of<LaunchError>([&] { jit_.launch(kernel, options, args...); });
        EXPECT_TRUE(stream_.idle());
        return message;
    }
};

TEST_F(HostLaunchTest, TheReadmesKernel) {
    EXPECT_TRUE(scales(jit_, jit_.compile("scale", kScaleSource)));
}

TEST_F(HostLaunchTest, EveryThreadOfEveryShapeRunsOnce) {
    // Each thread writes its number, computed from all index variables, to its own place.
    const auto kernel = compile(R"(
__global__ void place(long* out, int* wrong) {
    const long block = blockIdx.x + gridDim.x * (blockIdx.y + (long)gridDim.y * blockIdx.z);
    const long thread = threadIdx.x + blockDim.x * (threadIdx.y + (long)blockDim.y * threadIdx.z);
    const long size = (long)blockDim.x * blockDim.y * blockDim.z;
    if (threadIdx.x >= blockDim.x || threadIdx.y >= blockDim.y || threadIdx.z >= blockDim.z ||
        blockIdx.x >= gridDim.x || blockIdx.y >= gridDim.y || blockIdx.z >= gridDim.z)
        atomicAdd(wrong, 1);
    atomicAdd(&out[block * size + thread], block * 10000 + thread + 1);
}
)");
    struct Shape {
        dim3 grid, block;
    };
    const Shape shapes[] = {
        {dim3(1), dim3(1)},
        {dim3(5), dim3(7)},
        {dim3(1), dim3(1024)},
        {dim3(3, 4), dim3(5, 6)},
        {dim3(2, 3, 4), dim3(3, 4, 5)},
        {dim3(1, 1, 9), dim3(1, 1, 64)},
        {dim3(1000), dim3(1)},
        {dim3(1, 70), dim3(1, 33)},
        {dim3(7, 1, 3), dim3(16, 8, 8)},
    };
    for (const auto& [grid, block] : shapes) {
        const std::size_t threads = std::size_t(block.x) * block.y * block.z;
        std::vector<long> out(std::size_t(grid.x) * grid.y * grid.z * threads);
        int wrong = 0;
        jit_.launch(kernel, {.stream = stream_, .grid_dim = grid, .block_dim = block}, out.data(),
                    &wrong);
        stream_.synchronize();
        EXPECT_EQ(wrong, 0);
        std::size_t bad = 0;
        for (std::size_t i = 0; i < out.size(); ++i)
            if (out[i] != static_cast<long>(i / threads * 10000 + i % threads + 1))
                ++bad;
        EXPECT_EQ(bad, 0u) << grid.x << " " << grid.y << " " << grid.z << ", " << block.x << " "
                           << block.y << " " << block.z;
    }
}

TEST_F(HostLaunchTest, AnyNumberOfThreadsGivesTheSame) {
    const auto kernel = compile(R"(
__global__ void sum(const int* in, long* out) {
    __shared__ long parts[64];
    parts[threadIdx.x] = (long)in[blockIdx.x * 64 + threadIdx.x] * in[threadIdx.x];
    for (int step = 32; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) parts[threadIdx.x] += parts[threadIdx.x + step];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = parts[0];
}
)");
    constexpr int kBlocks = 37;
    std::vector<int> in(kBlocks * 64);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * 7919 % 1000) - 500;
    std::vector<long> expected(kBlocks);
    for (int b = 0; b < kBlocks; ++b)
        for (int t = 0; t < 64; ++t) expected[b] += long(in[b * 64 + t]) * in[t];
    for (int threads = 1; threads <= 8; ++threads) {
        std::vector<long> out(kBlocks, -1);
        jit_.launch(kernel,
                    {.stream = stream_,
                     .grid_dim = dim3(kBlocks),
                     .block_dim = dim3(64),
                     .num_threads = threads},
                    static_cast<const int*>(in.data()), out.data());
        stream_.synchronize();
        EXPECT_EQ(out, expected) << threads << " threads";
    }
}

TEST_F(HostLaunchTest, DefaultsAreInherited) {
    const auto kernel = compile("__global__ void k(int* out) { atomicAdd(out, 1); }");
    int out = 0;
    jit_.default_launch_options.grid_dim = dim3(2);
    jit_.default_launch_options.block_dim = dim3(3);
    jit_.default_launch_options.stream = stream_;
    jit_.launch(kernel, {}, &out);
    jit_.launch(kernel, {.block_dim = dim3(10)}, &out);
    stream_.synchronize();
    EXPECT_EQ(out, 26);
    const ScopedEnv threads("HOSTTEST_JIT_NUM_THREADS", "3");
    EXPECT_EQ(make().default_launch_options.num_threads, 3);
    const ScopedEnv wrong("HOSTTEST_JIT_NUM_THREADS", "many");
    EXPECT_THROW(make(), ConfigError);
}

TEST_F(HostLaunchTest, WithoutAStreamItIsTheDefaultOne) {
    const auto kernel = compile(store_source(4));
    int out = 0;
    jit_.launch(kernel, {.grid_dim = dim3(1), .block_dim = dim3(1)}, &out);
    HostStream::default_stream().synchronize();
    EXPECT_EQ(out, 4);
    EXPECT_EQ(HostStream::default_stream(), HostStream::default_stream());
    EXPECT_FALSE(HostStream() == HostStream::default_stream());
}

TEST_F(HostLaunchTest, Dimensions) {
    const auto kernel = compile(store_source(1));
    int out = 0;
    EXPECT_CONTAINS(refused(kernel, {.block_dim = dim3(1)}, &out),
                    "grid dimension must be specified");
    EXPECT_CONTAINS(refused(kernel, {.grid_dim = dim3(1)}, &out),
                    "block dimension must be specified");
    for (const auto dim : {dim3(0, 1, 1), dim3(1, 0, 1), dim3(1, 1, 0)}) {
        EXPECT_CONTAINS(refused(kernel, {.grid_dim = dim, .block_dim = dim3(1)}, &out),
                        "grid dimension must be positive");
        EXPECT_CONTAINS(refused(kernel, {.grid_dim = dim3(1), .block_dim = dim}, &out),
                        "block dimension must be positive");
    }
    constexpr unsigned kHuge = 1u << 31;
    // The products of some of these overflow to something small.
    for (const auto dim :
         {dim3(1025), dim3(1, 1025), dim3(1, 1, 1025), dim3(32, 33),
          dim3(1u << 22, 1u << 21, 1u << 21), dim3(kHuge, kHuge, 4), dim3(~0u, ~0u, ~0u)})
        EXPECT_CONTAINS(refused(kernel, {.grid_dim = dim3(1), .block_dim = dim}, &out),
                        "1024 are the most");
    for (const auto dim : {dim3(kHuge, kHuge, 4), dim3(~0u, ~0u, ~0u), dim3(kHuge, kHuge, kHuge)})
        EXPECT_CONTAINS(refused(kernel, {.grid_dim = dim, .block_dim = dim3(1)}, &out),
                        "are the most");
    EXPECT_CONTAINS(
        refused(kernel, {.grid_dim = dim3(1), .block_dim = dim3(1), .num_threads = 0}, &out),
        "number of threads must be positive");
    EXPECT_EQ(out, 0);
}

TEST_F(HostLaunchTest, SharedMemorySizes) {
    const auto kernel = compile(store_source(1));
    int out = 0;
    HostLaunch options{.grid_dim = dim3(1), .block_dim = dim3(1)};
    options.num_smem_bytes = -1;
    EXPECT_CONTAINS(refused(kernel, options, &out), "shared-memory size must not be negative");
    options.num_smem_bytes = jit_.device.get_num_smem_bytes() + 1;
    EXPECT_CONTAINS(refused(kernel, options, &out), "are the most");
    options.num_smem_bytes = jit_.device.get_num_smem_bytes();
    options.stream = stream_;
    jit_.launch(kernel, options, &out);
    stream_.synchronize();
    EXPECT_EQ(out, 1);
}

TEST_F(HostLaunchTest, ArgumentListsThatDoNotFit) {
    const auto kernel = compile("__global__ void k(int* out, double d, char c) { *out = d + c; }");
    const HostLaunch options{.grid_dim = dim3(1), .block_dim = dim3(1)};
    int out = 0;
    const auto wrong_size = refused(kernel, options, &out, 1.0f, 'c');
    EXPECT_CONTAINS(wrong_size, kernel->name());
    EXPECT_CONTAINS(wrong_size, "argument 1 has 4 bytes");
    EXPECT_CONTAINS(wrong_size, "parameter has 8 bytes");
    const auto missing = refused(kernel, options, &out, 1.0);
    EXPECT_CONTAINS(missing, kernel->name());
    EXPECT_CONTAINS(missing, "argument 2 (1 bytes) is missing");
    EXPECT_CONTAINS(missing, "takes 3 argument(s) of (8, 8, 1) bytes");
    const auto many = refused(kernel, options, &out, 1.0, 'c', short(1));
    EXPECT_CONTAINS(many, "argument 3 (2 bytes) is one too many");
    EXPECT_CONTAINS(many, "given are 4 of (8, 8, 1, 2) bytes");
    EXPECT_EQ(kernel->num_params(), 3u);
    EXPECT_EQ(kernel->param_size(1), 8u);
    run_once(jit_, kernel, &out, 2.0, char(5));
    EXPECT_EQ(out, 7);
}

TEST_F(HostLaunchTest, NoArguments) {
    const auto kernel = compile("__global__ void k() {}");
    run_once(jit_, kernel);
    EXPECT_CONTAINS(refused(kernel, {.grid_dim = dim3(1), .block_dim = dim3(1)}, 1),
                    "argument 0 (4 bytes) is one too many");
}

TEST_F(HostLaunchTest, StructArguments) {
    const auto kernel = compile(R"(
struct Big { unsigned char bytes[4096]; };
struct alignas(64) Aligned { double values[8]; };
struct Small { char c; short s; };
struct Empty {};
__global__ void k(char first, Big big, Empty, Aligned aligned, Small small, long* out) {
    long sum = 0;
    for (int i = 0; i < 4096; ++i) sum += (long)big.bytes[i] * (i + 1);
    out[0] = sum;
    double total = 0;
    for (double value : aligned.values) total += value;
    out[1] = (long)total;
    out[2] = first + small.c * 100 + small.s * 10000;
    Aligned copy = aligned;
    out[3] = (long)((uintptr_t)&aligned % 64 + (uintptr_t)&copy % 64);
}
)");
    struct Big {
        unsigned char bytes[4096];
    } big;
    struct alignas(64) Aligned {
        double values[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    } aligned;
    struct Small {
        char c = 3;
        short s = 5;
    } small;
    struct Empty {};
    long expected = 0;
    for (int i = 0; i < 4096; ++i) {
        big.bytes[i] = static_cast<unsigned char>(i * 31);
        expected += long(big.bytes[i]) * (i + 1);
    }
    EXPECT_EQ(kernel->param_size(1), 4096u);
    std::array<long, 4> out{};
    run_once(jit_, kernel, char(7), big, Empty(), aligned, small, out.data());
    EXPECT_EQ(out, (std::array<long, 4>{expected, 255, 7 + 300 + 50000, 0}));
}

TEST_F(HostLaunchTest, AlignedArgumentsLieAlignedInMemory) {
    // Where the processor has vectors of 32 bytes, loading one from elsewhere is a fault.
    const auto kernel = jit_.compile("aligned", R"(
typedef double Vector __attribute__((vector_size(32)));
__global__ void k(char, Vector v, char, Vector w, double* out) {
    Vector sum = v + w;
    for (int i = 0; i < 4; ++i) out[i] = sum[i];
}
)",
                                     {.arch = "native"});
    struct alignas(32) Vector {
        double values[4];
    };
    std::vector<double> out(4);
    for (int i = 0; i < 16; ++i) {
        run_once(jit_, kernel, 'a', Vector{{1, 2, 3, 4}}, 'b', Vector{{10, 20, 30, 40}},
                 out.data());
        EXPECT_EQ(out, (std::vector<double>{11, 22, 33, 44}));
    }
}

TEST_F(HostLaunchTest, ArgumentsAreCopiedAtTheLaunch) {
    const auto kernel = compile(
        "struct S { int v[64]; };\n"
        "__global__ void k(S s, int* out) { for (int x : s.v) *out += x; }");
    struct S {
        int v[64];
    };
    int out = 0;
    {
        auto s = std::make_unique<S>();
        for (int i = 0; i < 64; ++i) s->v[i] = i;
        for (int i = 0; i < 10; ++i)
            jit_.launch(kernel, {.stream = stream_, .grid_dim = dim3(1), .block_dim = dim3(1)}, *s,
                        &out);
        std::memset(s.get(), 0, sizeof(S));
    }
    stream_.synchronize();
    EXPECT_EQ(out, 10 * 2016);
}

TEST_F(HostLaunchTest, NoRefPtrPassesWhatItPointsTo) {
    struct Descriptor : NoRefPtr {
        int more = 0;
    };
    const auto kernel = compile(
        "struct S { int a, b, c; };\n"
        "__global__ void k(S s, int* out) { *out = s.a + s.b * s.c; }");
    std::array<int, 3> storage{2, 3, 4};
    int out = 0;
    run_once(jit_, kernel, NoRefPtr{storage.data()}, &out);
    EXPECT_EQ(out, 14);
    storage[0] = 5;
    run_once(jit_, kernel, Descriptor{{storage.data()}, 1}, &out);
    EXPECT_EQ(out, 17);
}

TEST_F(HostLaunchTest, ANullKernel) {
    EXPECT_CONTAINS(refused(nullptr, {.grid_dim = dim3(1), .block_dim = dim3(1)}),
                    "kernel must not be null");
}

TEST_F(HostLaunchTest, AnUnloadedKernel) {
    const auto kernel = compile(store_source(1));
    int out = 0;
    jit_.launch(kernel, {.stream = stream_, .grid_dim = dim3(1), .block_dim = dim3(1)}, &out);
    kernel->unload();
    kernel->unload();
    stream_.synchronize();
    EXPECT_EQ(out, 1) << "a launch made before has its code";
    EXPECT_CONTAINS(refused(kernel, {.grid_dim = dim3(1), .block_dim = dim3(1)}, &out),
                    "has been unloaded");
    EXPECT_THROW(kernel->num_params(), LaunchError);
}

TEST_F(HostLaunchTest, ALaunchOutlivesItsKernelAndRuntime) {
    int out = 0;
    {
        HostJit jit = make();
        jit.launch(jit.compile("gone", store_source(9)),
                   {.stream = stream_, .grid_dim = dim3(1), .block_dim = dim3(1)}, &out);
    }
    stream_.synchronize();
    EXPECT_EQ(out, 9);
}

TEST_F(HostLaunchTest, KernelsOfOneNameAreDifferentKernels) {
    // The same function name, the same static data: every library has its own.
    std::vector<HostKernel> kernels;
    for (int i = 0; i < 5; ++i)
        kernels.push_back(compile("inline int& counter() { static int c = " + std::to_string(i) +
                                  " * 100; return c; }\n"
                                  "__global__ void store(int* out) { *out = ++counter(); }"));
    for (int round = 1; round <= 2; ++round)
        for (int i = 0; i < 5; ++i)
            EXPECT_EQ(stored_by(jit_, kernels[static_cast<std::size_t>(i)]), i * 100 + round);
}

}  // namespace
