// The functions of stand_in_cann.h.
#include <algorithm>
#include <cstring>

#include "runtime.hpp"

using namespace dj_stand_in;

namespace {

template <typename Body>
auto with_runtime(Body&& body) {
    auto& runtime = Runtime::get();
    const std::lock_guard lock(runtime.mutex);
    return body(runtime);
}

}  // namespace

extern "C" {

int dj_stand_in_cann_version() {
    return with_runtime([](Runtime& runtime) { return runtime.settings.version; });
}

size_t dj_stand_in_cann_launch_count() {
    return with_runtime([](Runtime& runtime) { return runtime.records.size(); });
}

int dj_stand_in_cann_launch(size_t launch, dj_stand_in_cann_launch_t* out) {
    return with_runtime([&](Runtime& runtime) {
        if (launch >= runtime.records.size())
            return -1;
        *out = runtime.records[launch].launch;
        out->kernel = runtime.records[launch].name.c_str();
        return 0;
    });
}

size_t dj_stand_in_cann_arguments(size_t launch, void* out, size_t capacity) {
    return with_runtime([&](Runtime& runtime) {
        if (launch >= runtime.records.size())
            return static_cast<size_t>(-1);
        const auto& bytes = runtime.records[launch].arguments;
        if (out != nullptr)
            std::memcpy(out, bytes.data(), std::min(capacity, bytes.size()));
        return bytes.size();
    });
}

size_t dj_stand_in_cann_binary_loads() {
    return with_runtime([](Runtime& runtime) { return runtime.binary_loads; });
}

size_t dj_stand_in_cann_live_binaries() {
    return with_runtime([](Runtime& runtime) { return runtime.binaries.size(); });
}

size_t dj_stand_in_cann_live_streams() {
    return with_runtime([](Runtime& runtime) { return runtime.streams.size(); });
}

size_t dj_stand_in_cann_live_events() {
    return with_runtime([](Runtime& runtime) { return runtime.events.size(); });
}

size_t dj_stand_in_cann_live_allocations() {
    return with_runtime([](Runtime& runtime) { return runtime.memory.allocations(); });
}

size_t dj_stand_in_cann_calls(const char* function) {
    return with_runtime([&](Runtime& runtime) {
        size_t out = 0;
        for (const auto& [name, count] : runtime.calls)
            if (*function == '\0' || name == function)
                out += count;
        return out;
    });
}

void dj_stand_in_cann_fail(const char* function, int code, size_t skip) {
    with_runtime([&](Runtime& runtime) { runtime.failures[function].push_back({code, skip}); });
}

void dj_stand_in_cann_hold() { Runtime::get().gate.hold(true); }

void dj_stand_in_cann_release() { Runtime::get().gate.hold(false); }

void dj_stand_in_cann_reset() {
    with_runtime([](Runtime& runtime) {
        runtime.records.clear();
        runtime.binary_loads = 0;
        runtime.calls.clear();
        runtime.failures.clear();
    });
    Runtime::get().gate.hold(false);
}

void dj_stand_in_cann_restart() { Runtime::get().restart(); }

}  // extern "C"
