// The same on a GPU. A file of its own, so that the rest builds where there are no CUDA headers.
#include <deep_jit/backend/cuda/backend.hpp>

#include "scale.hpp"

namespace driver = deep_jit::cuda::driver;

namespace {

void must(CUresult code, const char* call) { driver::check<deep_jit::Error>(code, call); }

/// Device memory that holds `count` floats.
class DeviceFloats {
public:
    explicit DeviceFloats(std::size_t count) : bytes_(count * sizeof(float)) {
        must(driver::lazy_cuMemAlloc(&address_, bytes_), "cuMemAlloc");
    }
    DeviceFloats(const DeviceFloats&) = delete;
    DeviceFloats& operator=(const DeviceFloats&) = delete;
    ~DeviceFloats() { driver::lazy_cuMemFree(address_); }

    float* get() const {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): a CUdeviceptr is an address
        return reinterpret_cast<float*>(address_);
    }
    void upload(const float* from) const {
        must(driver::lazy_cuMemcpyHtoD(address_, from, bytes_), "cuMemcpyHtoD");
    }
    void download(float* to) const {
        must(driver::lazy_cuMemcpyDtoH(to, address_, bytes_), "cuMemcpyDtoH");
    }

private:
    CUdeviceptr address_ = 0;
    std::size_t bytes_;
};

}  // namespace

bool run_on_cuda(const deep_jit::Config& config) {
    using JIT = deep_jit::Runtime<deep_jit::CUDA>;
    try {
        deep_jit::cuda::Device().get_index();
    } catch (const deep_jit::ToolchainError& error) {
        std::printf("CUDA: skipped, %s\n", error.what());
        return true;
    }
    // The default stream works in whatever context is current; the first call makes it so.
    CUcontext context = nullptr;
    must(driver::lazy_cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(driver::lazy_cuCtxSetCurrent(context), "cuCtxSetCurrent");

    time_compilation<JIT>("CUDA", config);
    auto jit = deep_jit::create_lazy_jit<deep_jit::CUDA>(config);
    const auto kernel = jit->compile("scale", kScaleSource);

    const int count = kCount;
    const auto input_data = make_input();
    std::vector<float> output_data(input_data.size());
    const DeviceFloats input_memory(input_data.size()), output_memory(input_data.size());
    input_memory.upload(input_data.data());
    float* const output = output_memory.get();
    const float* const input = input_memory.get();
    jit->launch(kernel,
                {
                    .grid_dim = dim3((count + 255) / 256, 1, 1),
                    .block_dim = dim3(256, 1, 1),
                },
                output, input, count);
    output_memory.download(output_data.data());
    return check("CUDA", input_data, output_data);
}
