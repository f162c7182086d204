// Questions about kernels and functions, their attributes, and occupancy.
#include "driver.hpp"
#include "launch_check.hpp"

using namespace stand_in;

namespace {

Kernel& kernel_of(Driver& driver, CUkernel handle) {
    auto* kernel = driver.kernels.find(handle);
    require(kernel != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return *kernel;
}

Function& function_of(Driver& driver, CUfunction handle) {
    auto* function = driver.functions.find(handle);
    require(function != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return *function;
}

int get_attribute(Kernel& kernel, const Device& device, int attribute) {
    const auto& code = *kernel.code;
    const auto& set = kernel.attributes[device.ordinal];
    const auto& cluster = volume(code.cluster) > 0 ? code.cluster : set.cluster;
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return max_threads_of(code);
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return static_cast<int>(code.static_smem);
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: return static_cast<int>(code.const_bytes);
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return static_cast<int>(code.local_bytes);
        case CU_FUNC_ATTRIBUTE_NUM_REGS: return static_cast<int>(code.registers);
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return kernel.library->cubin.arch.sm;
        case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: return 0;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            return set.max_dynamic_smem.value_or(dynamic_smem_limit(code, set));
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return set.carveout;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: return 0;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: return static_cast<int>(cluster[0]);
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: return static_cast<int>(cluster[1]);
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: return static_cast<int>(cluster[2]);
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: return set.nonportable ? 1 : 0;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return set.scheduling_policy;
        default: fail(CUDA_ERROR_INVALID_VALUE);
    }
}

void set_attribute(Kernel& kernel, const Device& device, int attribute, int value) {
    auto& set = kernel.attributes[device.ordinal];
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            require(value >= 0 &&
                    value <= device.smem_optin - static_cast<int>(kernel.code->static_smem));
            set.max_dynamic_smem = value;
            break;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            require(value >= -1 && value <= 100);
            set.carveout = value;
            break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
            require(volume(kernel.code->cluster) == 0 && value >= 0);
            set.cluster[static_cast<std::size_t>(attribute -
                                                 CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)] =
                static_cast<std::uint32_t>(value);
            break;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
            require(value == 0 || value == 1);
            set.nonportable = value == 1;
            break;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            require(value >= 0 && value <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
            set.scheduling_policy = value;
            break;
        default: fail(CUDA_ERROR_INVALID_VALUE);
    }
}

void param_info(const CubinKernel& code, std::size_t index, std::size_t* offset,
                std::size_t* size) {
    require(offset != nullptr && index < code.params.size());
    *offset = code.params[index].offset;
    if (size != nullptr)
        *size = code.params[index].size;
}

/// The kernel behind a CUfunction, or behind a CUkernel cast to one.
Kernel& either(Driver& driver, CUfunction handle) {
    if (auto* function = driver.functions.find(handle))
        return *function->kernel;
    return kernel_of(driver, reinterpret_cast<CUkernel>(handle));
}

CUresult occupancy(const char* name, int* out, CUfunction function, int block, std::size_t smem,
                   unsigned flags) {
    return call(name, [&](Driver& driver) {
        require(out != nullptr && block > 0 && (flags & ~1u) == 0);
        const auto& device = *driver.current_context().device;
        const auto& code = *either(driver, function).code;
        *out = block > max_threads_of(code)
                   ? 0
                   : blocks_per_sm(code, device, static_cast<std::uint64_t>(block), smem);
    });
}

}  // namespace

CUresult CUDAAPI cuKernelGetName(const char** name, CUkernel handle) {
    return call(__func__, [&](Driver& driver) {
        require(name != nullptr);
        *name = kernel_of(driver, handle).code->name.c_str();
    });
}

CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                                      CUdevice device) {
    return call(__func__, [&](Driver& driver) {
        require(value != nullptr);
        *value = get_attribute(kernel_of(driver, handle), driver.device(device), attribute);
    });
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                                      CUdevice device) {
    return call(__func__, [&](Driver& driver) {
        set_attribute(kernel_of(driver, handle), driver.device(device), attribute, value);
    });
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel handle, std::size_t index, std::size_t* offset,
                                      std::size_t* size) {
    return call(__func__, [&](Driver& driver) {
        const auto& kernel = kernel_of(driver, handle);
        driver.current_context();  // any one, but one there must be
        param_info(*kernel.code, index, offset, size);
    });
}

CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction handle) {
    return call(__func__, [&](Driver& driver) {
        require(name != nullptr);
        *name = function_of(driver, handle).kernel->code->name.c_str();
    });
}

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
    return call(__func__, [&](Driver& driver) {
        require(value != nullptr);
        const auto& function = function_of(driver, handle);
        *value = get_attribute(*function.kernel, *function.context->device, attribute);
    });
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    return call(__func__, [&](Driver& driver) {
        const auto& function = function_of(driver, handle);
        set_attribute(*function.kernel, *function.context->device, attribute, value);
    });
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction handle, std::size_t index, std::size_t* offset,
                                    std::size_t* size) {
    return call(__func__, [&](Driver& driver) {
        param_info(*function_of(driver, handle).kernel->code, index, offset, size);
    });
}

CUresult CUDAAPI cuFuncGetModule(CUmodule* out, CUfunction handle) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr);
        *out = reinterpret_cast<CUmodule>(function_of(driver, handle).kernel->library);
    });
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                             int block, std::size_t smem) {
    return occupancy(__func__, blocks, function, block, smem, 0);
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                      CUfunction function,
                                                                      int block, std::size_t smem,
                                                                      unsigned int flags) {
    return occupancy(__func__, blocks, function, block, smem, flags);
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle,
                                              const CUlaunchConfig* config) {
    return call(__func__, [&](Driver& driver) {
        require(clusters != nullptr && config != nullptr);
        const auto& device = *driver.current_context().device;
        auto& kernel = either(driver, handle);
        const auto& set = kernel.attributes[device.ordinal];
        LaunchRequest request;
        request.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
        request.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
        request.smem = config->sharedMemBytes;
        require(config->numAttrs == 0 || config->attrs != nullptr);
        for (unsigned i = 0; i < config->numAttrs; ++i)
            if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
                const auto& dim = config->attrs[i].value.clusterDim;
                request.cluster = CubinDim{dim.x, dim.y, dim.z};
            }
        require(device.clusters(), CUDA_ERROR_NOT_SUPPORTED);
        const auto code = check_launch(request, *kernel.code, set, device);
        require(code == CUDA_SUCCESS, code);
        const auto size = volume(effective_cluster(request, *kernel.code, set));
        require(size > 0);
        const auto resident =
            blocks_per_sm(*kernel.code, device, volume(request.block), request.smem);
        *clusters = static_cast<int>(static_cast<std::uint64_t>(resident) *
                                     static_cast<std::uint64_t>(device.sms) / size);
    });
}
