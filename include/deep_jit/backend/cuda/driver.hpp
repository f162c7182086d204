// The CUDA driver, found at run time: nothing is linked, and nothing is opened before it is called.
//
// `driver::lazy_cuInit(0)` calls cuInit of libcuda.so.1. A missing library, or a function that an
// older driver does not have, is a ToolchainError of that call.
#pragma once

#if !__has_include(<cuda.h>)
#error "The CUDA backend of deep_jit needs cuda.h (CUDA 12.4 or newer) in the include path"
#endif
#include <cuda.h>
#if CUDA_VERSION < 12040
#error "The CUDA backend of deep_jit needs the headers of CUDA 12.4 or newer"
#endif

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include <deep_jit/utils/dynamic_library.hpp>
#include <deep_jit/utils/exception.hpp>

namespace deep_jit::cuda::driver {

namespace detail {

inline constinit std::atomic<void*> library_handle{nullptr};

/// Handle of libcuda.so.1, or null with the reason. It is never closed: the driver does not
/// support that. A failure is not remembered.
inline void* try_library(std::string* reason = nullptr) {
    if (void* handle = library_handle.load(std::memory_order_acquire))
        return handle;
    // Where the Windows subsystem for Linux keeps it, outside the usual directories.
    for (const char* name : {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}) {
        std::string problem;
        auto library = DynamicLibrary::try_open(name, RTLD_NOW | RTLD_LOCAL, &problem);
        if (library) {
            // Threads that race get the same handle; the extra reference is of no consequence.
            void* handle = library.release();
            library_handle.store(handle, std::memory_order_release);
            return handle;
        }
        if (reason != nullptr && reason->empty())
            *reason = problem;
    }
    return nullptr;
}

}  // namespace detail

template <typename Signature>
class LazyFunction;

/// One driver function. Constant-initialised, so a call costs one load more than a direct one.
template <typename... Args>
class LazyFunction<CUresult(Args...)> {
public:
    using Pointer = CUresult (*)(Args...);

    /// `symbol` is the name in the library, with its version suffix.
    constexpr explicit LazyFunction(const char* symbol) : symbol_(symbol) {}
    LazyFunction(const LazyFunction&) = delete;
    LazyFunction& operator=(const LazyFunction&) = delete;

    CUresult operator()(Args... args) const { return get()(args...); }

    /// Address of the function. Throws ToolchainError when there is none.
    Pointer get() const {
        const Pointer pointer = pointer_.load(std::memory_order_acquire);
        return pointer != nullptr ? pointer : resolve();
    }

    /// The same, or null.
    Pointer try_get(std::string* reason = nullptr) const {
        if (const Pointer pointer = pointer_.load(std::memory_order_acquire))
            return pointer;
        void* library = detail::try_library(reason);
        if (library == nullptr)
            return nullptr;
        const auto pointer = reinterpret_cast<Pointer>(::dlsym(library, symbol_));
        pointer_.store(pointer, std::memory_order_release);
        return pointer;
    }

private:
    [[gnu::noinline]] Pointer resolve() const {
        std::string reason;
        if (const Pointer pointer = try_get(&reason))
            return pointer;
        if (!reason.empty())
            deep_jit::detail::throw_error<ToolchainError>(
                "The CUDA driver library libcuda.so.1 cannot be opened: {}. It comes with the "
                "NVIDIA driver; in a container, start it with access to the GPUs",
                reason);
        deep_jit::detail::throw_error<ToolchainError>(
            "The CUDA driver is too old: its libcuda.so.1 has no {}. A driver for CUDA 12.4 or "
            "newer (version 550 or newer) is needed",
            symbol_);
    }

