// dlopen with an owner and readable errors.
#pragma once

#include <dlfcn.h>

#include <string>
#include <utility>

#include <deep_jit/utils/exception.hpp>

namespace deep_jit {

/// Owns one dlopen reference. Empty when default-constructed or released.
class DynamicLibrary {
public:
    DynamicLibrary() = default;
    DynamicLibrary(DynamicLibrary&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)) {}
    DynamicLibrary& operator=(DynamicLibrary&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~DynamicLibrary() {
        if (handle_ != nullptr)
            ::dlclose(handle_);
    }

    /// Opens `name` with `flags`; empty when it cannot be opened, with the reason in `*error`.
    static DynamicLibrary try_open(const std::string& name, int flags = RTLD_NOW | RTLD_LOCAL,
                                   std::string* error = nullptr) {
        DynamicLibrary library;
        library.handle_ = ::dlopen(name.c_str(), flags);
        if (library.handle_ == nullptr && error != nullptr) {
            const char* reason = ::dlerror();
            *error = reason != nullptr ? reason : "unknown error of dlopen";
        }
        return library;
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    void* handle() const noexcept { return handle_; }

    /// Address of `name`, or null.
    void* find(const char* name) const noexcept {
        return handle_ != nullptr ? ::dlsym(handle_, name) : nullptr;
    }

    template <typename Function>
    Function* find(const char* name) const noexcept {
        return reinterpret_cast<Function*>(find(name));
    }

    /// Gives up ownership: the library stays loaded until the process ends.
    void* release() noexcept { return std::exchange(handle_, nullptr); }

private:
    void* handle_ = nullptr;
};

}  // namespace deep_jit
