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
    /// Bytes of each parameter, in order. Throws LoadError when the driver does not tell.
    const std::vector<std::uint32_t>& param_sizes() const {
        if (!params_known())
            driver::check<LoadError>(
                learn_parameters(), "Kernel " + detail::demangle(name_) + ": cuKernelGetParamInfo");
        return param_sizes_;
    }
    /// Compute capability it was compiled for: 10 * major + minor, or 0 when unknown.
    int arch() const { return arch_; }

    /// Loads the one kernel of `cubin`; `key` is for messages. Needs no context. Throws LoadError,
    /// or ToolchainError when there is no suitable driver.
    static std::shared_ptr<Kernel> load(std::string_view cubin, const std::string& key) {
        driver::initialize();
        const std::shared_ptr<Kernel> out(new Kernel);
        out->arch_ = cubin_arch(cubin);
        // The driver is not told the length: it would read on behind a file that is cut short.
        if (out->arch_ == 0)
            throw LoadError(str::format("Cannot load kernel {}: its {} bytes are no complete CUBIN",
                                        key, cubin.size()),
                            {{}, {}, {}, key});
        const auto code = driver::lazy_cuLibraryLoadData(&out->library_handle, cubin.data(),
                                                         nullptr, nullptr, 0, nullptr, nullptr, 0);
        out->check_loaded("cuLibraryLoadData", code, key);
        out->kernel_handle = out->only_kernel(key);
        out->name_ = name_of(out->kernel_handle);
        // A thread without a context gets no answer; then the first launch asks again.
        if (const auto known = out->read_parameters(); known != CUDA_ERROR_INVALID_CONTEXT)
            out->check_loaded("cuKernelGetParamInfo", known, key);
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
        const auto unload_library = driver::lazy_cuLibraryUnload.try_get();
        const auto exchange_mode = driver::lazy_cuThreadExchangeStreamCaptureMode.try_get();
        if (unload_library == nullptr || exchange_mode == nullptr)
            return;
        // Else this would spoil any capture that is under way, also one of another thread. An
        // error has no consequence: the memory goes with the process.
        auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        const bool relaxed = exchange_mode(&mode) == CUDA_SUCCESS;
        unload_library(library);
        if (relaxed)
            exchange_mode(&mode);
    }

private:
    friend class Launch;
    Kernel() = default;

    void check_loaded(const char* call, CUresult code, const std::string& key) const {
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
        throw LoadError(str::format("Cannot load kernel {}: {}: {}{}", key, call,
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
        if (count == 0) {
            // Drivers take code for another architecture as a library without kernels. Asked for
            // one, they say what is wrong.
            CUkernel any = nullptr;
            const auto code = driver::lazy_cuLibraryGetKernel(&any, library_handle, "any");
            if (code != CUDA_ERROR_NOT_FOUND)
                check_loaded("cuLibraryGetKernel", code, key);
        }
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

    bool params_known() const { return params_known_.load(std::memory_order_acquire); }

    /// Asks the driver for the parameters. It answers only where a context is current.
    CUresult read_parameters() const {
        std::vector<std::uint32_t> sizes;
        std::size_t offset = 0, size = 0;
        CUresult code;
        while ((code = driver::lazy_cuKernelGetParamInfo(kernel_handle, sizes.size(), &offset,
                                                         &size)) == CUDA_SUCCESS)
            sizes.push_back(static_cast<std::uint32_t>(size));
        if (code != CUDA_ERROR_INVALID_VALUE)
            return code;
        // That was past the last one.
        param_sizes_ = std::move(sizes);
        params_known_.store(true, std::memory_order_release);
        return CUDA_SUCCESS;
    }

    /// The same, with the primary context of some device if the thread has none.
    [[gnu::cold, gnu::noinline]] CUresult learn_parameters() const {
        const std::lock_guard lock(attribute_mutex_);
        if (params_known())
            return CUDA_SUCCESS;
        auto code = read_parameters();
        for (int device = 0; code != CUDA_SUCCESS && device < num_devices_; ++device) {
            CUcontext context = nullptr;
            if (driver::lazy_cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
                continue;
            if (driver::lazy_cuCtxPushCurrent(context) == CUDA_SUCCESS) {
                code = read_parameters();
                driver::lazy_cuCtxPopCurrent(&context);
            }
            driver::lazy_cuDevicePrimaryCtxRelease(device);
        }
        return code;
    }

    std::string name_;
    mutable std::vector<std::uint32_t> param_sizes_;  ///< does not change once known
    mutable std::atomic<bool> params_known_{false};
    int arch_ = 0;
    int num_devices_ = 0;
    pid_t owner_ = ::getpid();
    std::unique_ptr<detail::DeviceState[]> states_;
    /// True once `nonportable` was set on any device.
    mutable std::atomic<bool> nonportable_seen_{false};
    /// Held while the attributes of the driver's kernel change, and while a launch rests on one
    /// that another launch may take back; and while the parameters are learnt.
    mutable std::mutex attribute_mutex_;
};

}  // namespace deep_jit::cuda
