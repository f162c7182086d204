// C++ view of stand_in_cann.h for tests: finds the stand-in in the process and copies records out.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "stand_in_cann.h"

namespace stand_in {

/// One launch, copied out of the library.
struct CannLaunch : dj_stand_in_cann_launch_t {
    std::string name;
    std::string arguments;  ///< the bytes of the buffer

    template <typename T>
    T argument(std::size_t offset) const {
        if (offset + sizeof(T) > arguments.size())
            throw std::out_of_range("the arguments of " + name + " end before");
        T out;
        std::memcpy(&out, arguments.data() + offset, sizeof(T));
        return out;
    }
};

class StandInCann {
public:
    /// `library`: a dlopen handle or a path; by default the libascendcl.so or libacl_rt.so already
    /// in the process. Throws when that is not the stand-in (a real ACL, or nothing).
    StandInCann() : StandInCann(find_library()) {}
    explicit StandInCann(const std::string& path)
        : StandInCann(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
    explicit StandInCann(void* handle) : handle_(handle) {
        if (handle_ == nullptr || ::dlsym(handle_, "dj_stand_in_cann_version") == nullptr)
            throw std::runtime_error("the stand-in libascendcl.so is not in this process");
    }

    void* handle() const { return handle_; }

    int version() const { return find<int()>("dj_stand_in_cann_version")(); }
    std::size_t launch_count() const { return number("dj_stand_in_cann_launch_count"); }
    std::size_t binary_loads() const { return number("dj_stand_in_cann_binary_loads"); }
    std::size_t live_binaries() const { return number("dj_stand_in_cann_live_binaries"); }
    std::size_t live_streams() const { return number("dj_stand_in_cann_live_streams"); }
    std::size_t live_events() const { return number("dj_stand_in_cann_live_events"); }
    std::size_t live_allocations() const { return number("dj_stand_in_cann_live_allocations"); }
    std::size_t calls(const std::string& function = {}) const {
        return find<std::size_t(const char*)>("dj_stand_in_cann_calls")(function.c_str());
    }
    void fail(const std::string& function, int code, std::size_t skip = 0) const {
        find<void(const char*, int, std::size_t)>("dj_stand_in_cann_fail")(function.c_str(), code,
                                                                           skip);
    }
    void hold() const { find<void()>("dj_stand_in_cann_hold")(); }
    void release() const { find<void()>("dj_stand_in_cann_release")(); }
    void reset() const { find<void()>("dj_stand_in_cann_reset")(); }
    void restart() const { find<void()>("dj_stand_in_cann_restart")(); }

    CannLaunch launch(std::size_t index) const {
        CannLaunch out{};
        if (find<decltype(dj_stand_in_cann_launch)>("dj_stand_in_cann_launch")(index, &out) != 0)
            throw std::out_of_range("no launch " + std::to_string(index));
        out.name = out.kernel;
        out.arguments.resize(out.args_size);
        find<decltype(dj_stand_in_cann_arguments)>("dj_stand_in_cann_arguments")(
            index, out.arguments.data(), out.arguments.size());
        return out;
    }
    CannLaunch last_launch() const { return launch(launch_count() - 1); }

private:
    static void* find_library() {
        void* out = ::dlopen("libascendcl.so", RTLD_NOW | RTLD_NOLOAD);
        return out != nullptr ? out : ::dlopen("libacl_rt.so", RTLD_NOW | RTLD_NOLOAD);
    }
    template <typename Type>
    Type* find(const char* name) const {
        return reinterpret_cast<Type*>(::dlsym(handle_, name));
    }
    std::size_t number(const char* name) const { return find<std::size_t()>(name)(); }

    void* handle_;
};

}  // namespace stand_in
