// The state of the stand-in's ACL and the gate that every exported function passes.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "binary.hpp"
#include "cores.hpp"
#include "memory.hpp"
#include "settings.hpp"
#include "stand_in_cann.h"
#include "stream.hpp"

namespace dj_stand_in {

/// An exported function ends with this code. Caught by `call`.
struct Failure {
    int code;
    std::string message;
};

[[noreturn]] inline void fail(int code, std::string message) {
    throw Failure{code, std::move(message)};
}

inline void require(bool condition, int code, const char* message) {
    if (!condition)
        fail(code, message);
}

/// Objects behind one type of handle. Nothing that a client passes is dereferenced before it was
/// found here, and a removed handle never comes to life again.
template <typename T>
class Handles {
public:
    template <typename... Arguments>
    T* add(Arguments&&... arguments) {
        auto object = std::make_shared<T>(std::forward<Arguments>(arguments)...);
        T* out = object.get();
        alive_.emplace(out, std::move(object));
        return out;
    }
    std::shared_ptr<T> find(const void* handle) const {
        const auto found = alive_.find(handle);
        return found != alive_.end() ? found->second : nullptr;
    }
    /// Keeps the object's memory, so that no other gets its address.
    std::shared_ptr<T> remove(const void* handle) {
        auto node = alive_.extract(handle);
        if (node.empty())
            return nullptr;
        removed_.push_back(node.mapped());
        return std::move(node.mapped());
    }
    void clear() {
        for (auto& [handle, object] : alive_) removed_.push_back(std::move(object));
        alive_.clear();
    }
    std::size_t size() const { return alive_.size(); }
    std::vector<std::shared_ptr<T>> all() const {
        std::vector<std::shared_ptr<T>> out;
        for (const auto& [handle, object] : alive_) out.push_back(object);
        return out;
    }

private:
    std::unordered_map<const void*, std::shared_ptr<T>> alive_;
    std::vector<std::shared_ptr<T>> removed_;
};

struct Device {
    Device(int id, const Soc& soc, Gate& gate)
        : cores(static_cast<int>(soc.cube_cores + soc.vector_cores)),
          default_stream(std::make_shared<Stream>(id, gate)) {}
    CorePool cores;
    std::shared_ptr<Stream> default_stream;
};

/// What a thread has of its own.
struct ThreadState {
    unsigned long long epoch = 0;  ///< of the runtime that filled it
    int device = -1;
    bool has_message = false;
    std::string message;   ///< not yet asked for
    std::string answered;  ///< what the last aclGetRecentErrMsg points to
};

/// A launch as it is recorded.
struct Record {
    dj_stand_in_cann_launch_t launch{};
    std::string name;
    std::string arguments;
};

struct QueuedFailure {
    int code;
    std::size_t skip;
};

class Runtime {
public:
    static Runtime& get();

    std::mutex mutex;
    Settings settings = Settings::from_environment();
    bool initialised = false;
    bool finalised = false;
    pid_t process;  ///< the threads are in this one only
    unsigned long long epoch = 1;

    Gate gate;
    Memory memory;  ///< of all devices
    std::map<void*, std::size_t> host_memory;
    std::deque<Device> devices;
    Handles<Stream> streams;
    Handles<Event> events;
    Handles<Binary> binaries;
    std::unordered_map<const void*, std::shared_ptr<Binary>> functions;  ///< that were looked up

    // Of the test API; see stand_in_cann.h.
    std::deque<Record> records;
    std::size_t binary_loads = 0;
    std::map<std::string, std::size_t, std::less<>> calls;
    std::map<std::string, std::deque<QueuedFailure>, std::less<>> failures;

    ThreadState& thread();
    /// Ordinal of the thread's device; fails when none was set.
    int current_device();
    /// NULL is the default stream of the current device.
    std::shared_ptr<Stream> stream(aclrtStream handle);
    /// Those of a device, with the default one.
    std::vector<std::shared_ptr<Stream>> streams_of(int device);
    void check_device(int device) const;
    void restart();
    /// Counts the call; a queued failure of it that is due, or 0.
    int note_call(const char* function);
    void set_message(int code, const std::string& text);

private:
    Runtime();
    std::vector<std::unique_ptr<ThreadState>> threads_;
};

enum class Needs { nothing, initialisation };

/// Runs the body of an exported function, after the checks that all of them share. The body holds
/// the runtime's lock and may give it up.
template <typename Body>
aclError call(const char* function, Needs needs, Body&& body) noexcept {
    auto& runtime = Runtime::get();
    std::unique_lock lock(runtime.mutex);
    const auto failed = [&](int code, const std::string& message) {
        if (!lock.owns_lock())
            lock.lock();
        runtime.set_message(code, std::string("[") + function + "] " + message);
        return code;
    };
    try {
        if (const int code = runtime.note_call(function))
            return failed(code, "A failure that a test asked for.");
        if (needs == Needs::initialisation && !runtime.initialised)
            return failed(ACL_ERROR_UNINITIALIZE, "aclInit has not been called.");
        body(runtime, lock);
        return ACL_SUCCESS;
    } catch (const Failure& failure) {
        return failed(failure.code, failure.message);
    } catch (const std::bad_alloc&) {
        return failed(ACL_ERROR_BAD_ALLOC, "There is no memory.");
    } catch (const std::exception& error) {
        return failed(ACL_ERROR_FAILURE, error.what());
    }
}

template <typename Body>
aclError call(const char* function, Body&& body) noexcept {
    return call(function, Needs::initialisation, std::forward<Body>(body));
}

}  // namespace dj_stand_in
