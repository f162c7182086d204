// ACL, found at run time: nothing is linked, and nothing is opened before it is called.
//
// `driver::lazy_aclrtSetDevice(0)` calls aclrtSetDevice of libascendcl.so or libacl_rt.so. A
// missing library, or a function that an older CANN does not have, is a ToolchainError of that
// call.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <deep_jit/backend/ascend/acl.hpp>
#include <deep_jit/utils/dynamic_library.hpp>
#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>

namespace deep_jit::ascend::driver {

namespace detail {

/// Its old name, and the name from CANN 8.5 on. Old programs and torch_npu load the first, which
/// may be without some functions of the second.
inline constexpr const char* kLibraryNames[] = {"libascendcl.so", "libacl_rt.so"};
inline constinit std::atomic<void*> library_handles[2] = {nullptr, nullptr};

/// Handle of a library, or null; `reason` gets what was tried. It is never closed. A failure is
/// not remembered.
inline void* try_library(std::size_t which, std::string* reason) {
    if (void* handle = library_handles[which].load(std::memory_order_acquire))
        return handle;
    const auto try_open = [&](const std::string& path) -> void* {
        std::string problem;
        auto library = DynamicLibrary::try_open(path, RTLD_NOW | RTLD_LOCAL, &problem);
        if (!library) {
            if (reason != nullptr)
                *reason += "\n  " + problem;
            return nullptr;
        }
        // Threads that race get the same handle; the extra reference is of no consequence.
        void* handle = library.release();
        library_handles[which].store(handle, std::memory_order_release);
        return handle;
    };
    const std::string name = kLibraryNames[which];
    if (void* handle = try_open(name))
        return handle;
    // For a process that was started without the toolkit's set_env.sh.
    for (const char* variable : {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"}) {
        const auto root = get_env<std::string>(variable, std::string());
        const auto path = std::filesystem::path(root) / "lib64" / name;
        if (path.is_absolute() && is_file(path))
            if (void* handle = try_open(path.string()))
                return handle;
    }
    return nullptr;
}

/// Address of a function of ACL, or null. `found_library` tells whether there is a library at all.
inline void* try_symbol(const char* name, std::string* reason, bool* found_library) {
    for (std::size_t which = 0; which < 2; ++which) {
        void* library = try_library(which, reason);
        if (library == nullptr)
            continue;
        *found_library = true;
        if (void* address = ::dlsym(library, name))
            return address;
    }
    return nullptr;
}

}  // namespace detail

template <typename Signature>
class LazyFunction;

/// One function of ACL. Constant-initialised, so a call costs one load more than a direct one.
template <typename Result, typename... Args>
class LazyFunction<Result(Args...)> {
public:
    using Pointer = Result (*)(Args...);

    constexpr explicit LazyFunction(const char* name) : name_(name) {}
    LazyFunction(const LazyFunction&) = delete;
    LazyFunction& operator=(const LazyFunction&) = delete;

    // The library has its own names for the structures that these functions take.
#if defined(__clang__)
    [[clang::no_sanitize("function")]]
#endif
    Result
    operator()(Args... args) const {
        return get()(args...);
    }

    /// Address of the function. Throws ToolchainError when there is none.
    Pointer get() const {
        const Pointer pointer = pointer_.load(std::memory_order_acquire);
        return pointer != nullptr ? pointer : resolve();
    }

    /// The same, or null.
    Pointer try_get() const noexcept {
        try {
            bool found_library = false;
            return find(nullptr, &found_library);
        } catch (...) {
            return nullptr;
        }
    }

private:
    Pointer find(std::string* reason, bool* found_library) const {
        if (const Pointer pointer = pointer_.load(std::memory_order_acquire))
            return pointer;
        const auto pointer =
            reinterpret_cast<Pointer>(detail::try_symbol(name_, reason, found_library));
        pointer_.store(pointer, std::memory_order_release);
        return pointer;
    }

    [[gnu::cold, gnu::noinline]] Pointer resolve() const {
        std::string reason;
        bool found_library = false;
        if (const Pointer pointer = find(&reason, &found_library))
            return pointer;
        if (!found_library)
            deep_jit::detail::throw_error<ToolchainError>(
                "ACL cannot be opened, neither as libascendcl.so nor as libacl_rt.so. It comes "
                "with CANN: install it and source its set_env.sh. Tried:{}",
                reason);
        deep_jit::detail::throw_error<ToolchainError>(
            "This CANN is too old, or incomplete: its ACL has no {}. CANN 8.5.0 or newer is needed",
            name_);
    }

