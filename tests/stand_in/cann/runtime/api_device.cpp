// Process, device and messages.
#include "runtime.hpp"

using namespace dj_stand_in;

extern "C" {

aclError aclInit(const char*) {
    return call(__func__, Needs::nothing, [](Runtime& runtime, auto&) {
        require(!runtime.initialised, ACL_ERROR_REPEAT_INITIALIZE, "aclInit was called before.");
        runtime.initialised = true;
        runtime.finalised = false;
    });
}

aclError aclFinalize() {
    return call(__func__, Needs::nothing, [](Runtime& runtime, auto&) {
        require(!runtime.finalised, ACL_ERROR_REPEAT_FINALIZE, "aclFinalize was called before.");
        require(runtime.initialised, ACL_ERROR_UNINITIALIZE, "aclInit has not been called.");
        runtime.initialised = false;
        runtime.finalised = true;
    });
}

const char* aclGetRecentErrMsg() {
    auto& runtime = Runtime::get();
    const std::lock_guard lock(runtime.mutex);
    ++runtime.calls[__func__];
    auto& thread = runtime.thread();
    if (!thread.has_message)
        return nullptr;
    thread.has_message = false;
    thread.answered = thread.message;
    return thread.answered.c_str();
}

const char* aclrtGetSocName() {
    auto& runtime = Runtime::get();
    const std::lock_guard lock(runtime.mutex);
    try {
        return runtime.note_call(__func__) == 0 ? runtime.settings.soc.name : nullptr;
    } catch (const Failure&) {
        return nullptr;
    }
}

aclError aclrtSetDevice(int32_t device) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        runtime.check_device(device);
        runtime.thread().device = device;
    });
}

aclError aclrtResetDevice(int32_t device) {
    return call(__func__, [&](Runtime& runtime, auto& lock) {
        runtime.check_device(device);
        if (runtime.thread().device == device)
            runtime.thread().device = -1;
        const auto streams = runtime.streams_of(device);
        lock.unlock();
        for (const auto& stream : streams) stream->wait(-1);
    });
}

aclError aclrtGetDevice(int32_t* device) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(device != nullptr, ACL_ERROR_INVALID_PARAM, "deviceId is NULL.");
        *device = runtime.current_device();
    });
}

aclError aclrtGetDeviceCount(uint32_t* count) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(count != nullptr, ACL_ERROR_INVALID_PARAM, "count is NULL.");
        *count = static_cast<uint32_t>(runtime.settings.devices);
    });
}

aclError aclrtGetDeviceInfo(uint32_t device, aclrtDevAttr attribute, int64_t* value) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(value != nullptr, ACL_ERROR_INVALID_PARAM, "value is NULL.");
        require(device < static_cast<unsigned>(runtime.settings.devices),
                ACL_ERROR_RT_PARAM_INVALID, "There is no device of that number.");
        const auto& soc = runtime.settings.soc;
        const int id = attribute;
        require(runtime.settings.no_attributes.count(id) == 0, ACL_ERROR_RT_PARAM_INVALID,
                "The attribute is unknown.");
        switch (id) {
            case ACL_DEV_ATTR_AICPU_CORE_NUM: *value = 6; break;
            case ACL_DEV_ATTR_AICORE_CORE_NUM:
            case ACL_DEV_ATTR_CUBE_CORE_NUM: *value = soc.cube_cores; break;
            case ACL_DEV_ATTR_VECTOR_CORE_NUM: *value = soc.vector_cores; break;
            case ACL_DEV_ATTR_WARP_SIZE: *value = soc.is_950() ? 32 : 0; break;
            case ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE: *value = soc.is_950() ? 2048 : 0; break;
            // What SIMT may use: without its cache and the compiler's stack.
            case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE: *value = soc.is_950() ? 221184 : 0; break;
            case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE: *value = int64_t{64} << 30; break;
            case ACL_DEV_ATTR_L2_CACHE_SIZE: *value = soc.l2_bytes; break;
            case ACL_DEV_ATTR_NPU_ARCH: *value = soc.arch; break;
            default: fail(ACL_ERROR_RT_PARAM_INVALID, "The attribute is unknown.");
        }
    });
}

}  // extern "C"
