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

#include <deep_jit/backend/cuda/device.hpp>
#include <deep_jit/backend/cuda/driver.hpp>
#include <deep_jit/backend/cuda/kernel.hpp>
#include <deep_jit/backend/cuda/launch.hpp>
#include <deep_jit/backend/cuda/nvcc.hpp>
#include <deep_jit/backend/cuda/options.hpp>
#include <deep_jit/backend/cuda/stream.hpp>
#include <deep_jit/backend/cuda/toolkit.hpp>
#include <deep_jit/cache/identity.hpp>
#include <deep_jit/runtime/backend_concept.hpp>
#include <deep_jit/runtime/runtime.hpp>
#include <deep_jit/utils/lazy.hpp>

namespace deep_jit::cuda {

/// The toolkit of a runtime; looked for when one of these is first read.
struct LazyToolkit {
    LazyValue<std::filesystem::path> nvcc;
    LazyValue<std::optional<std::filesystem::path>> cuobjdump;
    LazyValue<Toolkit> found;
};

/// The compiler of a runtime; looked for when first asked. Its version is remembered on disk, so
/// that a warm start runs no program.
struct CompilerInfo {
    LazyValue<std::filesystem::path> path;
    LazyValue<std::string> version;  ///< complete output of `nvcc --version`

    std::string get_hash() const { return hash::get_hex_digest(version.get()); }

    json to_json() const {
        json out = json::object();
        out["path"] = path.get().string();
        out["version"] = version.get();
        return out;
    }
};

}  // namespace deep_jit::cuda

namespace deep_jit {

/// Backend that compiles CUDA C++ with NVCC and loads and launches through the CUDA driver.
class CUDA {
public:
    using Device = cuda::Device;
    using Kernel = cuda::Kernel;
    using CompilerOptions = cuda::CompilerOptions;
    using LaunchOptions = cuda::LaunchOptions;
    using Toolkit = cuda::Toolkit;

    cuda::LazyToolkit toolkit;
    cuda::CompilerInfo compiler_info;

    CUDA(const Config& config, const Env& env, const std::vector<std::filesystem::path>& roots,
         Device& device)
        : config_(&config), device_(&device) {
        using std::filesystem::path;
        toolkit.found = LazyValue<Toolkit>([env] { return find_cuda_toolkit(env); });
        const auto found = toolkit.found;
        toolkit.nvcc = LazyValue<path>([found] { return found->nvcc; });
        toolkit.cuobjdump = LazyValue<std::optional<path>>([found] { return found->cuobjdump; });
        compiler_info.path = toolkit.nvcc;
        compiler_info.version = LazyValue<std::string>([found, roots] {
            const auto& nvcc = found->nvcc;
            auto version = remember_identity(roots, nvcc, "--version",
                                             [&] { return cuda::ask_nvcc_version(nvcc); });
            cuda::check_nvcc_version(nvcc, version);
            return version;
        });
    }

    static EntryFiles entry_files() { return {"kernel.cu", "kernel.cubin"}; }

    /// See cuda::find_cuda_toolkit.
    static Toolkit find_cuda_toolkit(const Env& env) { return cuda::find_cuda_toolkit(env); }

    std::string compiler_hash() const { return compiler_info.get_hash(); }

    /// The options with the architecture of the device, if they have none. Throws ToolchainError
    /// when there is no device to ask.
    CompilerOptions resolve(const CompilerOptions& options) const {
        auto out = options;
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

    std::vector<std::string> key_flags(const CompilerOptions& options) const {
        return options.get_flags();
    }
    std::string key_hook(const CompilerOptions& options) const {
        return options.get_post_hook_hash(*config_);
    }

    json build(const BuildRequest<CompilerOptions>& request) const {
        auto command = cuda::NvccBuild(request, *toolkit.found).run();
        json out = json::object();
        out["command"] = command;
        out["compiler_info"] = compiler_info.to_json();
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

private:
    const Config* config_;
    Device* device_;
};

static_assert(Backend<CUDA>);

}  // namespace deep_jit
