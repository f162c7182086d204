// The Ascend backend: `deep_jit::Runtime<deep_jit::Ascend>`. Needs no header of CANN or torch_npu.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <deep_jit/backend/ascend/acl.hpp>
#include <deep_jit/backend/ascend/compile.hpp>
#include <deep_jit/backend/ascend/device.hpp>
#include <deep_jit/backend/ascend/driver.hpp>
#include <deep_jit/backend/ascend/kernel.hpp>
#include <deep_jit/backend/ascend/launch.hpp>
#include <deep_jit/backend/ascend/options.hpp>
#include <deep_jit/backend/ascend/stream.hpp>
#include <deep_jit/backend/ascend/toolkit.hpp>
#include <deep_jit/cache/identity.hpp>
#include <deep_jit/runtime/backend_concept.hpp>
#include <deep_jit/runtime/runtime.hpp>
#include <deep_jit/utils/lazy.hpp>

namespace deep_jit::ascend {

/// The toolkit of a runtime; looked for when one of these is first read.
struct LazyToolkit {
    LazyValue<std::filesystem::path> root;
    LazyValue<std::filesystem::path> bisheng;
    LazyValue<std::filesystem::path> ld_lld;
    LazyValue<Toolkit> found;
};

/// Compiler and linker of a runtime; looked for when first asked. Their versions are remembered on
/// disk, so that a warm start runs no program.
struct CompilerInfo {
    LazyValue<std::filesystem::path> path;
    LazyValue<std::string> version;  ///< complete output of `bisheng --version`
    LazyValue<std::filesystem::path> linker_path;
    LazyValue<std::string> linker_version;   ///< complete output of `ld.lld --version`
    LazyValue<std::string> header_versions;  ///< of the toolkit's headers

    /// Stands for the toolkit's versions; not for the place where it is installed.
    std::string get_hash() const {
        return hash::FNV1a()
            .update(version_identity(version.get()))
            .update(version_identity(linker_version.get()))
            .update(header_versions.get())
            .get_hex_digest();
    }

    json to_json() const {
        json out = json::object();
        out["path"] = path.get().string();
        out["version"] = version.get();
        out["linker_path"] = linker_path.get().string();
        out["linker_version"] = linker_version.get();
        return out;
    }
};

}  // namespace deep_jit::ascend

namespace deep_jit {

/// Backend that compiles Ascend C with bisheng, links with ld.lld, and loads and launches through
/// ACL.
class Ascend {
public:
    using Device = ascend::Device;
    using Kernel = ascend::Kernel;
    using CompilerOptions = ascend::CompilerOptions;
    using LaunchOptions = ascend::LaunchOptions;
    using Toolkit = ascend::Toolkit;

    static constexpr const char* kName = "ascend";

    ascend::LazyToolkit toolkit;
    ascend::CompilerInfo compiler_info;

    /// Throws ConfigError for an ASCEND_LAUNCH_BLOCKING that is no truth value.
    Ascend(const Config& config, const Env& env, const std::vector<std::filesystem::path>& roots,
           Device& device)
        : config_(&config), device_(&device), blocking_(is_blocking()) {
        using std::filesystem::path;
        toolkit.found = LazyValue<Toolkit>([env] { return find_ascend_toolkit(env); });
        const auto found = toolkit.found;
        toolkit.root = LazyValue<path>([found] { return found->root; });
        toolkit.bisheng = LazyValue<path>([found] { return found->bisheng; });
        toolkit.ld_lld = LazyValue<path>([found] { return found->ld_lld; });
        const auto version_of = [roots](const path& tool) {
            return remember_identity(roots, tool, "--version",
                                     [&] { return ascend::ask_version(tool); });
        };
        compiler_info.path = toolkit.bisheng;
        compiler_info.version =
            LazyValue<std::string>([found, version_of] { return version_of(found->bisheng); });
        compiler_info.linker_path = toolkit.ld_lld;
        compiler_info.linker_version =
            LazyValue<std::string>([found, version_of] { return version_of(found->ld_lld); });
        compiler_info.header_versions =
            LazyValue<std::string>([found] { return ascend::header_versions(*found); });
    }

    static EntryFiles entry_files() { return {"kernel.asc", "kernel.o"}; }

    /// See ascend::find_ascend_toolkit.
    static Toolkit find_ascend_toolkit(const Env& env) { return ascend::find_ascend_toolkit(env); }

    std::string compiler_hash() const { return compiler_info.get_hash(); }

    /// The options with the architecture of the device, if they have none, and without `dav-`.
    /// Throws ToolchainError when there is no device to ask, or an unknown one; ConfigError for an
    /// architecture that cannot be one.
    CompilerOptions resolve(const CompilerOptions& options) const {
        auto out = options;
        if (out.arch) {
            out.arch = ascend::normalize_arch(*out.arch, "CompilerOptions::arch");
            return out;
        }
        try {
            out.arch = device_->get_npu_arch();
        } catch (const ToolchainError& error) {
            detail::throw_error<ToolchainError>(
                "There is no device to compile for: {}. Set {}_JIT_ARCH or CompilerOptions::arch, "
                "to dav-2201 for example",
                error.what(), config_->env_prefix);
        }
        return out;
    }

    std::vector<std::string> key_flags(const CompilerOptions& options) const {
        return options.get_flags();
    }
    std::string key_hook(const CompilerOptions& /*options*/) const { return {}; }

    json build(const BuildRequest<CompilerOptions>& request) const {
        const auto commands = ascend::Compilation(request, *toolkit.found).run();
        json out = json::object();
        out["command"] = commands.compile;
        out["linker_command"] = commands.link;
        out["compiler_info"] = compiler_info.to_json();
        return out;
    }

    static std::shared_ptr<Kernel> load(const LoadRequest& request, const Env& env) {
        const auto start = std::chrono::steady_clock::now();
        auto kernel =
            Kernel::load(request.artifact, request.key, env.get<bool>("JIT_CHECK_ARGUMENTS", true));
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
            throw LoadError(str::format("Cannot load kernel {}: missing device object {}: {}", key,
                                        path, detail::errno_text(error)),
                            {{}, {}, {}, key});
        return load(LoadRequest{bytes, directory, key}, env);
    }

    void launch(const Kernel& kernel, const LaunchOptions& defaults, const LaunchOptions& overrides,
                const Arguments& arguments) const {
        ascend::Launch(kernel, defaults, overrides, arguments).run(blocking_, [this] {
            return device_->get_index();
        });
    }

private:
    /// torch_npu's variable, which ACL does not look at.
    static bool is_blocking() {
        constexpr const char* kName = "ASCEND_LAUNCH_BLOCKING";
        return !get_env<std::string>(kName, std::string()).empty() && get_env<bool>(kName, false);
    }

    const Config* config_;
    Device* device_;
    bool blocking_;
};

static_assert(Backend<Ascend>);

}  // namespace deep_jit
