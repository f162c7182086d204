// A kernel is compiled, launched, and computes what it should; templates are instantiated.
#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

using GpuScale = GpuTest;

constexpr const char* kScale = R"(
extern "C" __global__ void scale(float* output, const float* input, int count) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * 2.0f;
}
)";

template <typename T>
std::vector<T> numbers(std::size_t count) {
    std::vector<T> out(count);
    for (std::size_t i = 0; i < count; ++i)
        out[i] = static_cast<T>(static_cast<int>(i * 7 % 4099) - 2000) / 4;
    return out;
}

template <typename T>
std::vector<T> times(std::vector<T> values, T factor) {
    for (auto& value : values) value *= factor;
    return values;
}

TEST_F(GpuScale, ScalesAMillionNumbers) {
    const int count = 1'000'003;
    const auto input = numbers<float>(count);
    const DeviceArray<float> in(input), out(count);
    const auto kernel = jit->compile("scale", kScale);
    jit->launch(kernel,
                {
                    .grid_dim = dim3((count + 255) / 256, 1, 1),
                    .block_dim = dim3(256, 1, 1),
                },
                out.get(), in.cget(), count);
    EXPECT_TRUE(same(out.download(), times(input, 2.0f)));
}

TEST_F(GpuScale, TheKernelKnowsItself) {
    const auto kernel = jit->compile("scale", kScale);
    EXPECT_EQ(kernel->name(), "scale");
    EXPECT_EQ(kernel->param_sizes(), (std::vector<std::uint32_t>{8, 8, 4}));
    EXPECT_NE(kernel->library_handle, nullptr);
    EXPECT_NE(kernel->kernel_handle, nullptr);
    EXPECT_EQ(jit->compile("scale", kScale), kernel);
    // Another runtime has kernels of its own, of the same binary.
    const auto other = make();
    const auto copy = other->compile("scale", kScale);
    EXPECT_NE(copy, kernel);
    EXPECT_NE(copy->library_handle, kernel->library_handle);
}

TEST_F(GpuScale, TheDeviceIsDescribedAsTheDriverDescribesIt) {
    const auto attribute = [](CUdevice_attribute which) {
        int value = -1;
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuDeviceGetAttribute(&value, which, 0));
        return value;
    };
    const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    const int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    EXPECT_EQ(jit->device.get_arch_pair(), std::pair(major, minor));
    const auto digits = std::to_string(major * 10 + minor);
    EXPECT_EQ(jit->device.get_arch(false), digits + (major >= 9 ? "a" : ""));
    EXPECT_EQ(jit->device.get_arch(true, true), digits);
    EXPECT_EQ(jit->device.get_num_sms(), attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    EXPECT_EQ(jit->device.get_num_l2_cache_bytes(), attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
    EXPECT_EQ(jit->device.get_num_smem_bytes(),
              attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
    EXPECT_EQ(jit->device.get_clock_rate(),
              std::int64_t{1000} * attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
}

TEST_F(GpuScale, ATemplateIsInstantiatedByAnUncalledFunction) {
    const auto kernel = jit->compile("scale_by", R"(
        template <int kFactor, typename T>
        __global__ void scale_by(T* output, const T* input, int count) {
            const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
            if (index < count)
                output[index] = input[index] * kFactor;
        }
        static void __instantiate_kernel() {
            auto ptr = reinterpret_cast<void*>(&scale_by<3, long long>);
        }
    )");
    EXPECT_CONTAINS(kernel->name(), "scale_by");
    const int count = 5000;
    std::vector<long long> input(count);
    for (int i = 0; i < count; ++i) input[i] = (1LL << 40) + i;
    const DeviceArray<long long> in(input), out(count);
    jit->launch(kernel, {.grid_dim = dim3(20), .block_dim = dim3(256)}, out.get(), in.cget(),
                count);
    EXPECT_TRUE(same(out.download(), times(input, 3LL)));
}

TEST_F(GpuScale, ATemplateIsInstantiatedExplicitly) {
    const auto kernel = jit->compile("scale_by", R"(
        template <typename T, int kFactor>
        __global__ void scale_by(T* output, const T* input, int count) {
            const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
            if (index < count)
                output[index] = input[index] * kFactor;
        }
        template __global__ void scale_by<double, 5>(double*, const double*, int);
    )");
    const int count = 1000;
    const auto input = numbers<double>(count);
    const DeviceArray<double> in(input), out(count);
    jit->launch(kernel, {.grid_dim = dim3(4), .block_dim = dim3(256)}, out.get(), in.cget(), count);
    EXPECT_TRUE(same(out.download(), times(input, 5.0)));
}

TEST_F(GpuScale, HeadersAndDefinitionsReachTheKernel) {
    const TempDir temp;
    write(temp / "mylib/twice.cuh", "__device__ inline int twice(int x) { return 2 * x; }\n");
    JIT own(Config(temp.path(), "GPUTEST", "", {temp.path()}, {"mylib/"}));
    const auto kernel = own.compile("twice", R"(
        #include <mylib/twice.cuh>
        extern "C" __global__ void add(int* data) { data[threadIdx.x] = twice(data[threadIdx.x]) + OFFSET; }
    )",
                                    {.extra_nvcc_flags = {"-DOFFSET=1000"}});
    const DeviceArray<int> data(counting(64));
    own.launch(kernel, {.grid_dim = dim3(1), .block_dim = dim3(64)}, data.get());
    auto expected = counting(64);
    for (auto& value : expected) value = 2 * value + 1000;
    EXPECT_TRUE(same(data.download(), expected));
}

}  // namespace
