// A kernel library as a PyTorch extension: one runtime, made at its first use, and a kernel.
#include <torch/extension.h>

#include "library.hpp"

namespace {

constexpr const char* kScale = R"(
extern "C" __global__ void scale(float* output, const float* input, int count, float factor) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * factor;
}
)";

/// On the current stream.
void scale_into(const torch::Tensor& output, const torch::Tensor& input, double factor) {
    DJ_HOST_ASSERT(input.is_cuda() && input.scalar_type() == torch::kFloat);
    DJ_HOST_ASSERT(output.sizes() == input.sizes() && output.is_contiguous());
    const auto kernel = library::jit->compile("scale", kScale);
    const int count = static_cast<int>(input.numel());
    library::jit->launch(kernel, {.grid_dim = dim3((count + 255) / 256), .block_dim = dim3(256)},
                         output.data_ptr<float>(), input.const_data_ptr<float>(), count,
                         static_cast<float>(factor));
}

torch::Tensor scale(const torch::Tensor& input, double factor) {
    auto output = torch::empty_like(input);
    scale_into(output, input, factor);
    return output;
}

/// Leaves out an argument.
void scale_wrongly(const torch::Tensor& output, const torch::Tensor& input) {
    library::jit->launch(library::jit->compile("scale", kScale),
                         {.grid_dim = dim3(1), .block_dim = dim3(1)}, output.data_ptr<float>(),
                         input.const_data_ptr<float>(), static_cast<int>(input.numel()));
}

/// Compiles with a runtime made now, so with the environment as it is now.
std::string compile_only(const std::string& source) {
    deep_jit::Runtime<deep_jit::CUDA> jit(library::config());
    return jit.compile_without_load("only", source);
}

std::string cache_entry() {
    auto& jit = *library::jit;
    return jit.disk_cache.paths.at(0) / "cache" / ("scale." + jit.cache_key(kScale));
}

std::uintptr_t current_stream() {
    return reinterpret_cast<std::uintptr_t>(deep_jit::cuda::current_stream());
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
    module.def("scale", &scale);
    module.def("scale_into", &scale_into);
    module.def("scale_wrongly", &scale_wrongly);
    module.def("compile_only", &compile_only);
    module.def("cache_entry", &cache_entry);
    module.def("current_stream", &current_stream);
    library::register_launches(module);
}
