// The simulated devices: which ones there are, and the numbers they report.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "cuda_api.hpp"

namespace stand_in {

struct Device {
    int ordinal = 0;
    int major = 9;
    int minor = 0;
    int sms = 132;
    int smem_per_sm = 228 << 10;
    int smem_optin = 227 << 10;
    int threads_per_sm = 2048;
    int blocks_per_sm = 32;
    int l2_bytes = 60 << 20;
    int clock_khz = 1980000;
    int max_cluster = 16;  ///< blocks, with non-portable sizes; 0: no clusters
    std::size_t memory_bytes = std::size_t{140} << 30;

    static constexpr int max_threads = 1024;
    static constexpr int smem_default = 48 << 10;
    static constexpr int registers_per_sm = 65536;
    static constexpr int portable_cluster = 8;

    std::string name() const {
        return "Stand-in GPU " + std::to_string(major) + "." + std::to_string(minor);
    }
    bool clusters() const { return max_cluster > 0; }
    int smem_reserved() const { return major >= 8 ? 1 << 10 : 0; }

    static Device of(int ordinal, int major, int minor) {
        Device device;
        device.ordinal = ordinal;
        device.major = major;
        device.minor = minor;
        const auto set = [&](int sms, int smem_kib, int threads, int blocks, int l2_mib,
                             int cluster) {
            device.sms = sms;
            device.smem_per_sm = smem_kib << 10;
            device.smem_optin = device.smem_per_sm - device.smem_reserved();
            device.threads_per_sm = threads;
            device.blocks_per_sm = blocks;
            device.l2_bytes = l2_mib << 20;
            device.max_cluster = cluster;
        };
        if (major < 8)
            set(40, 64, 1024, 16, 4, 0);
        else if (major == 8 && minor == 0)
            set(108, 164, 2048, 32, 40, 0);
        else if (major == 8)
            set(84, 100, 1536, minor == 9 ? 24 : 16, 6, 0);
        else if (major == 10)
            set(148, 228, 2048, 32, 126, 16);
        else if (major > 10)
            set(170, 100, 1536, 24, 96, 8);
        return device;
    }

    /// Value of an attribute; nothing when there is no such attribute.
    std::optional<int> attribute(int id) const {
        if (id <= 0 || id >= CU_DEVICE_ATTRIBUTE_MAX)
            return std::nullopt;
        switch (id) {
            case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return max_threads;
            case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: return 1024;
            case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
            case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
            case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 0x7fffffff;
            case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y: return 65535;
            case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
            case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return smem_default;
            case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return 65536;
            case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
            case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return 0x7fffffff;
            case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: return registers_per_sm;
            case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return clock_khz;
            case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return sms;
            case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY: return 1;
            case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS: return 1;
            case CU_DEVICE_ATTRIBUTE_ECC_ENABLED: return 1;
            case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return ordinal + 1;
            case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return 3201000;
            case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return 6144;
            case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return l2_bytes;
            case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return threads_per_sm;
            case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 3;
            case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: return 1;
            case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return major;
            case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return minor;
            case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED: return 1;
            case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return smem_per_sm;
            case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return registers_per_sm;
            case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY: return 1;
            case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH: return 1;
            case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return smem_optin;
            case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return blocks_per_sm;
            case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: return smem_reserved();
            case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: return clusters() ? 1 : 0;
            case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED: return major >= 9 ? 1 : 0;
            default: return 0;
        }
    }
};

/// DJ_STAND_IN_CUDA_DEVICES: "9.0,10.0", "none", or unset for one 9.0 device. An entry that is no
/// compute capability ends the program: a test with a misspelt variable must not pass.
inline std::vector<Device> devices_from_environment() {
    const char* text = std::getenv("DJ_STAND_IN_CUDA_DEVICES");
    const std::string list = text == nullptr ? "9.0" : text;
    std::vector<Device> devices;
    if (list == "none" || list.empty())
        return devices;
    for (std::size_t at = 0; at <= list.size();) {
        const auto end = std::min(list.find(',', at), list.size());
        const auto entry = list.substr(at, end - at);
        int major = 0, minor = 0;
        char rest = 0;
        if (std::sscanf(entry.c_str(), "%d.%d%c", &major, &minor, &rest) != 2 || major < 5) {
            std::fprintf(stderr, "DJ_STAND_IN_CUDA_DEVICES: \"%s\" is no compute capability\n",
                         entry.c_str());
            std::abort();
        }
        devices.push_back(Device::of(static_cast<int>(devices.size()), major, minor));
        at = end + 1;
    }
    return devices;
}

}  // namespace stand_in
