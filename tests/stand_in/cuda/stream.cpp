// Streams and events. All work is done at the time of the call, so waiting is only checking.
#include <algorithm>

#include "driver.hpp"

using namespace stand_in;

namespace {

Event& event_of(Driver& driver, CUevent handle) {
    auto* event = driver.events.find(handle);
    require(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return *event;
}

CUresult elapsed(const char* name, float* milliseconds, CUevent first, CUevent last) {
    return call(name, [&](Driver& driver) {
        require(milliseconds != nullptr);
        const auto& from = event_of(driver, first);
        const auto& to = event_of(driver, last);
        require(from.recorded && to.recorded, CUDA_ERROR_INVALID_HANDLE);
        require(((from.flags | to.flags) & CU_EVENT_DISABLE_TIMING) == 0,
                CUDA_ERROR_INVALID_HANDLE);
        require(from.capture == nullptr && to.capture == nullptr, CUDA_ERROR_CAPTURED_EVENT);
        *milliseconds = std::chrono::duration<float, std::milli>(to.time - from.time).count();
    });
}

/// Nothing can be waited for in a capture, least of all the stream itself: the capture is spoilt.
void refuse_waiting(Driver& driver, const Stream& stream) {
    if (stream.capture != nullptr) {
        driver.invalidate(std::shared_ptr<Capture>(stream.capture));
        fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    driver.check_implicit_dependency(stream);
    driver.refuse_during_capture();
}

}  // namespace

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr && (flags & ~1u) == 0);
        auto& context = driver.current_context();
        auto* stream = driver.streams.add();
        stream->context = &context;
        stream->flags = flags;
        stream->priority = std::clamp(priority, -5, 0);
        *out = reinterpret_cast<CUstream>(stream);
    });
}

CUresult CUDAAPI cuStreamCreate(CUstream* out, unsigned int flags) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr && (flags & ~1u) == 0);
        auto& context = driver.current_context();
        auto* stream = driver.streams.add();
        stream->context = &context;
        stream->flags = flags;
        *out = reinterpret_cast<CUstream>(stream);
    });
}

CUresult CUDAAPI cuStreamDestroy(CUstream handle) {
    return call(__func__, [&](Driver& driver) {
        auto* stream = driver.streams.find(handle);
        require(stream != nullptr && stream != stream->context->legacy_stream &&
                    stream != stream->context->thread_stream,
                CUDA_ERROR_INVALID_HANDLE);
        if (stream->capture != nullptr)
            driver.invalidate(std::shared_ptr<Capture>(stream->capture));
        driver.streams.remove(stream);
    });
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
    return call(__func__, [&](Driver& driver) { refuse_waiting(driver, driver.stream(handle)); });
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
    return call(__func__, [&](Driver& driver) { refuse_waiting(driver, driver.stream(handle)); });
}

CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned int* flags) {
    return call(__func__, [&](Driver& driver) {
        require(flags != nullptr);
        *flags = driver.stream(handle).flags;
    });
}

CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int* priority) {
    return call(__func__, [&](Driver& driver) {
        require(priority != nullptr);
        *priority = driver.stream(handle).priority;
    });
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* context) {
    return call(__func__, [&](Driver& driver) {
        require(context != nullptr);
        *context = reinterpret_cast<CUcontext>(driver.stream(handle).context);
    });
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
    return call(__func__, [&](Driver& driver) {
        require((flags & ~1u) == 0);
        auto& stream = driver.stream(handle);
        const auto& event = event_of(driver, event_handle);
        const auto& capture = event.capture;
        if (capture == nullptr || capture->invalidated) {
            if (stream.capture != nullptr && event.recorded) {
                driver.invalidate(std::shared_ptr<Capture>(stream.capture));
                fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
            }
            return;
        }
        require(stream.capture == nullptr || stream.capture == capture,
                CUDA_ERROR_STREAM_CAPTURE_MERGE);
        require(!stream.legacy, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        if (stream.capture == nullptr) {  // a fork: this stream joins the capture
            stream.capture = capture;
            stream.operations = stream.joined = 0;
            capture->streams.push_back(&stream);
        } else if (event.stream != &stream) {  // a join
            event.stream->joined = std::max(event.stream->joined, event.operations);
        }
        ++stream.operations;
    });
}

CUresult CUDAAPI cuEventCreate(CUevent* out, unsigned int flags) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr && (flags & ~7u) == 0);
        auto& context = driver.current_context();
        auto* event = driver.events.add();
        event->context = &context;
        event->flags = flags;
        *out = reinterpret_cast<CUevent>(event);
    });
}

CUresult CUDAAPI cuEventDestroy(CUevent handle) {
    return call(__func__, [&](Driver& driver) { driver.events.remove(&event_of(driver, handle)); });
}

CUresult CUDAAPI cuEventRecord(CUevent handle, CUstream stream_handle) {
    return call(__func__, [&](Driver& driver) {
        auto& event = event_of(driver, handle);
        auto& stream = driver.stream(stream_handle);
        require(event.context == stream.context, CUDA_ERROR_INVALID_HANDLE);
        driver.check_implicit_dependency(stream);
        require(stream.capture == nullptr || !stream.capture->invalidated,
                CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        event.recorded = true;
        event.time = std::chrono::steady_clock::now();
        event.capture = stream.capture;
        event.stream = &stream;
        event.operations = stream.operations;
    });
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
    return call(__func__, [&](Driver& driver) {
        const auto& event = event_of(driver, handle);
        require(event.capture == nullptr, CUDA_ERROR_CAPTURED_EVENT);
        driver.refuse_during_capture();
    });
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
    return call(__func__, [&](Driver& driver) {
        const auto& event = event_of(driver, handle);
        require(event.capture == nullptr, CUDA_ERROR_CAPTURED_EVENT);
        driver.refuse_during_capture();
    });
}

STAND_IN_EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent first, CUevent last) {
    return elapsed(__func__, milliseconds, first, last);
}

#undef cuEventElapsedTime
STAND_IN_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent first, CUevent last) {
    return elapsed(__func__, milliseconds, first, last);
}
