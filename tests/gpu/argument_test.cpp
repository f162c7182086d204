// Arguments reach the kernel whole: none, many, large, of many types; wrong ones are refused.
#include <cmath>
#include <utility>

#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

using GpuArgument = GpuTest;

const cuda::LaunchOptions kOne{.grid_dim = dim3(1), .block_dim = dim3(1)};

TEST_F(GpuArgument, None) {
    const auto kernel = jit->compile("nothing", R"(
        __device__ int counter;
        extern "C" __global__ void nothing() { atomicAdd(&counter, 1); }
    )");
    for (int i = 0; i < 3; ++i) jit->launch(kernel, {.grid_dim = dim3(5), .block_dim = dim3(32)});
    CUdeviceptr counter = 0;
    std::size_t size = 0;
    if (kernels_run()) {
        DJ_CUDA_DRIVER_CHECK(
            driver::lazy_cuLibraryGetGlobal(&counter, &size, kernel->library_handle, "counter"));
        int value = 0;
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuMemcpyDtoH(&value, counter, sizeof(value)));
        EXPECT_EQ(value, 3 * 5 * 32);
    }
}

struct Point {
    double x;
    float y;
    signed char z;
};
struct Triple {
    unsigned char bytes[3];
};

TEST_F(GpuArgument, SixteenOfManyTypes) {
    const auto kernel = jit->compile("mixed", R"(
        struct Point { double x; float y; signed char z; };
        struct Triple { unsigned char bytes[3]; };
        extern "C" __global__ void mixed(
            char a, short b, int c, long long d, float e, double f, bool g, Point h,
            const int* i, Triple j, unsigned char k, float4 l, int3 m, unsigned long long n,
            unsigned short o, double* out) {
            const double all[] = {double(a), double(b), double(c), double(d), double(e), f,
                                  double(g), h.x, double(h.y), double(h.z), double(*i),
                                  double(j.bytes[0]), double(j.bytes[1]), double(j.bytes[2]),
                                  double(k), double(l.x), double(l.w), double(m.z), double(n),
                                  double(o)};
            for (int at = 0; at < 20; ++at) out[at] = all[at];
        }
    )");
    const DeviceArray<int> pointed(std::vector<int>{-77});
    const DeviceArray<double> out(20);
    const float4 four{1.5f, 2.5f, 3.5f, -4.5f};
    const int3 three{1, 2, 1'000'000'007};
    jit->launch(kernel, kOne, char{-3}, short{-30000}, int{-2'000'000'000},
                static_cast<long long>(-1'000'000'000'000LL), 0.25f, -1.0 / 3, true,
                Point{1e300, -0.5f, -128}, pointed.cget(), Triple{{1, 128, 255}},
                static_cast<unsigned char>(200), four, three, 1ULL << 53,
                static_cast<unsigned short>(65535), out.get());
    EXPECT_TRUE(same(out.download(), std::vector<double>{-3,
                                                         -30000,
                                                         -2e9,
                                                         -1e12,
                                                         0.25,
                                                         -1.0 / 3,
                                                         1,
                                                         1e300,
                                                         -0.5,
                                                         -128,
                                                         -77,
                                                         1,
                                                         128,
                                                         255,
                                                         200,
                                                         1.5,
                                                         -4.5,
                                                         1'000'000'007,
                                                         std::ldexp(1.0, 53),
                                                         65535}));
}

template <std::size_t... I>
void launch_with_squares(JIT& jit, const std::shared_ptr<cuda::Kernel>& kernel, int* out,
                         std::index_sequence<I...>) {
    jit.launch(kernel, kOne, out, static_cast<int>(I * I)...);
}

TEST_F(GpuArgument, SixtyFour) {
    std::string parameters = "int* out", body;
    std::vector<int> expected;
    for (int i = 0; i < 63; ++i) {
        const auto text = std::to_string(i);
        parameters += ", int a" + text;
        body += "    out[" + text + "] = a" + text + ";\n";
        expected.push_back(i * i);
    }
    const auto kernel = jit->compile(
        "many", "extern \"C\" __global__ void many(" + parameters + ") {\n" + body + "}\n");
    const DeviceArray<int> out(63);
    launch_with_squares(*jit, kernel, out.get(), std::make_index_sequence<63>());
    EXPECT_TRUE(same(out.download(), expected));
}

template <int kInts>
struct Numbers {
    int values[kInts];
};

/// Copies a structure of `kInts` integers, taken by value.
template <int kInts>
void copy_by_value(JIT& jit) {
    const auto count = std::to_string(kInts);
    const auto kernel = jit.compile("copy", "struct Numbers { int values[" + count + R"(]; };
extern "C" __global__ void copy(int* out, const __grid_constant__ Numbers numbers) {
    for (int i = threadIdx.x; i < )" + count + R"(; i += blockDim.x) out[i] = numbers.values[i];
}
)");
    Numbers<kInts> numbers;
    for (int i = 0; i < kInts; ++i) numbers.values[i] = i * 31 - 5;
    const DeviceArray<int> out(kInts);
    jit.launch(kernel, {.grid_dim = dim3(1), .block_dim = dim3(128)}, out.get(), numbers);
    EXPECT_TRUE(same(out.download(), std::vector<int>(numbers.values, numbers.values + kInts)));
}

TEST_F(GpuArgument, FourKibibytes) { copy_by_value<1024>(*jit); }

// With the pointer 32764 bytes, the most that CUDA has.
TEST_F(GpuArgument, ThirtyTwoKibibytes) { copy_by_value<8189>(*jit); }

/// Bytes whose number is known only at run time.
struct Packed : NoRefPtr {
    explicit Packed(void* bytes) : NoRefPtr{bytes} {}
};

TEST_F(GpuArgument, APointerToTheBytes) {
    const auto kernel = jit->compile("packed", R"(
        struct Pair { long long a; int b; };
        extern "C" __global__ void packed(long long* out, Pair pair, int last) {
            out[0] = pair.a;
            out[1] = pair.b;
            out[2] = last;
        }
    )");
    std::vector<char> bytes(16);
    const long long a = 123456789012345;
    const int b = -7;
    std::memcpy(bytes.data(), &a, sizeof(a));
    std::memcpy(bytes.data() + 8, &b, sizeof(b));
    const DeviceArray<long long> out(3);
    jit->launch(kernel, kOne, out.get(), Packed(bytes.data()), 99);
    EXPECT_TRUE(same(out.download(), std::vector<long long>{a, b, 99}));
}

TEST_F(GpuArgument, WrongOnesAreRefused) {
    const auto kernel = jit->compile("two", R"(
        extern "C" __global__ void two(long long* out, int value) { *out = value; }
    )");
    const DeviceArray<long long> out(1);
    EXPECT_CONTAINS(message_of<LaunchError>([&] { jit->launch(kernel, kOne, out.get()); }),
                    "argument 1 (4 bytes) is missing");
    EXPECT_CONTAINS(message_of<LaunchError>([&] { jit->launch(kernel, kOne, out.get(), 1, 2); }),
                    "argument 2 (4 bytes) is one too many");
    EXPECT_CONTAINS(message_of<LaunchError>([&] { jit->launch(kernel, kOne, out.get(), 1LL); }),
                    "argument 1 has 8 bytes, but the kernel's parameter has 4 bytes");
    EXPECT_CONTAINS(message_of<LaunchError>([&] { jit->launch(kernel, kOne); }), "two");
    jit->launch(kernel, kOne, out.get(), 5);
    EXPECT_TRUE(same(out.download(), std::vector<long long>{5}));
}

}  // namespace