    const char* name_;
    mutable std::atomic<Pointer> pointer_{nullptr};
};

// DJ_ACL(result, name, argument types...)
#define DJ_ACL(result, name, ...) \
    inline constinit LazyFunction<result(__VA_ARGS__)> lazy_##name { #name }

DJ_ACL(aclError, aclInit, const char*);
DJ_ACL(const char*, aclGetRecentErrMsg, );
DJ_ACL(const char*, aclrtGetSocName, );
DJ_ACL(aclError, aclrtGetDeviceCount, std::uint32_t*);
DJ_ACL(aclError, aclrtGetDevice, std::int32_t*);
DJ_ACL(aclError, aclrtSetDevice, std::int32_t);
DJ_ACL(aclError, aclrtGetDeviceInfo, std::uint32_t, acl::DeviceAttribute, std::int64_t*);
DJ_ACL(aclError, aclrtSynchronizeDevice, );
DJ_ACL(aclError, aclrtBinaryLoadFromData, const void*, std::size_t, const acl::BinaryLoadOptions*,
       aclrtBinHandle*);
DJ_ACL(aclError, aclrtBinaryUnLoad, aclrtBinHandle);
DJ_ACL(aclError, aclrtBinaryGetFunction, aclrtBinHandle, const char*, aclrtFuncHandle*);
DJ_ACL(aclError, aclrtLaunchKernelWithHostArgs, aclrtFuncHandle, std::uint32_t, aclrtStream,
       acl::LaunchConfig*, void*, std::size_t, acl::PlaceHolderInfo*, std::size_t);

// What kernel libraries need around a launch; not used here.
DJ_ACL(aclError, aclFinalize, );
DJ_ACL(aclError, aclrtResetDevice, std::int32_t);
DJ_ACL(aclError, aclrtCreateStream, aclrtStream*);
DJ_ACL(aclError, aclrtDestroyStream, aclrtStream);
DJ_ACL(aclError, aclrtSynchronizeStream, aclrtStream);
DJ_ACL(aclError, aclrtSynchronizeStreamWithTimeout, aclrtStream, std::int32_t);
DJ_ACL(aclError, aclrtMalloc, void**, std::size_t, acl::MallocPolicy);
DJ_ACL(aclError, aclrtFree, void*);
DJ_ACL(aclError, aclrtMallocHost, void**, std::size_t);
DJ_ACL(aclError, aclrtFreeHost, void*);
DJ_ACL(aclError, aclrtMemcpy, void*, std::size_t, const void*, std::size_t, acl::MemcpyKind);
DJ_ACL(aclError, aclrtMemcpyAsync, void*, std::size_t, const void*, std::size_t, acl::MemcpyKind,
       aclrtStream);
DJ_ACL(aclError, aclrtMemset, void*, std::size_t, std::int32_t, std::size_t);

#undef DJ_ACL

namespace detail {

inline constinit std::atomic<bool> process_exits{false};
/// The process that has started ACL, or 0.
inline constinit std::atomic<pid_t> initialized_by{0};

}  // namespace detail

/// "ACL_ERROR_RT_PARAM_INVALID (107000): <what ACL has to say>". Takes ACL's message of this
/// thread, which is lost with it.
inline std::string error_text(aclError code) {
    std::string out = str::format("{} ({})", acl::error_name(code), code);
    const auto get = lazy_aclGetRecentErrMsg.try_get();
    const char* message = get != nullptr ? get() : nullptr;
    if (message != nullptr && message[0] != '\0')
        out += ": " + std::string(str::trim(message));
    const pid_t owner = detail::initialized_by.load(std::memory_order_relaxed);
    if (owner != 0 && owner != ::getpid())
        out += ". ACL does not work in a child that was forked after its parent had used it";
    return out;
}

/// Throws E, with `what`, the code's name and ACL's message, unless `code` is success.
template <typename E = Error>
void check(aclError code, std::string_view what) {
    if (code != acl::kSuccess) [[unlikely]]
        deep_jit::detail::throw_error<E>("{}: {}", what, error_text(code));
}

/// True once the process is on its way out: then ACL may have shut down already.
inline bool is_shut_down() noexcept {
    return detail::process_exits.load(std::memory_order_relaxed);
}

/// Runs aclInit, unless someone did. Throws ToolchainError when there is no ACL or it does not
/// start.
inline void initialize() {
    if (detail::initialized_by.load(std::memory_order_acquire) != 0)
        return;
    const aclError code = lazy_aclInit(nullptr);
    if (code == acl::kRepeatInitialize)
        error_text(code);  // takes the message away: the next error should not show it
    else
        check<ToolchainError>(code, "ACL does not start (aclInit)");
    // Registered after ACL's own handlers, so it runs before them.
    if (detail::initialized_by.exchange(::getpid(), std::memory_order_acq_rel) == 0)
        std::atexit([] { detail::process_exits.store(true, std::memory_order_relaxed); });
}

/// Device of the calling thread, or -1 when none was set.
inline int current_device() {
    std::int32_t device = -1;
    const aclError code = lazy_aclrtGetDevice(&device);
    if (code == acl::kSuccess)
        return device;
    error_text(code);
    return -1;
}

}  // namespace deep_jit::ascend::driver

/// Throws deep_jit::Error unless the call `call` of ACL (an aclError) succeeded.
#define DJ_ACL_CHECK(call) ::deep_jit::ascend::driver::check((call), #call)
