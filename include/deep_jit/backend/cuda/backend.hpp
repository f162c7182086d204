// The CUDA backend: `deep_jit::Runtime<deep_jit::CUDA>`.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Consumers expect cudaStream_t and the runtime's declarations to come with this header. None of
// its functions is called here.
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#endif

#include <deep_jit/backend/cuda/compilers.hpp>
#include <deep_jit/backend/cuda/device.hpp>
#include <deep_jit/backend/cuda/driver.hpp>
#include <deep_jit/backend/cuda/kernel.hpp>
#include <deep_jit/backend/cuda/launch.hpp>
#include <deep_jit/backend/cuda/nvcc.hpp>
#include <deep_jit/backend/cuda/nvrtc.hpp>
#include <deep_jit/backend/cuda/options.hpp>
#include <deep_jit/backend/cuda/stream.hpp>
#include <deep_jit/backend/cuda/toolkit.hpp>
#include <deep_jit/runtime/backend_concept.hpp>
#include <deep_jit/runtime/runtime.hpp>
#include <deep_jit/utils/lazy.hpp>

namespace deep_jit {

/// Backend that compiles CUDA C++ with NVCC or NVRTC and loads and launches through the CUDA
/// driver.
class CUDA {
public:
    using Device = cuda::Device;
    using Kernel = cuda::Kernel;
    using CompilerOptions = cuda::CompilerOptions;
    using LaunchOptions = cuda::LaunchOptions;
    using Toolkit = cuda::Toolkit;

    static constexpr const char* kName = "cuda";

    cuda::LazyToolkit toolkit;
    LazyValue<cuda::NvrtcLibrary> nvrtc;  ///< looked for when first read
    /// Of the compiler that `JIT_COMPILER` says; a kernel's options may name the other.
    cuda::CompilerInfo compiler_info;

    CUDA(const Config& config, const Env& env, const std::vector<std::filesystem::path>& roots,
         Device& device)
        : config_(&config),
          device_(&device),
          compilers_(env, roots),
          pch_(std::make_unique<cuda::nvrtc::Pch>(roots)) {
        toolkit = compilers_.toolkit();
        nvrtc = compilers_.nvrtc();
        compiler_info = compilers_.chosen();
    }

    static EntryFiles entry_files() { return {"kernel.cu", "kernel.cubin"}; }

    /// See cuda::find_cuda_toolkit.
    static Toolkit find_cuda_toolkit(const Env& env) { return cuda::find_cuda_toolkit(env); }

    std::string compiler_hash() const { return compilers_.base_hash(); }

    /// The options with the architecture of the device, if they have none, and with the compiler
    /// that "auto" stands for. Throws ToolchainError when there is no device to ask, ConfigError
    /// for a compiler that there is not.
    CompilerOptions resolve(const CompilerOptions& options) const {
        auto out = options;
        if (!out.compiler)
            out.compiler = "nvcc";
        if (*out.compiler == "auto")
            out.compiler = compilers_.has_nvcc() ? "nvcc" : "nvrtc";
        if (*out.compiler != "nvcc" && *out.compiler != "nvrtc")
            detail::throw_error<ConfigError>(
                "CompilerOptions::compiler is '{}': expected nvcc, nvrtc or auto", *out.compiler);
        if (!out.arch) {
            try {
                out.arch = device_->get_arch();
            } catch (const ToolchainError& error) {
                detail::throw_error<ToolchainError>(
                    "There is no device to compile for: {}. Without a GPU, set {}_JIT_ARCH or "
                    "CompilerOptions::arch, to 90a for example",
                    error.what(), config_->env_prefix);
            }
        }
        return out;
    }

    /// NVCC's flags, whichever compiler they are for. A compiler that compiler_hash() does not
    /// stand for is added.
    std::vector<std::string> key_flags(const CompilerOptions& options) const {
        auto out = options.get_flags();
        const auto hash = compilers_.info(is_nvrtc(options)).get_hash();
        if (hash != compilers_.base_hash())
            out.push_back("compiler: " + hash);
        return out;
    }
    std::string key_hook(const CompilerOptions& options) const {
        return options.get_post_hook_hash(*config_);
    }

    json build(const BuildRequest<CompilerOptions>& request) const {
        auto command = is_nvrtc(request.options) ? cuda::NvrtcBuild(request, *nvrtc, *pch_).run()
                                                 : cuda::NvccBuild(request, *toolkit.found).run();
        json out = json::object();
        out["command"] = command;
        out["compiler_info"] = compilers_.info(is_nvrtc(request.options)).to_json();
        return out;
    }

    static std::shared_ptr<Kernel> load(const LoadRequest& request, const Env& env) {
        const auto start = std::chrono::steady_clock::now();
        auto kernel = Kernel::load(request.artifact, request.key);
        if (env.get<bool>("JIT_DEBUG", false) || env.get<bool>("JIT_PRINT_LOAD_TIME", false)) {
            const std::chrono::duration<double, std::micro> time =
                std::chrono::steady_clock::now() - start;
            log::write(env, str::format("Load time ({}): {} us", request.key,
                                        static_cast<std::int64_t>(time.count())));
        }
        return kernel;
    }

    /// Loads what an entry's directory holds.
    static std::shared_ptr<Kernel> load(const std::filesystem::path& directory, const Env& env) {
        const auto path = directory / entry_files().artifact_name;
        const auto key = normalize_path(directory).filename().string();
        std::string bytes;
        if (const int error = try_read(path, bytes))
            throw LoadError(str::format("Cannot load kernel {}: missing CUDA CUBIN {}: {}", key,
                                        path, detail::errno_text(error)),
                            {{}, {}, {}, key});
        return load(LoadRequest{bytes, directory, key}, env);
    }

    void launch(const Kernel& kernel, const LaunchOptions& defaults, const LaunchOptions& overrides,
                const Arguments& arguments) const {
        cuda::Launch(kernel, defaults, overrides, arguments, *device_).run();
    }

    /// The stream of launches that name none.
    static CUstream current_stream() { return cuda::current_stream(); }
    /// Waits for what is on a stream. Throws LaunchError.
    static void synchronize(CUstream stream) {
        cuda::driver::check<LaunchError>(cuda::driver::lazy_cuStreamSynchronize(stream),
                                         "cuStreamSynchronize");
    }
    /// The device of the thread's context; -1 without one, and where there is only one device.
    static int launch_device() {
        static const int count = [] {
            int devices = 0;
            const auto get = cuda::driver::lazy_cuDeviceGetCount.try_get();
            return get != nullptr && get(&devices) == CUDA_SUCCESS ? devices : 0;
        }();
        CUdevice device = -1;
        if (count < 2 || cuda::driver::lazy_cuCtxGetDevice(&device) != CUDA_SUCCESS)
            return -1;
        return static_cast<int>(device);
    }

private:
    static bool is_nvrtc(const CompilerOptions& options) { return options.compiler == "nvrtc"; }

    const Config* config_;
    Device* device_;
    cuda::Compilers compilers_;
    std::unique_ptr<cuda::nvrtc::Pch> pch_;
};

static_assert(Backend<CUDA>);

}  // namespace deep_jit
