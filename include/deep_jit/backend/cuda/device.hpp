// Questions to the device that a runtime compiles for.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <deep_jit/backend/cuda/driver.hpp>
#include <deep_jit/utils/lazy.hpp>

namespace deep_jit::cuda {

/// Properties of a device, under the names that cudaDeviceProp has for them.
struct DeviceProp {
    char name[256] = {};
    std::size_t totalGlobalMem = 0;              ///< bytes
    std::size_t sharedMemPerBlock = 0;           ///< bytes, without opting in
    std::size_t sharedMemPerBlockOptin = 0;      ///< bytes
    std::size_t sharedMemPerMultiprocessor = 0;  ///< bytes
    std::size_t reservedSharedMemPerBlock = 0;   ///< bytes
    int regsPerBlock = 0;
    int regsPerMultiprocessor = 0;
    int warpSize = 0;
    int maxThreadsPerBlock = 0;
    int maxThreadsPerMultiProcessor = 0;
    int maxBlocksPerMultiProcessor = 0;
    int maxThreadsDim[3] = {};
    int maxGridSize[3] = {};
    int clockRate = 0;        ///< kHz
    int memoryClockRate = 0;  ///< kHz
    int memoryBusWidth = 0;   ///< bits
    int l2CacheSize = 0;      ///< bytes
    int major = 0;
    int minor = 0;
    int multiProcessorCount = 0;
    int cooperativeLaunch = 0;
    int clusterLaunch = 0;
    int concurrentKernels = 0;
    int integrated = 0;
    int pciDomainID = 0;
    int pciBusID = 0;
    int pciDeviceID = 0;
};

/// Architecture name as `--gpu-architecture=sm_...` takes it: "89" and lower plain, "90a", from
/// 10.0 on "100f" (family-specific) or, without `use_arch_family`, "100a". `number_only`: digits.
inline std::string arch_name(int major, int minor, bool use_arch_family = true,
                             bool number_only = false) {
    std::string out = str::to_text(major * 10 + minor);
    if (number_only || major < 9)
        return out;
    return out + (major > 9 && use_arch_family ? "f" : "a");
}

/// The device that is current when it is first asked something: the one of the thread's current
/// context, else device 0. All its answers are of that moment and that device. Queries throw
/// ToolchainError when there is no driver or no device. Thread-safe.
class Device {
public:
    const DeviceProp& get_prop() const { return snapshot_->prop; }
    /// Ordinal of the device.
    int get_index() const { return snapshot_->index; }

    int get_num_sms() const { return get_prop().multiProcessorCount; }
    int get_num_l2_cache_bytes() const { return get_prop().l2CacheSize; }
    /// Most dynamic shared memory a block can opt in to, in bytes.
    int get_num_smem_bytes() const { return static_cast<int>(get_prop().sharedMemPerBlockOptin); }
    /// Hz.
    std::int64_t get_clock_rate() const { return std::int64_t(get_prop().clockRate) * 1000; }

    std::string get_arch(bool use_arch_family = true, bool number_only = false) const {
        return arch_name(get_arch_major(), get_arch_minor(), use_arch_family, number_only);
    }
    std::pair<int, int> get_arch_pair() const { return {get_arch_major(), get_arch_minor()}; }
    int get_arch_major() const { return get_prop().major; }
    int get_arch_minor() const { return get_prop().minor; }

private:
    struct Snapshot {
        int index = 0;
        DeviceProp prop;
    };

    static Snapshot take() {
        driver::initialize();
        int count = 0;
        driver::check<ToolchainError>(driver::lazy_cuDeviceGetCount(&count), "cuDeviceGetCount");
        if (count == 0)
            throw ToolchainError("There is no CUDA device in this machine, or none is visible");
        Snapshot out;
        CUcontext context = nullptr;
        CUdevice device = 0;
        if (driver::lazy_cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr ||
            driver::lazy_cuCtxGetDevice(&device) != CUDA_SUCCESS)
            driver::check<ToolchainError>(driver::lazy_cuDeviceGet(&device, 0), "cuDeviceGet");
        // A CUdevice is the ordinal.
        out.index = static_cast<int>(device);
        fill(out.prop, device);
        return out;
    }

    static void fill(DeviceProp& prop, CUdevice device) {
        driver::check<ToolchainError>(
            driver::lazy_cuDeviceGetName(prop.name, sizeof(prop.name), device), "cuDeviceGetName");
        driver::check<ToolchainError>(driver::lazy_cuDeviceTotalMem(&prop.totalGlobalMem, device),
                                      "cuDeviceTotalMem");
        // An attribute that a driver does not know stays 0.
        const auto attribute = [&](CUdevice_attribute which) {
            int value = 0;
            return driver::lazy_cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value
                                                                                            : 0;
        };
        const auto bytes = [&](CUdevice_attribute which) {
            return static_cast<std::size_t>(attribute(which));
        };
        prop.sharedMemPerBlock = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
        prop.sharedMemPerBlockOptin = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
        prop.sharedMemPerMultiprocessor =
            bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
        prop.reservedSharedMemPerBlock =
            bytes(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
        prop.regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
        prop.regsPerMultiprocessor =
            attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
        prop.warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
        prop.maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        prop.maxThreadsPerMultiProcessor =
            attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
        prop.maxBlocksPerMultiProcessor =
            attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
        prop.maxThreadsDim[0] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
        prop.maxThreadsDim[1] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
        prop.maxThreadsDim[2] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
        prop.maxGridSize[0] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
        prop.maxGridSize[1] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
        prop.maxGridSize[2] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
        prop.clockRate = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
        prop.memoryClockRate = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
        prop.memoryBusWidth = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
        prop.l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
        prop.major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
        prop.minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
        prop.multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        prop.cooperativeLaunch = attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
        prop.clusterLaunch = attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
        prop.concurrentKernels = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
        prop.integrated = attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED);
        prop.pciDomainID = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
        prop.pciBusID = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
        prop.pciDeviceID = attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
    }

    LazyValue<Snapshot> snapshot_{[] { return take(); }};
};

/// "device 1 (NVIDIA H200, sm_90)", for messages; never fails.
inline std::string describe_device(int index) {
    char name[256] = "unknown";
    int major = 0, minor = 0;
    if (const auto get = driver::lazy_cuDeviceGetName.try_get())
        get(name, sizeof(name), index);
    if (const auto get = driver::lazy_cuDeviceGetAttribute.try_get()) {
        get(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, index);
        get(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, index);
    }
    return str::format("device {} ({}, sm_{})", index, name, major * 10 + minor);
}

}  // namespace deep_jit::cuda
