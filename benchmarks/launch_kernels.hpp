// Kernels that do nothing, for benchmarks of what surrounds them, and launches of them without
// this library.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/backend/cuda/backend.hpp>

namespace benchmarks {

using KernelPointer = std::shared_ptr<deep_jit::cuda::Kernel>;

/// A kernel of four arguments; its source has at least `bytes` bytes.
inline std::string source_of_four(std::size_t bytes = 0, const std::string& mark = "") {
    std::string out =
        "extern \"C\" __global__ void f(float*a,const float*b,int n,float x){if(n<0)*a=*b*x;}\n//" +
        mark;
    while (out.size() < bytes) out += static_cast<char>('a' + out.size() * 7 % 23);
    return out;
}

/// A kernel of `count` integers.
inline std::string source_of_ints(int count) {
    std::string parameters, sum;
    for (int i = 0; i < count; ++i) {
        parameters += (i > 0 ? ", int a" : "int a") + std::to_string(i);
        sum += (i > 0 ? " + a" : "a") + std::to_string(i);
    }
    const auto body = count > 0 ? "    if (" + sum + " == 1) __trap();\n" : std::string();
    return "extern \"C\" __global__ void ints(" + parameters + ") {\n" + body + "}\n";
}

/// The driver call alone, with everything prepared: the least that a launch can cost.
class BareLaunch {
public:
    BareLaunch(const KernelPointer& kernel, CUstream stream, std::vector<void*> arguments,
               unsigned int blocks = 1, unsigned int smem = 0)
        : function_(reinterpret_cast<CUfunction>(kernel->kernel_handle)),
          arguments_(std::move(arguments)),
          call_(deep_jit::cuda::driver::lazy_cuLaunchKernelEx.get()) {
        config_.gridDimX = blocks;
        config_.blockDimX = 32;
        config_.gridDimY = config_.gridDimZ = config_.blockDimY = config_.blockDimZ = 1;
        config_.sharedMemBytes = smem;
        config_.hStream = stream;
    }

    /// With an attribute.
    BareLaunch with(CUlaunchAttributeID id, const CUlaunchAttributeValue& value) const {
        auto out = *this;
        out.attribute_.id = id;
        out.attribute_.value = value;
        out.config_.numAttrs = 1;
        return out;
    }

    void operator()() {
        config_.attrs = &attribute_;
        const auto code = call_(&config_, function_, arguments_.data(), nullptr);
        if (code != CUDA_SUCCESS) [[unlikely]]
            deep_jit::cuda::driver::check(code, "cuLaunchKernelEx");
    }

private:
    CUfunction function_;
    std::vector<void*> arguments_;
    decltype(deep_jit::cuda::driver::lazy_cuLaunchKernelEx)::Pointer call_;
    CUlaunchConfig config_{};
    CUlaunchAttribute attribute_{};
};

}  // namespace benchmarks
