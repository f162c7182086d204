// cuGetProcAddress: which version of a function a client compiled for some CUDA version gets.
#include <dlfcn.h>

#include <string>

#include "driver.hpp"

using namespace stand_in;

namespace {

/// The symbol behind a base name, from a CUDA version on.
struct Version {
    std::string_view name;
    int since;
    const char* symbol;
};

/// Functions of which the version matters; all others are found under their own name.
constexpr Version versions[] = {
    {"cuCtxCreate", 3020, "cuCtxCreate_v2"},
    {"cuCtxCreate", 12050, "cuCtxCreate_v4"},
    {"cuCtxDestroy", 4000, "cuCtxDestroy_v2"},
    {"cuCtxPopCurrent", 4000, "cuCtxPopCurrent_v2"},
    {"cuCtxPushCurrent", 4000, "cuCtxPushCurrent_v2"},
    {"cuDeviceGetUuid", 9020, "cuDeviceGetUuid"},
    {"cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2"},
    {"cuDevicePrimaryCtxRelease", 11000, "cuDevicePrimaryCtxRelease_v2"},
    {"cuDevicePrimaryCtxReset", 11000, "cuDevicePrimaryCtxReset_v2"},
    {"cuDevicePrimaryCtxSetFlags", 11000, "cuDevicePrimaryCtxSetFlags_v2"},
    {"cuDeviceTotalMem", 3020, "cuDeviceTotalMem_v2"},
    {"cuEventDestroy", 4000, "cuEventDestroy_v2"},
    {"cuEventElapsedTime", 2000, "cuEventElapsedTime"},
    {"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"},
    {"cuGraphInstantiateWithFlags", 11040, "cuGraphInstantiateWithFlags"},
    {"cuGraphInstantiateWithParams", 12000, "cuGraphInstantiateWithParams"},
    {"cuKernelGetAttribute", 12000, "cuKernelGetAttribute"},
    {"cuKernelGetFunction", 12000, "cuKernelGetFunction"},
    {"cuKernelSetAttribute", 12000, "cuKernelSetAttribute"},
    {"cuLaunchKernelEx", 11060, "cuLaunchKernelEx"},
    {"cuLibraryGetKernel", 12000, "cuLibraryGetKernel"},
    {"cuLibraryGetModule", 12000, "cuLibraryGetModule"},
    {"cuLibraryLoadData", 12000, "cuLibraryLoadData"},
    {"cuLibraryUnload", 12000, "cuLibraryUnload"},
    {"cuMemAlloc", 3020, "cuMemAlloc_v2"},
    {"cuMemAllocHost", 3020, "cuMemAllocHost_v2"},
    {"cuMemFree", 3020, "cuMemFree_v2"},
    {"cuMemGetInfo", 3020, "cuMemGetInfo_v2"},
    {"cuMemcpyDtoD", 3020, "cuMemcpyDtoD_v2"},
    {"cuMemcpyDtoDAsync", 3020, "cuMemcpyDtoDAsync_v2"},
    {"cuMemcpyDtoH", 3020, "cuMemcpyDtoH_v2"},
    {"cuMemcpyDtoHAsync", 3020, "cuMemcpyDtoHAsync_v2"},
    {"cuMemcpyHtoD", 3020, "cuMemcpyHtoD_v2"},
    {"cuMemcpyHtoDAsync", 3020, "cuMemcpyHtoDAsync_v2"},
    {"cuMemsetD16", 3020, "cuMemsetD16_v2"},
    {"cuMemsetD32", 3020, "cuMemsetD32_v2"},
    {"cuMemsetD8", 3020, "cuMemsetD8_v2"},
    {"cuOccupancyMaxActiveClusters", 11070, "cuOccupancyMaxActiveClusters"},
    {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2"},
    {"cuStreamDestroy", 4000, "cuStreamDestroy_v2"},
    {"cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"},
    {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
};

void* exported(const char* symbol) {
    static void* const self = [] {
        Dl_info info{};
        return ::dladdr(reinterpret_cast<void*>(&introduced_in), &info) != 0
                   ? ::dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)
                   : nullptr;
    }();
    return self != nullptr ? ::dlsym(self, symbol) : nullptr;
}

}  // namespace

CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** out, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* status) {
    return call(__func__, Needs::nothing, [&](Driver& driver) {
        require(symbol != nullptr && out != nullptr && version > 0);
        require(flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
        require(version <= driver.settings.driver_version);
        *out = nullptr;
        auto result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        const std::string_view name = symbol;
        bool listed = false;
        for (const auto& entry : versions) {
            if (entry.name != name)
                continue;
            listed = true;
            if (entry.since > version) {
                if (*out == nullptr)
                    result = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
                continue;
            }
            if (void* found = exported(entry.symbol); found != nullptr) {
                *out = found;
                result = CU_GET_PROC_ADDRESS_SUCCESS;
            }
        }
        if (!listed && name.starts_with("cu") && base_name(name) == name) {
            if (introduced_in(name) > version)
                result = introduced_in(name) > driver.settings.driver_version
                             ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                             : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
            else if ((*out = exported(symbol)) != nullptr)
                result = CU_GET_PROC_ADDRESS_SUCCESS;
        }
        if (status != nullptr)
            *status = result;
    });
}
