// Streams, events and waiting for them.
#include "runtime.hpp"

using namespace dj_stand_in;

namespace {

void check_timeout(int32_t milliseconds) {
    require(milliseconds >= -1, ACL_ERROR_RT_PARAM_INVALID, "The timeout is negative.");
}

/// Gives up the lock, waits, and fails with the first error that the work had.
void wait_for(const std::vector<std::shared_ptr<Stream>>& streams, int32_t milliseconds,
              std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    for (const auto& stream : streams)
        require(stream->wait(milliseconds), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                "The work did not end in time.");
    std::optional<StreamError> first;
    for (const auto& stream : streams) {
        auto error = stream->take_error();
        if (error && !first)
            first = std::move(error);
    }
    if (first)
        fail(first->code, first->message);
}

std::shared_ptr<Event> event_of(Runtime& runtime, aclrtEvent handle) {
    require(handle != nullptr, ACL_ERROR_INVALID_PARAM, "event is NULL.");
    auto event = runtime.events.find(handle);
    require(event != nullptr, ACL_ERROR_RT_INVALID_HANDLE, "The event does not exist.");
    return event;
}

aclError create_stream(const char* name, aclrtStream* out) {
    return call(name, [&](Runtime& runtime, auto&) {
        require(out != nullptr, ACL_ERROR_INVALID_PARAM, "stream is NULL.");
        *out = runtime.streams.add(runtime.current_device(), runtime.gate);
    });
}

aclError synchronize_stream(const char* name, aclrtStream handle, int32_t milliseconds) {
    return call(name, [&](Runtime& runtime, auto& lock) {
        check_timeout(milliseconds);
        wait_for({runtime.stream(handle)}, milliseconds, lock);
    });
}

aclError synchronize_device(const char* name, int32_t milliseconds) {
    return call(name, [&](Runtime& runtime, auto& lock) {
        check_timeout(milliseconds);
        wait_for(runtime.streams_of(runtime.current_device()), milliseconds, lock);
    });
}

}  // namespace

extern "C" {

aclError aclrtCreateStream(aclrtStream* stream) { return create_stream(__func__, stream); }

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t) {
    return create_stream(__func__, stream);
}

aclError aclrtDestroyStream(aclrtStream handle) {
    return call(__func__, [&](Runtime& runtime, auto& lock) {
        require(handle != nullptr, ACL_ERROR_INVALID_PARAM, "stream is NULL.");
        const auto stream = runtime.stream(handle);
        runtime.streams.remove(handle);
        lock.unlock();
        stream->finish();
    });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
    return synchronize_stream(__func__, stream, -1);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t milliseconds) {
    return synchronize_stream(__func__, stream, milliseconds);
}

aclError aclrtSynchronizeDevice() { return synchronize_device(__func__, -1); }

aclError aclrtSynchronizeDeviceWithTimeout(int32_t milliseconds) {
    return synchronize_device(__func__, milliseconds);
}

aclError aclrtCreateEvent(aclrtEvent* out) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(out != nullptr, ACL_ERROR_INVALID_PARAM, "event is NULL.");
        *out = runtime.events.add(runtime.current_device());
    });
}

aclError aclrtDestroyEvent(aclrtEvent handle) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        event_of(runtime, handle);
        runtime.events.remove(handle);
    });
}

aclError aclrtRecordEvent(aclrtEvent handle, aclrtStream stream) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        auto event = event_of(runtime, handle);
        const auto recording = event->record();
        runtime.stream(stream)->push([event, recording] {
            event->reach(recording);
            return std::optional<StreamError>();
        });
    });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent handle) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        auto event = event_of(runtime, handle);
        const auto recording = event->last_recording();
        runtime.stream(stream)->push([event, recording] {
            event->wait(recording);
            return std::optional<StreamError>();
        });
    });
}

aclError aclrtSynchronizeEvent(aclrtEvent handle) {
    return call(__func__, [&](Runtime& runtime, auto& lock) {
        const auto event = event_of(runtime, handle);
        lock.unlock();
        event->wait(event->last_recording());
    });
}

aclError aclrtQueryEventStatus(aclrtEvent handle, aclrtEventRecordedStatus* status) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(status != nullptr, ACL_ERROR_INVALID_PARAM, "status is NULL.");
        const auto event = event_of(runtime, handle);
        *status = event->reached(event->last_recording()) ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                                                          : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    });
}

}  // extern "C"
