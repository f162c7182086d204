// What this library uses of ACL, declared by ourselves: no header of CANN is needed, and those of
// torch_npu, some of which are incomplete, do no harm. tests/python/test_acl_declarations.py
// compares this with the vendor's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <deep_jit/utils/str.hpp>

namespace deep_jit::ascend {

// The same types as in ACL's headers, so that both can be used side by side.
using aclError = int;
using aclrtStream = void*;
using aclrtBinHandle = void*;
using aclrtFuncHandle = void*;

}  // namespace deep_jit::ascend

namespace deep_jit::ascend::acl {

// Names differ from ACL's: some of those are macros.
inline constexpr aclError kSuccess = 0;
inline constexpr aclError kInvalidParameter = 100000;
inline constexpr aclError kRepeatInitialize = 100002;
inline constexpr aclError kNoDeviceSet = 107002;  ///< this thread has no device, thus no context
inline constexpr aclError kSymbolNotFound = 107042;
inline constexpr aclError kNoSuchKernel = 507000;

/// aclrtDevAttr.
enum class DeviceAttribute : std::uint32_t {
    kAiCores = 101,
    kCubeCores = 102,
    kVectorCores = 201,
    kUbufPerVectorCore = 204,  ///< bytes; 0 but on Ascend 950
    kL2Bytes = 302,
    kNpuArch = 601,  ///< from CANN 9.1 on
};

/// aclrtLaunchKernelAttrId.
enum class LaunchAttributeId : std::uint32_t {
    kDynamicUbufBytes = 2,  ///< called LOCAL_MEMORY_SIZE up to CANN 9.0
    kTimeoutSeconds = 7,
};

/// aclrtLaunchKernelAttrValue.
union LaunchAttributeValue {
    std::uint32_t dynamic_ubuf_bytes;
    std::uint16_t timeout_seconds;
    std::uint32_t reserved[4];
};

/// aclrtLaunchKernelAttr.
struct LaunchAttribute {
    LaunchAttributeId id;
    LaunchAttributeValue value;
};

/// aclrtLaunchKernelCfg.
struct LaunchConfig {
    LaunchAttribute* attributes;
    std::size_t count;
};

/// aclrtMemcpyKind.
enum class MemcpyKind : std::uint32_t {
    kHostToHost = 0,
    kHostToDevice = 1,
    kDeviceToHost = 2,
    kDeviceToDevice = 3,
};

/// aclrtMemMallocPolicy.
enum class MallocPolicy : std::uint32_t { kHugeFirst = 0, kHugeOnly = 1, kNormalOnly = 2 };

/// aclrtBinaryLoadOptions and aclrtPlaceHolderInfo: only null pointers to them are passed.
struct BinaryLoadOptions;
struct PlaceHolderInfo;

/// Name of an error code, as ACL's headers have it.
inline std::string error_name(aclError code) {
    struct Entry {
        aclError code;
        const char* name;
    };
    static constexpr Entry kNames[] = {
        {0, "ACL_SUCCESS"},
        {100000, "ACL_ERROR_INVALID_PARAM"},
        {100001, "ACL_ERROR_UNINITIALIZE"},
        {100002, "ACL_ERROR_REPEAT_INITIALIZE"},
        {100003, "ACL_ERROR_INVALID_FILE"},
        {100006, "ACL_ERROR_PARSE_FILE"},
        {100024, "ACL_ERROR_OP_NOT_FOUND"},
        {100025, "ACL_ERROR_OP_LOAD_FAILED"},
        {100029, "ACL_ERROR_KERNEL_NOT_FOUND"},
        {100031, "ACL_ERROR_KERNEL_ALREADY_REGISTERED"},
        {100037, "ACL_ERROR_REPEAT_FINALIZE"},
        {100039, "ACL_ERROR_COMPILING_STUB_MODE"},
        {107000, "ACL_ERROR_RT_PARAM_INVALID"},
        {107001, "ACL_ERROR_RT_INVALID_DEVICEID"},
        {107002, "ACL_ERROR_RT_CONTEXT_NULL"},
        {107003, "ACL_ERROR_RT_STREAM_CONTEXT"},
        {107008, "ACL_ERROR_RT_ADDR_UNALIGNED"},
        {107009, "ACL_ERROR_RT_FILE_OPEN"},
        {107016, "ACL_ERROR_RT_INVALID_MEMORY_TYPE"},
        {107017, "ACL_ERROR_RT_INVALID_HANDLE"},
        {107019, "ACL_ERROR_RT_WAIT_TIMEOUT"},
        {107020, "ACL_ERROR_RT_TASK_TIMEOUT"},
        {107027, "ACL_ERROR_RT_STREAM_CAPTURED"},
        {107042, "ACL_ERROR_RT_SYMBOL_NOT_FOUND"},
        {200000, "ACL_ERROR_BAD_ALLOC"},
        {200001, "ACL_ERROR_API_NOT_SUPPORT"},
        {200002, "ACL_ERROR_INVALID_DEVICE"},
        {200003, "ACL_ERROR_MEMORY_ADDRESS_UNALIGNED"},
        {200004, "ACL_ERROR_RESOURCE_NOT_MATCH"},
        {200005, "ACL_ERROR_INVALID_RESOURCE_HANDLE"},
        {200006, "ACL_ERROR_FEATURE_UNSUPPORTED"},
        {207000, "ACL_ERROR_RT_FEATURE_NOT_SUPPORT"},
        {207001, "ACL_ERROR_RT_MEMORY_ALLOCATION"},
        {207004, "ACL_ERROR_RT_NO_DEVICE"},
        {207018, "ACL_ERROR_RT_DEVICE_OOM"},
        {300000, "ACL_ERROR_STORAGE_OVER_LIMIT"},
        {500000, "ACL_ERROR_INTERNAL_ERROR"},
        {500001, "ACL_ERROR_FAILURE"},
        {500003, "ACL_ERROR_RT_FAILURE"},
        {500004, "ACL_ERROR_DRV_FAILURE"},
        {507000, "ACL_ERROR_RT_INTERNAL_ERROR"},
        {507014, "ACL_ERROR_RT_AICORE_TIMEOUT"},
        {507015, "ACL_ERROR_RT_AICORE_EXCEPTION"},
        {507016, "ACL_ERROR_RT_AICORE_TRAP_EXCEPTION"},
        {507027, "ACL_ERROR_RT_KERNEL_LOOKUP"},
        {507028, "ACL_ERROR_RT_KERNEL_DUPLICATE"},
        {507034, "ACL_ERROR_RT_VECTOR_CORE_TIMEOUT"},
        {507035, "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION"},
        {507046, "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT"},
    };
    for (const auto& entry : kNames)
        if (entry.code == code)
            return entry.name;
    return "unknown ACL error";
}

/// True for an error that a kernel caused while it ran, perhaps an earlier one.
constexpr bool is_kernel_failure(aclError code) {
    return code == 507014 || code == 507015 || code == 507016 || code == 507034 || code == 507035;
}

}  // namespace deep_jit::ascend::acl
