// C++ view of stand_in_cuda.h for tests: finds the stand-in in the process and copies records out.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "stand_in_cuda.h"

namespace stand_in {

/// One launch with its arguments, copied out of the library.
struct Launch : dj_stand_in_cuda_launch_t {
    std::string name;
    std::vector<std::string> arguments;  ///< bytes of each

    template <typename T>
    T argument(std::size_t index) const {
        const auto& bytes = arguments.at(index);
        if (bytes.size() != sizeof(T))
            throw std::logic_error("argument " + std::to_string(index) + " of " + name + " has " +
                                   std::to_string(bytes.size()) + " bytes, not " +
                                   std::to_string(sizeof(T)));
        T out;
        std::memcpy(&out, bytes.data(), sizeof(T));
        return out;
    }
};

class StandInCuda {
public:
    /// `library`: a dlopen handle or a path; by default the libcuda.so.1 already in the process.
    /// Throws when that is not the stand-in (a real driver, or nothing).
    StandInCuda() : StandInCuda(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {}
    explicit StandInCuda(const std::string& path)
        : StandInCuda(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
    explicit StandInCuda(void* handle) : handle_(handle) {
        if (handle_ == nullptr || ::dlsym(handle_, "dj_stand_in_cuda_launch_count") == nullptr)
            throw std::runtime_error("the stand-in libcuda.so.1 is not in this process");
    }

    void* handle() const { return handle_; }

    std::size_t launch_count() const { return number("dj_stand_in_cuda_launch_count"); }
    std::size_t library_loads() const { return number("dj_stand_in_cuda_library_loads"); }
    std::size_t library_unloads() const { return number("dj_stand_in_cuda_library_unloads"); }
    std::size_t live_libraries() const { return number("dj_stand_in_cuda_live_libraries"); }
    std::size_t live_allocations() const { return number("dj_stand_in_cuda_live_allocations"); }
    std::size_t live_streams() const { return number("dj_stand_in_cuda_live_streams"); }
    std::size_t live_events() const { return number("dj_stand_in_cuda_live_events"); }
    std::size_t calls(const std::string& function = {}) const {
        return find<decltype(dj_stand_in_cuda_calls)>("dj_stand_in_cuda_calls")(function.c_str());
    }
    void reset() const { find<decltype(dj_stand_in_cuda_reset)>("dj_stand_in_cuda_reset")(); }
    void restart() const { find<decltype(dj_stand_in_cuda_restart)>("dj_stand_in_cuda_restart")(); }
    void record(bool enabled) const {
        find<decltype(dj_stand_in_cuda_record)>("dj_stand_in_cuda_record")(enabled ? 1 : 0);
    }
    void fail(const std::string& function, int code, std::size_t skip = 0) const {
        find<decltype(dj_stand_in_cuda_fail)>("dj_stand_in_cuda_fail")(function.c_str(), code,
                                                                       skip);
    }

    Launch launch(std::size_t index) const {
        Launch out;
        if (find<decltype(dj_stand_in_cuda_launch)>("dj_stand_in_cuda_launch")(index, &out) != 0)
            throw std::out_of_range("no launch " + std::to_string(index));
        out.name = out.kernel;
        const auto argument =
            find<decltype(dj_stand_in_cuda_argument)>("dj_stand_in_cuda_argument");
        for (std::size_t i = 0; i < out.num_arguments; ++i) {
            std::string bytes(argument(index, i, nullptr, 0), '\0');
            argument(index, i, bytes.data(), bytes.size());
            out.arguments.push_back(std::move(bytes));
        }
        return out;
    }

    Launch last_launch() const { return launch(launch_count() - 1); }

    std::vector<Launch> launches() const {
        std::vector<Launch> out;
        for (std::size_t i = 0; i < launch_count(); ++i) out.push_back(launch(i));
        return out;
    }

private:
    template <typename Function>
    Function* find(const char* name) const {
        return reinterpret_cast<Function*>(::dlsym(handle_, name));
    }
    std::size_t number(const char* name) const {
        return reinterpret_cast<std::size_t (*)()>(::dlsym(handle_, name))();
    }

    void* handle_;
};

}  // namespace stand_in
