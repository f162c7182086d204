// Launching: options merged without a copy, one structure on the stack, one driver call.
#pragma once

#include <mutex>
#include <string>

#include <deep_jit/backend/cuda/kernel.hpp>
#include <deep_jit/backend/cuda/options.hpp>
#include <deep_jit/backend/cuda/stream.hpp>
#include <deep_jit/runtime/arguments.hpp>

namespace deep_jit::cuda {

/// One launch. Lives on the stack of Runtime::launch.
class Launch {
public:
    /// Throws LaunchError for options or arguments that cannot be right.
    Launch(const Kernel& kernel, const LaunchOptions& defaults, const LaunchOptions& overrides,
           const Arguments& arguments, const Device& device)
        : kernel_(kernel), arguments_(arguments), device_(device) {
        const auto pick = [&](auto field) -> const auto& {
            return (overrides.*field).has_value() ? overrides.*field : defaults.*field;
        };
        const auto& grid = pick(&LaunchOptions::grid_dim);
        const auto& block = pick(&LaunchOptions::block_dim);
        const auto& cluster = pick(&LaunchOptions::cluster_dim);
        const auto& smem = pick(&LaunchOptions::num_smem_bytes);
        const auto& stream = pick(&LaunchOptions::stream);
        if (kernel.kernel_handle == nullptr) [[unlikely]]
            fail("it has been unloaded");
        if (!grid || !block || !cluster || !smem) [[unlikely]]
            fail(std::string(!grid      ? "the grid dimension"
                             : !block   ? "the block dimension"
                             : !cluster ? "the cluster dimension"
                                        : "the shared-memory size") +
                 " must be specified");
        if (grid->x == 0 || grid->y == 0 || grid->z == 0) [[unlikely]]
            fail("the grid dimension must be positive: " + text_of(*grid));
        if (block->x == 0 || block->y == 0 || block->z == 0) [[unlikely]]
            fail("the block dimension must be positive: " + text_of(*block));
        if (*smem < 0) [[unlikely]]
            fail("the shared-memory size must not be negative: " + str::to_text(*smem));
        config_.gridDimX = grid->x;
        config_.gridDimY = grid->y;
        config_.gridDimZ = grid->z;
        config_.blockDimX = block->x;
        config_.blockDimY = block->y;
        config_.blockDimZ = block->z;
        config_.sharedMemBytes = static_cast<unsigned int>(*smem);
        config_.hStream = stream ? *stream : current_stream();
        config_.attrs = attributes_;
        config_.numAttrs = 0;
        if (!kernel.params_known()) [[unlikely]]
            learn_parameters();
        check_arguments(kernel.name_, arguments, kernel.param_sizes_.data(),
                        kernel.param_sizes_.size());
        if ((cluster->x ^ 1) | (cluster->y ^ 1) | (cluster->z ^ 1))
            add_cluster(*cluster);
        if (pick(&LaunchOptions::cooperative).value_or(false))
            add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
        if (pick(&LaunchOptions::enable_pdl).value_or(false))
            add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
                .programmaticStreamSerializationAllowed = 1;
        nonportable_ = pick(&LaunchOptions::nonportable_cluster_size_allowed).value_or(false);
    }

    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

    /// Throws LaunchError when the driver refuses it.
    void run() {
        if (!nonportable_ && config_.sharedMemBytes == 0 &&
            !kernel_.nonportable_seen_.load(std::memory_order_relaxed)) [[likely]]
            return call();
        auto& state = kernel_.states_[current_device()];
        if (static_cast<int>(config_.sharedMemBytes) >
            state.smem_limit.load(std::memory_order_acquire)) [[unlikely]]
            raise_smem_limit(state);
        if (nonportable_ || state.nonportable.load(std::memory_order_acquire)) [[unlikely]] {
            // Another launch may want the other setting: ours has to hold until the call is done.
            const std::lock_guard lock(kernel_.attribute_mutex_);
            set_nonportable(state);
            call();
        } else {
            call();
        }
    }

private:
    void call() {
        const auto launch = driver::lazy_cuLaunchKernelEx.get();
        const auto function = reinterpret_cast<CUfunction>(kernel_.kernel_handle);
        const auto pointers = const_cast<void**>(arguments_.pointers);
        auto code = launch(&config_, function, pointers, nullptr);
        if (code != CUDA_SUCCESS) [[unlikely]] {
            if (provide_context())
                code = launch(&config_, function, pointers, nullptr);
            if (code != CUDA_SUCCESS)
                fail_launch("cuLaunchKernelEx", code);
        }
    }

    CUlaunchAttributeValue& add(CUlaunchAttributeID id) {
        auto& attribute = attributes_[config_.numAttrs++];
        attribute.id = id;
        return attribute.value;
    }

    void add_cluster(const dim3& cluster) {
        if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0) [[unlikely]]
            fail("the cluster dimension must be positive: " + text_of(cluster));
        if (config_.gridDimX % cluster.x != 0 || config_.gridDimY % cluster.y != 0 ||
            config_.gridDimZ % cluster.z != 0) [[unlikely]]
            fail("the grid dimension must be a multiple of the cluster dimension " +
                 text_of(cluster));
        auto& value = add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
        value.x = cluster.x;
        value.y = cluster.y;
        value.z = cluster.z;
    }

    std::size_t current_device() {
        if (kernel_.num_devices_ == 1)
            return 0;
        CUdevice device = 0;
        auto code = driver::lazy_cuCtxGetDevice(&device);
        if (code != CUDA_SUCCESS && provide_context())
            code = driver::lazy_cuCtxGetDevice(&device);
        if (code != CUDA_SUCCESS || device < 0 || device >= kernel_.num_devices_)
            fail_launch("cuCtxGetDevice", code);
        return static_cast<std::size_t>(device);
    }