    const char* symbol_;
    mutable std::atomic<Pointer> pointer_{nullptr};
};

// Two levels: cuda.h makes some names macros for versioned ones (cuStreamGetCtx, say, may stand
// for cuStreamGetCtx_ptsz). The object gets the plain name, the symbol is the expanded one.
#define DJ_CUDA_DRIVER_FUNCTION(name) DJ_CUDA_DRIVER_FUNCTION_(lazy_##name, name)
#define DJ_CUDA_DRIVER_FUNCTION_(object, symbol) DJ_CUDA_DRIVER_FUNCTION__(object, symbol, #symbol)
// NOLINTBEGIN(bugprone-macro-parentheses): an object's name cannot have them
#define DJ_CUDA_DRIVER_FUNCTION__(object, symbol, text) \
    inline constinit LazyFunction<decltype(symbol)> object { text }
// NOLINTEND(bugprone-macro-parentheses)

DJ_CUDA_DRIVER_FUNCTION(cuInit);
DJ_CUDA_DRIVER_FUNCTION(cuDriverGetVersion);
DJ_CUDA_DRIVER_FUNCTION(cuGetErrorName);
DJ_CUDA_DRIVER_FUNCTION(cuGetErrorString);
DJ_CUDA_DRIVER_FUNCTION(cuDeviceGet);
DJ_CUDA_DRIVER_FUNCTION(cuDeviceGetCount);
DJ_CUDA_DRIVER_FUNCTION(cuDeviceGetName);
DJ_CUDA_DRIVER_FUNCTION(cuDeviceGetAttribute);
DJ_CUDA_DRIVER_FUNCTION(cuDeviceTotalMem);
DJ_CUDA_DRIVER_FUNCTION(cuDevicePrimaryCtxRetain);
DJ_CUDA_DRIVER_FUNCTION(cuCtxGetCurrent);
DJ_CUDA_DRIVER_FUNCTION(cuCtxSetCurrent);
DJ_CUDA_DRIVER_FUNCTION(cuCtxGetDevice);
DJ_CUDA_DRIVER_FUNCTION(cuCtxPushCurrent);
DJ_CUDA_DRIVER_FUNCTION(cuCtxPopCurrent);
DJ_CUDA_DRIVER_FUNCTION(cuDevicePrimaryCtxRelease);
DJ_CUDA_DRIVER_FUNCTION(cuStreamGetCtx);
DJ_CUDA_DRIVER_FUNCTION(cuThreadExchangeStreamCaptureMode);
DJ_CUDA_DRIVER_FUNCTION(cuLibraryLoadData);
DJ_CUDA_DRIVER_FUNCTION(cuLibraryUnload);
DJ_CUDA_DRIVER_FUNCTION(cuLibraryGetKernel);
DJ_CUDA_DRIVER_FUNCTION(cuLibraryGetKernelCount);
DJ_CUDA_DRIVER_FUNCTION(cuLibraryEnumerateKernels);
DJ_CUDA_DRIVER_FUNCTION(cuKernelGetName);
DJ_CUDA_DRIVER_FUNCTION(cuKernelGetParamInfo);
DJ_CUDA_DRIVER_FUNCTION(cuKernelGetAttribute);
DJ_CUDA_DRIVER_FUNCTION(cuKernelSetAttribute);
DJ_CUDA_DRIVER_FUNCTION(cuLaunchKernelEx);

// What kernel libraries need around a launch; not used here.
DJ_CUDA_DRIVER_FUNCTION(cuCtxSynchronize);
DJ_CUDA_DRIVER_FUNCTION(cuMemGetInfo);
DJ_CUDA_DRIVER_FUNCTION(cuMemAlloc);
DJ_CUDA_DRIVER_FUNCTION(cuMemAllocAsync);
DJ_CUDA_DRIVER_FUNCTION(cuMemFree);
DJ_CUDA_DRIVER_FUNCTION(cuMemFreeAsync);
DJ_CUDA_DRIVER_FUNCTION(cuMemAllocHost);
DJ_CUDA_DRIVER_FUNCTION(cuMemFreeHost);
DJ_CUDA_DRIVER_FUNCTION(cuMemAllocManaged);
DJ_CUDA_DRIVER_FUNCTION(cuMemHostGetDevicePointer);
DJ_CUDA_DRIVER_FUNCTION(cuPointerGetAttribute);
DJ_CUDA_DRIVER_FUNCTION(cuMemcpyHtoD);
DJ_CUDA_DRIVER_FUNCTION(cuMemcpyDtoH);
DJ_CUDA_DRIVER_FUNCTION(cuMemcpyDtoD);
DJ_CUDA_DRIVER_FUNCTION(cuMemcpyHtoDAsync);
DJ_CUDA_DRIVER_FUNCTION(cuMemcpyDtoHAsync);
DJ_CUDA_DRIVER_FUNCTION(cuMemcpyDtoDAsync);
DJ_CUDA_DRIVER_FUNCTION(cuMemsetD8);
DJ_CUDA_DRIVER_FUNCTION(cuMemsetD32);
DJ_CUDA_DRIVER_FUNCTION(cuMemsetD8Async);
DJ_CUDA_DRIVER_FUNCTION(cuMemsetD32Async);
DJ_CUDA_DRIVER_FUNCTION(cuStreamCreate);
DJ_CUDA_DRIVER_FUNCTION(cuStreamCreateWithPriority);
DJ_CUDA_DRIVER_FUNCTION(cuStreamDestroy);
DJ_CUDA_DRIVER_FUNCTION(cuStreamSynchronize);
DJ_CUDA_DRIVER_FUNCTION(cuStreamQuery);
DJ_CUDA_DRIVER_FUNCTION(cuStreamWaitEvent);
DJ_CUDA_DRIVER_FUNCTION(cuStreamWaitValue32);
DJ_CUDA_DRIVER_FUNCTION(cuStreamWriteValue32);
DJ_CUDA_DRIVER_FUNCTION(cuStreamIsCapturing);
DJ_CUDA_DRIVER_FUNCTION(cuStreamBeginCapture);
DJ_CUDA_DRIVER_FUNCTION(cuStreamEndCapture);
DJ_CUDA_DRIVER_FUNCTION(cuEventCreate);
DJ_CUDA_DRIVER_FUNCTION(cuEventDestroy);
DJ_CUDA_DRIVER_FUNCTION(cuEventRecord);
DJ_CUDA_DRIVER_FUNCTION(cuEventSynchronize);
DJ_CUDA_DRIVER_FUNCTION(cuEventQuery);
DJ_CUDA_DRIVER_FUNCTION(cuEventElapsedTime);
DJ_CUDA_DRIVER_FUNCTION(cuGraphInstantiate);
DJ_CUDA_DRIVER_FUNCTION(cuGraphLaunch);
DJ_CUDA_DRIVER_FUNCTION(cuGraphDestroy);
DJ_CUDA_DRIVER_FUNCTION(cuGraphExecDestroy);
DJ_CUDA_DRIVER_FUNCTION(cuLibraryGetGlobal);
DJ_CUDA_DRIVER_FUNCTION(cuLibraryGetModule);
DJ_CUDA_DRIVER_FUNCTION(cuKernelGetFunction);
DJ_CUDA_DRIVER_FUNCTION(cuModuleLoadData);
DJ_CUDA_DRIVER_FUNCTION(cuModuleUnload);
DJ_CUDA_DRIVER_FUNCTION(cuModuleGetFunction);
DJ_CUDA_DRIVER_FUNCTION(cuModuleGetGlobal);
DJ_CUDA_DRIVER_FUNCTION(cuFuncGetAttribute);
DJ_CUDA_DRIVER_FUNCTION(cuFuncSetAttribute);
DJ_CUDA_DRIVER_FUNCTION(cuLaunchKernel);
DJ_CUDA_DRIVER_FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor);
DJ_CUDA_DRIVER_FUNCTION(cuOccupancyMaxActiveClusters);
DJ_CUDA_DRIVER_FUNCTION(cuTensorMapEncodeTiled);
DJ_CUDA_DRIVER_FUNCTION(cuTensorMapEncodeIm2col);
DJ_CUDA_DRIVER_FUNCTION(cuTensorMapReplaceAddress);

