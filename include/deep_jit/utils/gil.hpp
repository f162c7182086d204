// Releases Python's global interpreter lock around slow work, when there is a Python at all.
#pragma once

#include <dlfcn.h>

#include <type_traits>

namespace deep_jit {

namespace detail {

/// The four functions of Python's stable ABI that are needed, found in the running process, so
/// that a pure C++ program needs no Python headers and no libpython.
struct PythonApi {
    int (*is_initialized)() = nullptr;
    int (*gil_check)() = nullptr;
    void* (*save_thread)() = nullptr;
    void (*restore_thread)(void*) = nullptr;

    static PythonApi find() {
        PythonApi api;
        const auto load = [](auto& function, const char* name) {
            function =
                reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(RTLD_DEFAULT, name));
            return function != nullptr;
        };
        if (!load(api.is_initialized, "Py_IsInitialized") ||
            !load(api.gil_check, "PyGILState_Check") ||
            !load(api.save_thread, "PyEval_SaveThread") ||
            !load(api.restore_thread, "PyEval_RestoreThread"))
            return {};
        return api;
    }
};

}  // namespace detail

/// While it lives, this thread does not hold the GIL. Does nothing when no Python runs in the
/// process or this thread does not hold its lock.
class GilRelease {
public:
    // Looked up every time: Python may be loaded after the first use, and this is a slow path.
    GilRelease() : api_(detail::PythonApi::find()) {
        if (api_.save_thread != nullptr && api_.is_initialized() != 0 && api_.gil_check() != 0)
            state_ = api_.save_thread();
    }
    ~GilRelease() {
        if (state_ != nullptr)
            api_.restore_thread(state_);
    }
    GilRelease(const GilRelease&) = delete;
    GilRelease& operator=(const GilRelease&) = delete;

private:
    detail::PythonApi api_;
    void* state_ = nullptr;
};

}  // namespace deep_jit
