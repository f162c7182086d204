// The functions of stand_in_cuda.h.
#include "stand_in_cuda.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "driver.hpp"

using stand_in::Driver;

#define STAND_IN_TEST_API extern "C" __attribute__((visibility("default")))

namespace {

template <typename Body>
auto locked(Body&& body) {
    auto& driver = Driver::get();
    const std::lock_guard lock(driver.mutex);
    return body(driver);
}

}  // namespace

STAND_IN_TEST_API size_t dj_stand_in_cuda_launch_count(void) {
    return locked([](Driver& driver) { return driver.launches; });
}

STAND_IN_TEST_API int dj_stand_in_cuda_launch(size_t launch, dj_stand_in_cuda_launch_t* out) {
    return locked([&](Driver& driver) {
        if (launch >= driver.records.size() || out == nullptr)
            return -1;
        *out = driver.records[launch].launch;
        out->kernel = driver.records[launch].name.c_str();
        return 0;
    });
}

STAND_IN_TEST_API size_t dj_stand_in_cuda_argument(size_t launch, size_t argument, void* out,
                                                   size_t capacity) {
    return locked([&](Driver& driver) {
        if (launch >= driver.records.size() || argument >= driver.records[launch].arguments.size())
            return static_cast<size_t>(-1);
        const auto& bytes = driver.records[launch].arguments[argument];
        if (out != nullptr)
            std::memcpy(out, bytes.data(), std::min(capacity, bytes.size()));
        return bytes.size();
    });
}

STAND_IN_TEST_API void dj_stand_in_cuda_record(int enabled) {
    locked([&](Driver& driver) { driver.recording = enabled != 0; });
}

STAND_IN_TEST_API size_t dj_stand_in_cuda_library_loads(void) {
    return locked([](Driver& driver) { return driver.library_loads; });
}

STAND_IN_TEST_API size_t dj_stand_in_cuda_library_unloads(void) {
    return locked([](Driver& driver) { return driver.library_unloads; });
}

STAND_IN_TEST_API size_t dj_stand_in_cuda_live_libraries(void) {
    return locked([](Driver& driver) { return driver.libraries.size(); });
}

STAND_IN_TEST_API size_t dj_stand_in_cuda_live_allocations(void) {
    return locked([](Driver& driver) { return driver.memory.size(); });
}

STAND_IN_TEST_API size_t dj_stand_in_cuda_live_streams(void) {
    return locked([](Driver& driver) {
        std::size_t count = 0;
        driver.streams.any_of([&](const stand_in::Stream& stream) {
            count += &stream != stream.context->legacy_stream &&
                     &stream != stream.context->thread_stream;
            return false;
        });
        return count;
    });
}

STAND_IN_TEST_API size_t dj_stand_in_cuda_live_events(void) {
    return locked([](Driver& driver) { return driver.events.size(); });
}

STAND_IN_TEST_API size_t dj_stand_in_cuda_calls(const char* function) {
    return locked([&](Driver& driver) -> std::size_t {
        const std::string_view name = function != nullptr ? function : "";
        if (name.empty()) {
            std::size_t sum = 0;
            for (const auto& [key, count] : driver.calls) sum += count;
            return sum;
        }
        const auto found = driver.calls.find(stand_in::base_name(name));
        return found != driver.calls.end() ? found->second : 0;
    });
}

STAND_IN_TEST_API void dj_stand_in_cuda_fail(const char* function, int code, size_t skip) {
    locked([&](Driver& driver) {
        driver.failures[std::string(stand_in::base_name(function))].push_back(
            {static_cast<CUresult>(code), skip});
    });
}

STAND_IN_TEST_API void dj_stand_in_cuda_reset(void) {
    locked([](Driver& driver) {
        driver.records.clear();
        driver.calls.clear();
        driver.failures.clear();
        driver.launches = driver.library_loads = driver.library_unloads = 0;
    });
}

STAND_IN_TEST_API void dj_stand_in_cuda_restart(void) {
    locked([](Driver& driver) {
        driver.restart();
        driver.records.clear();
        driver.calls.clear();
        driver.failures.clear();
        driver.launches = driver.library_loads = driver.library_unloads = 0;
        driver.recording = true;
    });
}