#undef DJ_CUDA_DRIVER_FUNCTION
#undef DJ_CUDA_DRIVER_FUNCTION_
#undef DJ_CUDA_DRIVER_FUNCTION__

/// "CUDA_ERROR_INVALID_VALUE (1): invalid argument".
inline std::string error_text(CUresult code) {
    const char* name = nullptr;
    const char* text = nullptr;
    if (const auto get = lazy_cuGetErrorName.try_get())
        get(code, &name);
    if (const auto get = lazy_cuGetErrorString.try_get())
        get(code, &text);
    std::string out = str::format("{} ({})", name != nullptr ? name : "unknown CUDA error",
                                  static_cast<int>(code));
    if (text != nullptr)
        out += std::string(": ") + text;
    if (code == CUDA_ERROR_NOT_INITIALIZED)
        out += ". CUDA does not work in a child that was forked after its parent had used it";
    return out;
}

/// Throws E, with `what` and the code's name and text, unless `code` is success.
template <typename E = Error>
void check(CUresult code, std::string_view what) {
    if (code != CUDA_SUCCESS) [[unlikely]]
        deep_jit::detail::throw_error<E>("{}: {}", what, error_text(code));
}

namespace detail {

inline constinit std::atomic<bool> process_exits{false};
inline constinit std::atomic<bool> initialized{false};

}  // namespace detail

/// True once the process is on its way out: then the driver may have shut down already.
inline bool is_shut_down() noexcept {
    return detail::process_exits.load(std::memory_order_relaxed);
}

/// Runs cuInit. Throws ToolchainError when there is no driver or it does not start.
inline void initialize() {
    if (detail::initialized.load(std::memory_order_acquire))
        return;
    // Any number of threads may do this at once.
    check<ToolchainError>(lazy_cuInit(0), "The CUDA driver does not start (cuInit)");
    // Registered after the driver's own handlers, so it runs before them.
    if (!detail::initialized.exchange(true, std::memory_order_acq_rel))
        std::atexit([] { detail::process_exits.store(true, std::memory_order_relaxed); });
}

}  // namespace deep_jit::cuda::driver

/// Throws deep_jit::Error unless the driver call `call` (a CUresult) succeeded.
#define DJ_CUDA_DRIVER_CHECK(call) ::deep_jit::cuda::driver::check((call), #call)

/// Throws deep_jit::Error unless the runtime call `call` (a cudaError_t) succeeded. For code that
/// uses and links the CUDA runtime; this library does not.
#define DJ_CUDA_RUNTIME_CHECK(call)                                                    \
    do {                                                                               \
        const auto dj_cuda_result = (call);                                            \
        if (dj_cuda_result != cudaSuccess) [[unlikely]]                                \
            ::deep_jit::detail::throw_error<::deep_jit::Error>(                        \
                "{}: {} ({}): {}", #call, cudaGetErrorName(dj_cuda_result),            \
                static_cast<int>(dj_cuda_result), cudaGetErrorString(dj_cuda_result)); \
    } while (false)
