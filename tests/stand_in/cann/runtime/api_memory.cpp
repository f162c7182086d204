// Memory of the device and of the host.
#include <cstdlib>
#include <cstring>

#include "runtime.hpp"

using namespace dj_stand_in;

namespace {

/// A copy between the right kinds of memory, inside their borders.
void check_copy(Runtime& runtime, void* dst, size_t room, const void* src, size_t count,
                aclrtMemcpyKind kind) {
    require(dst != nullptr && src != nullptr, ACL_ERROR_INVALID_PARAM, "A pointer is NULL.");
    require(kind >= ACL_MEMCPY_HOST_TO_HOST && kind <= ACL_MEMCPY_DEFAULT,
            ACL_ERROR_RT_PARAM_INVALID, "The kind of copy is unknown.");
    require(count > 0 && count <= room, ACL_ERROR_RT_PARAM_INVALID,
            "count is 0 or larger than destMax.");
    const auto check = [&](const void* start, bool device) {
        if (kind == ACL_MEMCPY_DEFAULT)
            device = runtime.memory.touches(start);
        require(runtime.memory.touches(start) == device, ACL_ERROR_RT_PARAM_INVALID,
                "A pointer does not fit the kind of copy.");
        require(!device || runtime.memory.contains(start, count), ACL_ERROR_RT_PARAM_INVALID,
                "The copy leaves the memory that was allocated.");
    };
    check(dst, kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE);
    check(src, kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE);
}

void check_set(Runtime& runtime, void* start, size_t room, size_t count) {
    require(start != nullptr, ACL_ERROR_INVALID_PARAM, "devPtr is NULL.");
    require(count > 0 && count <= room && runtime.memory.contains(start, count),
            ACL_ERROR_RT_PARAM_INVALID, "count does not fit the memory.");
}

}  // namespace

extern "C" {

aclError aclrtMalloc(void** out, size_t size, aclrtMemMallocPolicy) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(out != nullptr && size > 0, ACL_ERROR_INVALID_PARAM,
                "devPtr is NULL or size is 0.");
        runtime.current_device();
        *out = runtime.memory.allocate(size);
        require(*out != nullptr, ACL_ERROR_RT_MEMORY_ALLOCATION, "There is no memory.");
    });
}

aclError aclrtFree(void* start) {
    return call(__func__, [&](Runtime& runtime, auto& lock) {
        require(start != nullptr, ACL_ERROR_INVALID_PARAM, "devPtr is NULL.");
        // As a device does: what runs now may still use it.
        const auto streams = runtime.streams_of(runtime.current_device());
        lock.unlock();
        for (const auto& stream : streams) stream->wait(-1);
        require(runtime.memory.free(start), ACL_ERROR_RT_PARAM_INVALID,
                "devPtr is not from aclrtMalloc.");
    });
}

aclError aclrtMallocHost(void** out, size_t size) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(out != nullptr && size > 0, ACL_ERROR_INVALID_PARAM,
                "hostPtr is NULL or size is 0.");
        runtime.current_device();
        *out = std::malloc(size);
        require(*out != nullptr, ACL_ERROR_RT_MEMORY_ALLOCATION, "There is no memory.");
        runtime.host_memory[*out] = size;
    });
}

aclError aclrtFreeHost(void* start) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(start != nullptr, ACL_ERROR_INVALID_PARAM, "hostPtr is NULL.");
        require(runtime.host_memory.erase(start) == 1, ACL_ERROR_RT_PARAM_INVALID,
                "hostPtr is not from aclrtMallocHost.");
        std::free(start);
    });
}

aclError aclrtMemcpy(void* dst, size_t room, const void* src, size_t count, aclrtMemcpyKind kind) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        runtime.current_device();
        check_copy(runtime, dst, room, src, count, kind);
        // It waits for no stream: who copies before the kernel has run gets old bytes.
        std::memcpy(dst, src, count);
    });
}

aclError aclrtMemcpyAsync(void* dst, size_t room, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        const auto on = runtime.stream(stream);
        check_copy(runtime, dst, room, src, count, kind);
        on->push([dst, src, count] {
            std::memcpy(dst, src, count);
            return std::optional<StreamError>();
        });
    });
}

aclError aclrtMemset(void* start, size_t room, int32_t value, size_t count) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        runtime.current_device();
        check_set(runtime, start, room, count);
        std::memset(start, value, count);
    });
}

aclError aclrtMemsetAsync(void* start, size_t room, int32_t value, size_t count,
                          aclrtStream stream) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        const auto on = runtime.stream(stream);
        check_set(runtime, start, room, count);
        on->push([start, value, count] {
            std::memset(start, value, count);
            return std::optional<StreamError>();
        });
    });
}

}  // extern "C"
