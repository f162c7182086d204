// The state of the stand-in driver and the gate that every exported function passes.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_api.hpp"
#include "handles.hpp"
#include "objects.hpp"

namespace stand_in {

/// An exported function ends with this code. Caught by `call`.
struct Failure {
    CUresult code;
};

[[noreturn]] inline void fail(CUresult code) { throw Failure{code}; }

inline void require(bool condition, CUresult code = CUDA_ERROR_INVALID_VALUE) {
    if (!condition)
        fail(code);
}

/// What a thread has of its own. Trivially destructible: it is used until the process is gone.
struct ThreadState {
    std::array<Context*, 32> stack;
    int depth;
    unsigned long long epoch;  ///< of the driver that filled it
    CUstreamCaptureMode capture_mode;
};

/// Settings read from the environment when the driver starts.
struct Settings {
    std::vector<Device> devices;
    int driver_version = 13000;
    bool eager = false;
    bool strict_capture = false;
    std::string exit_log;

    static Settings from_environment();
};

struct QueuedFailure {
    CUresult code;
    std::size_t skip;
};

class Driver {
public:
    static Driver& get();

    std::mutex mutex;
    Settings settings = Settings::from_environment();
    bool initialised = false;
    bool forked = false;
    unsigned long long epoch = 1;
    unsigned long long next_capture = 1;

    std::deque<Context> primary_contexts;  ///< one per device, from cuInit on
    Registry<Context> contexts;            ///< from cuCtxCreate
    Registry<Stream> streams;
    Registry<Event> events;
    Registry<Library> libraries;  ///< and modules
    Registry<Kernel> kernels;
    Registry<Function> functions;
    Registry<Graph> graphs;
    Registry<GraphNode> graph_nodes;
    Registry<GraphExec> graph_execs;
    std::map<CUdeviceptr, Allocation> memory;
    std::vector<std::shared_ptr<Capture>> captures;

    // Of the test API; see stand_in_cuda.h.
    bool recording = true;
    std::size_t launches = 0;
    std::deque<Record> records;
    std::size_t library_loads = 0;
    std::size_t library_unloads = 0;
    std::map<std::string, std::size_t, std::less<>> calls;
    std::map<std::string, std::deque<QueuedFailure>, std::less<>> failures;

    ThreadState& thread();
    const Device& device(CUdevice ordinal) const;

    /// The thread's context; fails when there is none or it is gone.
    Context& current_context();
    Context* context_of(CUcontext handle);
    /// The stream behind a handle; NULL and the special handles belong to the current context.
    Stream& stream(CUstream handle);

    /// Fails when the thread may not make calls that could disturb a capture (and spoils the
    /// captures concerned, as the driver does).
    void refuse_during_capture();
    /// Fails when work in `stream` would implicitly wait for a stream that is capturing.
    void check_implicit_dependency(const Stream& stream);
    void invalidate(const std::shared_ptr<Capture>& capture);
    bool capture_forbids_unsafe_calls(const Capture& capture);
    /// Adds a node when `stream` captures; false when it does not and the work is to be done now.
    bool add_to_capture(Stream& stream, GraphNode node);

    void activate(Context& context);
    void destroy(Context& context);
    void unload(Library& library);
    Function* function_of(Kernel& kernel, Context& context);
    void remember(Record record);
    /// Takes a queued failure of this function, if it is due.
    std::optional<CUresult> queued_failure(std::string_view function);
    void restart();

    static std::atomic<bool> exiting;

private:
    Driver();
};

/// `cuMemAlloc` for `cuMemAlloc_v2`.
std::string_view base_name(std::string_view function);
/// Driver version that brought a function, where that matters; 0 otherwise.
int introduced_in(std::string_view function);
/// Notes a call that came after the driver had shut down.
void log_late_call(const char* function);

enum class Needs { nothing, initialisation };

/// Runs the body of an exported function under the driver's lock, after the checks that all
/// functions share.
template <typename Body>
CUresult call(const char* function, Needs needs, Body&& body) noexcept {
    try {
        auto& driver = Driver::get();
        const std::lock_guard lock(driver.mutex);
        if (Driver::exiting.load()) {
            log_late_call(function);
            return CUDA_ERROR_DEINITIALIZED;
        }
        const auto name = base_name(function);
        if (const auto found = driver.calls.find(name); found != driver.calls.end())
            ++found->second;
        else
            driver.calls.emplace(name, 1);
        if (!driver.failures.empty())
            if (const auto code = driver.queued_failure(name))
                return *code;
        if (needs == Needs::initialisation && (driver.forked || !driver.initialised))
            return CUDA_ERROR_NOT_INITIALIZED;
        if (driver.settings.driver_version < 13000 &&
            introduced_in(name) > driver.settings.driver_version)
            return CUDA_ERROR_NOT_SUPPORTED;
        body(driver);
        return CUDA_SUCCESS;
    } catch (const Failure& failure) {
        return failure.code;
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (...) {
        return CUDA_ERROR_UNKNOWN;
    }
}

template <typename Body>
CUresult call(const char* function, Body&& body) noexcept {
    return call(function, Needs::initialisation, std::forward<Body>(body));
}

}  // namespace stand_in
