// Launches to be measured, from Python and from C++: the same kernel of four arguments that does
// nothing, on the current stream.
#include <chrono>

#include "library.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Address = std::uintptr_t;

constexpr const char* kNothing = R"(
extern "C" __global__ void nothing(float* output, const float* input, int count, float factor) {
    if (count < 0)
        output[0] = input[0] * factor;
}
)";

const std::shared_ptr<deep_jit::cuda::Kernel>& kernel() {
    static const auto out = library::jit->compile("nothing", kNothing);
    return out;
}

void launch(Address output, Address input, int count, float factor) {
    static const auto held = kernel();
    library::jit->launch(held, {.grid_dim = dim3(1), .block_dim = dim3(32)},
                         reinterpret_cast<float*>(output), reinterpret_cast<const float*>(input),
                         count, factor);
}

void compile_and_launch(Address output, Address input, int count, float factor) {
    library::jit->launch(
        library::jit->compile("nothing", kNothing), {.grid_dim = dim3(1), .block_dim = dim3(32)},
        reinterpret_cast<float*>(output), reinterpret_cast<const float*>(input), count, factor);
}

/// Nanoseconds for each of `count` launches from C++.
template <typename Launch>
double time_each(int count, Launch&& launch_once) {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) launch_once();
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / count;
}

double bare_launches(int count, Address output, Address input, Address stream) {
    const auto call = deep_jit::cuda::driver::lazy_cuLaunchKernelEx.get();
    const auto function = reinterpret_cast<CUfunction>(kernel()->kernel_handle);
    auto* out = reinterpret_cast<float*>(output);
    const auto* in = reinterpret_cast<const float*>(input);
    int number = 1;
    float factor = 2;
    return time_each(count, [&] {
        CUlaunchConfig config{};
        config.gridDimX = config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = 32;
        config.blockDimY = config.blockDimZ = 1;
        config.hStream = reinterpret_cast<CUstream>(stream);
        void* arguments[] = {&out, &in, &number, &factor};
        DJ_CUDA_DRIVER_CHECK(call(&config, function, arguments, nullptr));
    });
}

double launches(int count, Address output, Address input) {
    return time_each(count, [&] { launch(output, input, 1, 2); });
}

}  // namespace

void library::register_launches(pybind11::module_& module) {
    module.def("launch", &launch);
    module.def("compile_and_launch", &compile_and_launch);
    module.def("bare_launches", &bare_launches);
    module.def("launches", &launches);
}
