// cuInit, versions and device queries.
#include <cstdlib>
#include <cstring>

#include "driver.hpp"

using namespace stand_in;

CUresult CUDAAPI cuInit(unsigned int flags) {
    return call(__func__, Needs::nothing, [&](Driver& driver) {
        require(flags == 0);
        require(!driver.forked, CUDA_ERROR_NOT_INITIALIZED);
        require(!driver.settings.devices.empty(), CUDA_ERROR_NO_DEVICE);
        if (driver.initialised)
            return;
        for (const auto& device : driver.settings.devices) {
            Context context;
            context.device = &device;
            driver.primary_contexts.push_back(context);
        }
        driver.initialised = true;
        static const int registered = std::atexit([] { Driver::exiting = true; });
        (void)registered;
    });
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
    return call(__func__, Needs::nothing, [&](Driver& driver) {
        require(version != nullptr);
        *version = driver.settings.driver_version;
    });
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
    return call(__func__, [&](Driver& driver) {
        require(device != nullptr);
        *device = driver.device(ordinal).ordinal;
    });
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
    return call(__func__, [&](Driver& driver) {
        require(count != nullptr);
        *count = static_cast<int>(driver.settings.devices.size());
    });
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
    return call(__func__, [&](Driver& driver) {
        require(name != nullptr && length > 0);
        const auto text = driver.device(device).name();
        const auto count = std::min(text.size(), static_cast<std::size_t>(length) - 1);
        std::memcpy(name, text.data(), count);
        name[count] = '\0';
    });
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    return call(__func__, [&](Driver& driver) {
        require(value != nullptr);
        const auto found = driver.device(device).attribute(attribute);
        require(found.has_value());
        *value = *found;
    });
}

CUresult CUDAAPI cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
    return call(__func__, [&](Driver& driver) {
        require(bytes != nullptr);
        *bytes = driver.device(device).memory_bytes;
    });
}

namespace {

CUresult device_uuid(const char* name, CUuuid* uuid, CUdevice device) {
    return call(name, [&](Driver& driver) {
        require(uuid != nullptr);
        const auto& found = driver.device(device);
        std::memcpy(uuid->bytes, "stand-in device", 15);
        uuid->bytes[15] = static_cast<char>(found.ordinal);
    });
}

}  // namespace

STAND_IN_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    return device_uuid(__func__, uuid, device);
}

#undef cuDeviceGetUuid
STAND_IN_EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    return device_uuid(__func__, uuid, device);
}