    /// Without this a block gets 48 KiB, less what the kernel uses statically.
    void raise_smem_limit(detail::DeviceState& state) {
        const int wanted = static_cast<int>(config_.sharedMemBytes);
        const auto device = static_cast<CUdevice>(&state - kernel_.states_.get());
        const std::lock_guard lock(kernel_.attribute_mutex_);
        int limit = 0;
        if (const auto code = driver::lazy_cuKernelGetAttribute(
                &limit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel_.kernel_handle,
                device))
            fail_launch("cuKernelGetAttribute", code);
        if (wanted > limit) {
            if (const auto code = driver::lazy_cuKernelSetAttribute(
                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, wanted, kernel_.kernel_handle,
                    device))
                fail_launch("cuKernelSetAttribute for the dynamic shared memory", code);
            limit = wanted;
        }
        state.smem_limit.store(limit, std::memory_order_release);
    }

    void set_nonportable(detail::DeviceState& state) {
        if (state.nonportable.load(std::memory_order_relaxed) == nonportable_)
            return;
        const auto device = static_cast<CUdevice>(&state - kernel_.states_.get());
        kernel_.nonportable_seen_.store(true, std::memory_order_relaxed);
        if (const auto code = driver::lazy_cuKernelSetAttribute(
                CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, nonportable_ ? 1 : 0,
                kernel_.kernel_handle, device))
            fail_launch("cuKernelSetAttribute for the cluster size", code);
        state.nonportable.store(nonportable_, std::memory_order_release);
    }

    /// Of a kernel that was loaded by a thread without a context.
    [[gnu::cold, gnu::noinline]] void learn_parameters() {
        provide_context();
        if (const auto code = kernel_.learn_parameters())
            fail_launch("cuKernelGetParamInfo", code);
    }

    /// Gives a thread that has no current context the one of the stream, or else the primary
    /// context of the runtime's device. True when it did.
    bool provide_context() const {
        CUcontext context = nullptr;
        if (driver::lazy_cuCtxGetCurrent(&context) != CUDA_SUCCESS || context != nullptr)
            return false;
        // The legacy and the per-thread default stream are of no context.
        const bool real_stream = config_.hStream != nullptr &&
                                 config_.hStream != CU_STREAM_LEGACY &&
                                 config_.hStream != CU_STREAM_PER_THREAD;
        if (!real_stream || driver::lazy_cuStreamGetCtx(config_.hStream, &context) != CUDA_SUCCESS)
            // Kept for good: other threads come to rely on it.
            driver::check<LaunchError>(
                driver::lazy_cuDevicePrimaryCtxRetain(&context, device_.get_index()),
                "cuDevicePrimaryCtxRetain");
        driver::check<LaunchError>(driver::lazy_cuCtxSetCurrent(context), "cuCtxSetCurrent");
        return true;
    }

    [[noreturn, gnu::cold, gnu::noinline]] void fail(const std::string& reason) const {
        throw LaunchError(
            str::format("Cannot launch kernel {}: {}", detail::demangle(kernel_.name_), reason));
    }

    [[noreturn, gnu::cold, gnu::noinline]] void fail_launch(const char* call, CUresult code) const {
        std::string text = str::format("{}: {} ({})", call, driver::error_text(code), describe());
        CUdevice device = 0;
        const bool has_device = driver::lazy_cuCtxGetDevice(&device) == CUDA_SUCCESS;
        int major = 0, minor = 0;
        if (has_device) {
            driver::lazy_cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                              device);
            driver::lazy_cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                              device);
        }
        const bool fits = major == kernel_.arch_ / 10 && minor >= kernel_.arch_ % 10;
        if (has_device && (!fits || code == CUDA_ERROR_NO_BINARY_FOR_GPU))
            text += str::format(
                ". The kernel was compiled for sm_{}, but the current device is {}: use one "
                "runtime for each architecture",
                kernel_.arch_, describe_device(device));
        else if (code == CUDA_ERROR_ILLEGAL_ADDRESS || code == CUDA_ERROR_LAUNCH_FAILED ||
                 code == CUDA_ERROR_ASSERT || code == CUDA_ERROR_MISALIGNED_ADDRESS ||
                 code == CUDA_ERROR_ILLEGAL_INSTRUCTION)
            text += ". It may come from an earlier kernel: launches are asynchronous";
        fail(text);
    }

    std::string describe() const {
        std::string out =
            str::format("grid {}, block {}, {} bytes of dynamic shared memory, stream {}",
                        text_of({config_.gridDimX, config_.gridDimY, config_.gridDimZ}),
                        text_of({config_.blockDimX, config_.blockDimY, config_.blockDimZ}),
                        config_.sharedMemBytes, static_cast<const void*>(config_.hStream));
        for (unsigned int i = 0; i < config_.numAttrs; ++i) {
            const auto& value = attributes_[i].value;
            if (attributes_[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
                out += ", cluster " +
                       text_of({value.clusterDim.x, value.clusterDim.y, value.clusterDim.z});
            else if (attributes_[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
                out += ", cooperative";
            else
                out += ", PDL";
        }
        return out + (nonportable_ ? ", non-portable cluster size allowed" : "");
    }

    static std::string text_of(const dim3& dim) {
        return str::format("({}, {}, {})", dim.x, dim.y, dim.z);
    }

    const Kernel& kernel_;
    const Arguments& arguments_;
    const Device& device_;
    CUlaunchConfig config_;
    bool nonportable_;
    CUlaunchAttribute attributes_[3];
};

}  // namespace deep_jit::cuda
