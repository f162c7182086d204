// Launches: finding the kernel, checking the request, copying the arguments, recording.
#include <cstring>

#include "driver.hpp"
#include "launch_check.hpp"

using namespace stand_in;

namespace {

/// What is to be launched and where.
struct Target {
    Kernel* kernel;
    Context* context;
    bool through_kernel;
};

Target target_of(Driver& driver, CUfunction handle, CUstream stream_handle) {
    require(handle != nullptr, CUDA_ERROR_INVALID_HANDLE);
    // Only the default streams need a current context; any other has its own.
    const auto& stream = driver.stream(stream_handle);
    if (auto* function = driver.functions.find(handle)) {
        require(function->context == stream.context, CUDA_ERROR_INVALID_HANDLE);
        return {function->kernel, function->context, false};
    }
    auto* kernel = driver.kernels.find(handle);
    require(kernel != nullptr, CUDA_ERROR_INVALID_HANDLE);
    auto* context = stream.context;
    require(kernel->library->cubin.arch.runs_on(context->device->major, context->device->minor),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
    return {kernel, context, true};
}

/// Bytes of each argument, from an array of pointers or from one packed buffer.
std::vector<std::string> copy_arguments(const CubinKernel& code, void** params, void** extra) {
    require(params == nullptr || extra == nullptr);
    const char* buffer = nullptr;
    std::size_t buffer_size = 0;
    if (extra != nullptr) {
        for (std::size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
            if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
                buffer = static_cast<const char*>(extra[i + 1]);
            else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
                buffer_size = *static_cast<const std::size_t*>(extra[i + 1]);
            else
                fail(CUDA_ERROR_INVALID_VALUE);
        }
        require(buffer != nullptr || code.params.empty());
        require(buffer_size == code.param_bytes, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    }
    std::vector<std::string> out;
    for (std::size_t i = 0; i < code.params.size(); ++i) {
        const auto& param = code.params[i];
        if (extra != nullptr) {
            out.emplace_back(buffer + param.offset, param.size);
        } else {
            require(params != nullptr && params[i] != nullptr);
            out.emplace_back(static_cast<const char*>(params[i]), param.size);
        }
    }
    return out;
}

void read_attributes(LaunchRequest& request, const CUlaunchConfig& config, bool capturing) {
    require(config.numAttrs == 0 || config.attrs != nullptr);
    for (unsigned i = 0; i < config.numAttrs; ++i) {
        const auto& value = config.attrs[i].value;
        switch (static_cast<int>(config.attrs[i].id)) {
            case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
                request.cooperative = value.cooperative != 0;
                break;
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
                request.cluster =
                    CubinDim{value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
                break;
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
                request.pdl = value.programmaticStreamSerializationAllowed != 0;
                break;
            case CU_LAUNCH_ATTRIBUTE_IGNORE:
            case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
            case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
            case 11:  // CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, CUDA 12.8 and later
            case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT: break;
            case 13:  // CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, CUDA 12.4 and later
                require(capturing);
                break;
            case 14:  // CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 12.5 and later
                break;
            default: fail(CUDA_ERROR_INVALID_VALUE);
        }
    }
}

void launch(Driver& driver, CUfunction handle, const CUlaunchConfig& config, void** params,
            void** extra) {
    const auto target = target_of(driver, handle, config.hStream);
    auto& stream = driver.stream(config.hStream);
    const auto& device = *target.context->device;
    const auto& code = *target.kernel->code;
    const auto& attributes = target.kernel->attributes[device.ordinal];

    LaunchRequest request;
    request.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
    request.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
    request.smem = config.sharedMemBytes;
    read_attributes(request, config, stream.capture != nullptr);
    const auto code_of_check = check_launch(request, code, attributes, device);
    require(code_of_check == CUDA_SUCCESS, code_of_check);

    Record record;
    record.arguments = copy_arguments(code, params, extra);
    driver.check_implicit_dependency(stream);
    record.name = code.name;
    record.kernel = target.kernel;
    auto& out = record.launch;
    const auto cluster = effective_cluster(request, code, attributes);
    std::copy(request.grid.begin(), request.grid.end(), out.grid);
    std::copy(request.block.begin(), request.block.end(), out.block);
    std::copy(cluster.begin(), cluster.end(), out.cluster);
    out.smem = request.smem;
    out.stream = config.hStream;
    out.context = target.context;
    out.device = device.ordinal;
    out.cooperative = request.cooperative ? 1 : 0;
    out.pdl = request.pdl ? 1 : 0;
    out.nonportable = attributes.nonportable ? 1 : 0;
    out.max_dynamic_smem =
        attributes.max_dynamic_smem.value_or(dynamic_smem_limit(code, attributes));
    out.through_kernel = target.through_kernel ? 1 : 0;
    out.num_arguments = record.arguments.size();
    GraphNode node;
    node.type = CU_GRAPH_NODE_TYPE_KERNEL;
    node.launch = record;
    out.captured = driver.add_to_capture(stream, std::move(node)) ? 1 : 0;
    driver.remember(std::move(record));
}

}  // namespace

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                                  void** extra) {
    return call(__func__, [&](Driver& driver) {
        require(config != nullptr);
        launch(driver, function, *config, params, extra);
    });
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                unsigned int block_z, unsigned int smem, CUstream stream,
                                void** params, void** extra) {
    return call(__func__, [&](Driver& driver) {
        const CUlaunchConfig config{grid_x,  grid_y, grid_z, block_x, block_y,
                                    block_z, smem,   stream, nullptr, 0};
        launch(driver, function, config, params, extra);
    });
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                           unsigned int grid_y, unsigned int grid_z,
                                           unsigned int block_x, unsigned int block_y,
                                           unsigned int block_z, unsigned int smem, CUstream stream,
                                           void** params) {
    return call(__func__, [&](Driver& driver) {
        CUlaunchAttribute attribute{};
        attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attribute.value.cooperative = 1;
        const CUlaunchConfig config{grid_x,  grid_y, grid_z, block_x,    block_y,
                                    block_z, smem,   stream, &attribute, 1};
        launch(driver, function, config, params, nullptr);
    });
}
