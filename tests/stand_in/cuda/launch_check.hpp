// The rules a launch has to keep. Pure functions of the request, the kernel and the device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "cubin.hpp"
#include "cuda_api.hpp"
#include "device.hpp"
#include "objects.hpp"

namespace stand_in {

struct LaunchRequest {
    CubinDim grid{};
    CubinDim block{};
    std::uint32_t smem = 0;
    std::optional<CubinDim> cluster;  ///< as a launch attribute
    bool cooperative = false;
    bool pdl = false;
};

inline std::uint64_t volume(const CubinDim& dim) { return std::uint64_t{dim[0]} * dim[1] * dim[2]; }

/// Dynamic shared memory a launch may ask for.
inline int dynamic_smem_limit(const CubinKernel& kernel, const KernelAttributes& attributes) {
    const int usual = std::max(0, Device::smem_default - static_cast<int>(kernel.static_smem));
    return std::max(usual, attributes.max_dynamic_smem.value_or(0));
}

/// Registers a warp of this kernel occupies.
inline std::uint32_t registers_per_warp(const CubinKernel& kernel) {
    return (std::max(kernel.registers, 1u) * 32 + 255) / 256 * 256;
}

/// Threads a block of this kernel can have: launch bounds and registers.
inline int max_threads_of(const CubinKernel& kernel) {
    if (volume(kernel.required_block) > 0)
        return static_cast<int>(volume(kernel.required_block));
    if (kernel.max_threads > 0)
        return static_cast<int>(kernel.max_threads);
    const std::uint32_t warps = Device::registers_per_sm / registers_per_warp(kernel) / 4 * 4;
    return static_cast<int>(std::min<std::uint32_t>(Device::max_threads, warps * 32));
}

/// Blocks of `threads` threads that fit on one multiprocessor.
inline int blocks_per_sm(const CubinKernel& kernel, const Device& device, std::uint64_t threads,
                         std::uint64_t smem) {
    const std::uint64_t warps = (threads + 31) / 32;
    if (warps == 0)
        return 0;
    const std::uint64_t shared = kernel.static_smem + smem + device.smem_reserved();
    std::uint64_t blocks = static_cast<std::uint64_t>(device.blocks_per_sm);
    blocks = std::min(blocks, static_cast<std::uint64_t>(device.threads_per_sm) / (warps * 32));
    blocks = std::min(blocks, Device::registers_per_sm / (registers_per_warp(kernel) * warps));
    if (shared > 0)
        blocks = std::min(blocks, static_cast<std::uint64_t>(device.smem_per_sm) / shared);
    return static_cast<int>(blocks);
}

/// The cluster a launch gets: the attribute of the launch, of the kernel, or of the source.
inline CubinDim effective_cluster(const LaunchRequest& request, const CubinKernel& kernel,
                                  const KernelAttributes& attributes) {
    if (request.cluster)
        return *request.cluster;
    return volume(kernel.cluster) > 0 ? kernel.cluster : attributes.cluster;
}

inline CUresult check_cluster(const LaunchRequest& request, const CubinKernel& kernel,
                              const KernelAttributes& attributes, const Device& device) {
    const auto cluster = effective_cluster(request, kernel, attributes);
    const auto size = volume(cluster);
    if (size == 0)
        return request.cluster ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
    const bool given = volume(kernel.cluster) > 0;
    if (request.cluster && given && *request.cluster != kernel.cluster)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (!device.clusters())
        return size == 1 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    if (size > static_cast<std::uint64_t>(device.max_cluster) ||
        (size > Device::portable_cluster && !attributes.nonportable) ||
        (kernel.max_cluster > 0 && size > kernel.max_cluster))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (!kernel.blocks_are_clusters)
        for (std::size_t i = 0; i < 3; ++i)
            if (request.grid[i] % cluster[i] != 0)
                return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return CUDA_SUCCESS;
}

inline CUresult check_launch(const LaunchRequest& request, const CubinKernel& kernel,
                             const KernelAttributes& attributes, const Device& device) {
    const auto& [grid, block] = std::pair(request.grid, request.block);
    if (volume(grid) == 0 || volume(block) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535)
        return CUDA_ERROR_INVALID_VALUE;
    if (block[0] > 1024 || block[1] > 1024 || block[2] > 64 || volume(block) > Device::max_threads)
        return CUDA_ERROR_INVALID_VALUE;
    if (volume(kernel.required_block) > 0 && block != kernel.required_block)
        return CUDA_ERROR_INVALID_VALUE;
    if (kernel.max_threads > 0 && volume(block) > kernel.max_threads)
        return CUDA_ERROR_INVALID_VALUE;
    if (request.smem > static_cast<std::uint32_t>(dynamic_smem_limit(kernel, attributes)))
        return CUDA_ERROR_INVALID_VALUE;
    if (const auto code = check_cluster(request, kernel, attributes, device); code != CUDA_SUCCESS)
        return code;
    const auto resident = blocks_per_sm(kernel, device, volume(block), request.smem);
    if (resident == 0)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (request.cooperative &&
        volume(grid) > static_cast<std::uint64_t>(resident) * static_cast<unsigned>(device.sms))
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

}  // namespace stand_in
