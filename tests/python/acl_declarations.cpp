// Compares the library's own declarations of ACL with the vendor's headers. Compiled and run by
// test_acl_declarations.py.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <type_traits>

// What is deprecated is compared as well.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <acl/acl_rt.h>

#include <deep_jit/backend/ascend/driver.hpp>

namespace {

namespace ours = deep_jit::ascend;
namespace acl = deep_jit::ascend::acl;

/// A type as a call passes it: pointers are addresses, enumerations their numbers.
template <typename T>
struct AbiOf {
    using type = T;
};
template <typename T>
    requires std::is_pointer_v<T>
struct AbiOf<T> {
    using type = void*;
};
template <typename T>
    requires std::is_enum_v<T>
struct AbiOf<T> {
    using type = std::underlying_type_t<T>;
};
template <typename Result, typename... Args>
struct AbiOf<Result(Args...)> {
    using type = typename AbiOf<Result>::type(typename AbiOf<Args>::type...);
};

template <typename Function>
struct SignatureOf;
template <typename Signature>
struct SignatureOf<const ours::driver::LazyFunction<Signature>> {
    using type = Signature;
};
template <typename Signature>
struct SignatureOf<ours::driver::LazyFunction<Signature>> {
    using type = Signature;
};

#define CHECK_FUNCTION(name)                                                                 \
    static_assert(                                                                           \
        std::is_same_v<AbiOf<decltype(::name)>::type,                                        \
                       AbiOf<SignatureOf<decltype(ours::driver::lazy_##name)>::type>::type>, \
        #name)

CHECK_FUNCTION(aclInit);
CHECK_FUNCTION(aclGetRecentErrMsg);
CHECK_FUNCTION(aclrtGetSocName);
CHECK_FUNCTION(aclrtGetDeviceCount);
CHECK_FUNCTION(aclrtGetDevice);
CHECK_FUNCTION(aclrtSetDevice);
CHECK_FUNCTION(aclrtGetDeviceInfo);
CHECK_FUNCTION(aclrtSynchronizeDevice);
CHECK_FUNCTION(aclrtBinaryLoadFromData);
CHECK_FUNCTION(aclrtBinaryUnLoad);
CHECK_FUNCTION(aclrtBinaryGetFunction);
CHECK_FUNCTION(aclrtLaunchKernelWithHostArgs);
CHECK_FUNCTION(aclFinalize);
CHECK_FUNCTION(aclrtResetDevice);
CHECK_FUNCTION(aclrtCreateStream);
CHECK_FUNCTION(aclrtDestroyStream);
CHECK_FUNCTION(aclrtSynchronizeStream);
CHECK_FUNCTION(aclrtSynchronizeStreamWithTimeout);
CHECK_FUNCTION(aclrtMalloc);
CHECK_FUNCTION(aclrtFree);
CHECK_FUNCTION(aclrtMallocHost);
CHECK_FUNCTION(aclrtFreeHost);
CHECK_FUNCTION(aclrtMemcpy);
CHECK_FUNCTION(aclrtMemcpyAsync);
CHECK_FUNCTION(aclrtMemset);

static_assert(std::is_same_v<ours::aclError, ::aclError>);
static_assert(std::is_same_v<ours::aclrtStream, ::aclrtStream>);
static_assert(std::is_same_v<ours::aclrtBinHandle, ::aclrtBinHandle>);
static_assert(std::is_same_v<ours::aclrtFuncHandle, ::aclrtFuncHandle>);

#define CHECK_SIZE(mine, theirs) \
    static_assert(sizeof(mine) == sizeof(theirs) && alignof(mine) == alignof(theirs), #theirs)
#define CHECK_MEMBER(mine, my_member, theirs, their_member)                      \
    static_assert(offsetof(mine, my_member) == offsetof(theirs, their_member) && \
                      sizeof(mine::my_member) == sizeof(theirs::their_member),   \
                  #theirs "::" #their_member)

CHECK_SIZE(acl::LaunchAttributeValue, aclrtLaunchKernelAttrValue);
CHECK_MEMBER(acl::LaunchAttributeValue, dynamic_ubuf_bytes, aclrtLaunchKernelAttrValue,
             dynUBufSize);
CHECK_MEMBER(acl::LaunchAttributeValue, timeout_seconds, aclrtLaunchKernelAttrValue, timeout);
CHECK_SIZE(acl::LaunchAttribute, aclrtLaunchKernelAttr);
CHECK_MEMBER(acl::LaunchAttribute, id, aclrtLaunchKernelAttr, id);
CHECK_MEMBER(acl::LaunchAttribute, value, aclrtLaunchKernelAttr, value);
CHECK_SIZE(acl::LaunchConfig, aclrtLaunchKernelCfg);
CHECK_MEMBER(acl::LaunchConfig, attributes, aclrtLaunchKernelCfg, attrs);
CHECK_MEMBER(acl::LaunchConfig, count, aclrtLaunchKernelCfg, numAttrs);

#define CHECK_VALUE(mine, theirs) \
    static_assert(static_cast<long>(mine) == static_cast<long>(theirs), #theirs)

CHECK_VALUE(acl::DeviceAttribute::kAiCores, ACL_DEV_ATTR_AICORE_CORE_NUM);
CHECK_VALUE(acl::DeviceAttribute::kCubeCores, ACL_DEV_ATTR_CUBE_CORE_NUM);
CHECK_VALUE(acl::DeviceAttribute::kVectorCores, ACL_DEV_ATTR_VECTOR_CORE_NUM);
CHECK_VALUE(acl::DeviceAttribute::kUbufPerVectorCore, ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE);
CHECK_VALUE(acl::DeviceAttribute::kL2Bytes, ACL_DEV_ATTR_L2_CACHE_SIZE);
CHECK_VALUE(acl::DeviceAttribute::kNpuArch, ACL_DEV_ATTR_NPU_ARCH);
CHECK_VALUE(acl::LaunchAttributeId::kDynamicUbufBytes, ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE);
CHECK_VALUE(acl::LaunchAttributeId::kTimeoutSeconds, ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT);
CHECK_VALUE(acl::MemcpyKind::kHostToHost, ACL_MEMCPY_HOST_TO_HOST);
CHECK_VALUE(acl::MemcpyKind::kHostToDevice, ACL_MEMCPY_HOST_TO_DEVICE);
CHECK_VALUE(acl::MemcpyKind::kDeviceToHost, ACL_MEMCPY_DEVICE_TO_HOST);
CHECK_VALUE(acl::MemcpyKind::kDeviceToDevice, ACL_MEMCPY_DEVICE_TO_DEVICE);
CHECK_VALUE(acl::MallocPolicy::kHugeFirst, ACL_MEM_MALLOC_HUGE_FIRST);
CHECK_VALUE(acl::MallocPolicy::kHugeOnly, ACL_MEM_MALLOC_HUGE_ONLY);
CHECK_VALUE(acl::MallocPolicy::kNormalOnly, ACL_MEM_MALLOC_NORMAL_ONLY);
CHECK_VALUE(acl::kSuccess, ACL_SUCCESS);
CHECK_VALUE(acl::kInvalidParameter, ACL_ERROR_INVALID_PARAM);
CHECK_VALUE(acl::kRepeatInitialize, ACL_ERROR_REPEAT_INITIALIZE);
CHECK_VALUE(acl::kNoDeviceSet, ACL_ERROR_RT_CONTEXT_NULL);
CHECK_VALUE(acl::kNoSuchKernel, ACL_ERROR_RT_INTERNAL_ERROR);

int failures = 0;

void check_name(int code, const char* name) {
    if (acl::error_name(code) == name)
        return;
    std::printf("%s is %d, which is called %s here\n", name, code, acl::error_name(code).c_str());
    ++failures;
}

}  // namespace

int main() {
#define CHECK_NAME(name) check_name(name, #name)
#include "error_names.inc"
    return failures;
}
