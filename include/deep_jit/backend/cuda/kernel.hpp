// A kernel loaded from a CUBIN. Where the CUBIN came from is of no concern here.
#pragma once

#include <cxxabi.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <deep_jit/backend/cuda/cubin.hpp>
#include <deep_jit/backend/cuda/device.hpp>
#include <deep_jit/backend/cuda/driver.hpp>
#include <deep_jit/runtime/arguments.hpp>

namespace deep_jit::cuda {

/// Address of an argument's bytes, as a launch passes it to the driver.
template <typename T>
void* kernel_arg_pointer(const T& argument) {
    return argument_pointer(argument);
}

namespace detail {

/// The name as the source has it, for messages.
inline std::string demangle(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
    return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

/// What a launch has set on a kernel for one device.
struct DeviceState {
    std::atomic<int> smem_limit{0};  ///< bytes of dynamic shared memory known to be allowed
    std::atomic<bool> nonportable{false};
};

}  // namespace detail

/// One kernel and the library it is in. It belongs to no context and no device: every device of
/// its architecture can run it, from any thread.
class Kernel {
public:
    CUlibrary library_handle = nullptr;
    CUkernel kernel_handle = nullptr;

    const std::string& name() const { return name_; }
    /// Bytes of each parameter, in order.
    const std::vector<std::uint32_t>& param_sizes() const { return param_sizes_; }
    /// Compute capability it was compiled for: 10 * major + minor, or 0 when unknown.
    int arch() const { return arch_; }

    /// Loads the one kernel of `cubin`; `key` is for messages. Needs no context. Throws LoadError,
    /// or ToolchainError when there is no suitable driver.
    static std::shared_ptr<Kernel> load(std::string_view cubin, const std::string& key) {
        driver::initialize();
        const std::shared_ptr<Kernel> out(new Kernel);
        out->arch_ = cubin_arch(cubin);
        const auto code = driver::lazy_cuLibraryLoadData(&out->library_handle, cubin.data(),
                                                         nullptr, nullptr, 0, nullptr, nullptr, 0);
        out->check_loaded(code, key);
        out->kernel_handle = out->only_kernel(key);
        out->read_parameters(key);
        int devices = 0;
        driver::check<LoadError>(driver::lazy_cuDeviceGetCount(&devices), "cuDeviceGetCount");
        out->num_devices_ = devices;
        out->states_ = std::make_unique<detail::DeviceState[]>(static_cast<std::size_t>(devices));
        return out;
    }

    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;
    ~Kernel() { unload(); }

    /// Gives the driver its memory back; the kernel can no longer be launched. No launch may be
    /// under way. Does nothing the second time, at the process's end, and in a forked child.
    void unload() noexcept {
        kernel_handle = nullptr;
        const CUlibrary library = std::exchange(library_handle, nullptr);
        if (library == nullptr || driver::is_shut_down() || ::getpid() != owner_)
            return;
        // An error has no consequence: the memory goes with the process.
        if (const auto unload_library = driver::lazy_cuLibraryUnload.try_get())
            unload_library(library);
    }

private:
    friend class Launch;
    Kernel() = default;

    void check_loaded(CUresult code, const std::string& key) const {
        if (code == CUDA_SUCCESS) [[likely]]
            return;
        std::string hint;
        if (code == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ||
            code == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
            hint =
                ". A CUDA graph is being captured: compile and load this kernel before the capture "
                "begins";
        if (code == CUDA_ERROR_NO_BINARY_FOR_GPU || code == CUDA_ERROR_INVALID_IMAGE ||
            code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
            int devices = 0;
            driver::lazy_cuDeviceGetCount(&devices);
            hint = str::format(". It was compiled for sm_{}; this machine has", arch_);
            for (int i = 0; i < devices; ++i) hint += (i > 0 ? ", " : " ") + describe_device(i);
        }
        throw LoadError(str::format("Cannot load kernel {}: cuLibraryLoadData: {}{}", key,
                                    driver::error_text(code), hint),
                        {{}, {}, {}, key});
    }

    CUkernel only_kernel(const std::string& key) const {
        unsigned int count = 0;
        driver::check<LoadError>(driver::lazy_cuLibraryGetKernelCount(&count, library_handle),
                                 "cuLibraryGetKernelCount");
        std::vector<CUkernel> kernels(count);
        if (count > 0)
            driver::check<LoadError>(
                driver::lazy_cuLibraryEnumerateKernels(kernels.data(), count, library_handle),
                "cuLibraryEnumerateKernels");
        if (count == 1)
            return kernels[0];
        std::string names;
        for (const auto kernel : kernels)
            names += (names.empty() ? ": " : ", ") + detail::demangle(name_of(kernel));
        throw LoadError(
            str::format("Cannot load {}: expected exactly one kernel, but there are {}{}. A source "
                        "must define or instantiate one __global__ function",
                        key, count, names),
            {{}, {}, {}, key});
    }

    static std::string name_of(CUkernel kernel) {
        const char* name = nullptr;
        driver::check<LoadError>(driver::lazy_cuKernelGetName(&name, kernel), "cuKernelGetName");
        return name;
    }

    void read_parameters(const std::string& key) {
        name_ = name_of(kernel_handle);
        while (true) {
            std::size_t offset = 0, size = 0;
            const auto code = driver::lazy_cuKernelGetParamInfo(kernel_handle, param_sizes_.size(),
                                                                &offset, &size);
            if (code == CUDA_ERROR_INVALID_VALUE)
                return;  // past the last one
            driver::check<LoadError>(code, "Cannot load kernel " + key + ": cuKernelGetParamInfo");
            param_sizes_.push_back(static_cast<std::uint32_t>(size));
        }
    }

    std::string name_;
    std::vector<std::uint32_t> param_sizes_;
    int arch_ = 0;
    int num_devices_ = 0;
    pid_t owner_ = ::getpid();
    std::unique_ptr<detail::DeviceState[]> states_;
    /// True once `nonportable` was set on any device.
    mutable std::atomic<bool> nonportable_seen_{false};
    /// Held while the attributes of the driver's kernel change, and while a launch rests on one
    /// that another launch may take back.
    mutable std::mutex attribute_mutex_;
};

}  // namespace deep_jit::cuda
