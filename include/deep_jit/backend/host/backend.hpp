// The Host backend: kernels in C++20 with CUDA's spellings, run by the CPU's threads. Include this
// header and use `deep_jit::Runtime<deep_jit::Host>`.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <deep_jit/backend/host/compile.hpp>
#include <deep_jit/backend/host/device.hpp>
#include <deep_jit/backend/host/kernel.hpp>
#include <deep_jit/backend/host/options.hpp>
#include <deep_jit/backend/host/prelude.hpp>
#include <deep_jit/backend/host/stream.hpp>
#include <deep_jit/backend/host/toolkit.hpp>
#include <deep_jit/runtime/runtime.hpp>

namespace deep_jit {

class Host {
public:
    using Device = host::Device;
    using Kernel = host::Kernel;
    using CompilerOptions = host::CompilerOptions;
    using LaunchOptions = host::LaunchOptions;

    static constexpr const char* kName = "host";

    host::CompilerInfo compiler_info;  ///< looked for when first read

    Host(const Config&, const Env& env, const std::vector<std::filesystem::path>& roots, Device&)
        : compiler_info(env, roots) {}

    static EntryFiles entry_files() { return {"kernel.cpp", "kernel.so"}; }

    /// The compiler's version and the prelude, which is compiled into every kernel.
    std::string compiler_hash() const {
        return hash::FNV1a()
            .update(compiler_info.version.get())
            .update(host::prelude_text())
            .get_hex_digest();
    }

    CompilerOptions resolve(const CompilerOptions& options) const { return options; }
    std::vector<std::string> key_flags(const CompilerOptions& options) const {
        return options.get_flags();
    }
    std::string key_hook(const CompilerOptions&) const { return {}; }

    json build(const BuildRequest<CompilerOptions>& request) const {
        json out = json::object();
        out["command"] = host::Compilation(request, compiler_info).run();
        out["compiler_info"] = compiler_info.to_json();
        return out;
    }

    static std::shared_ptr<Kernel> load(const LoadRequest& request, const Env& env) {
        const auto start = std::chrono::steady_clock::now();
        auto kernel = std::make_shared<Kernel>(request);
        if (env.get<bool>("JIT_PRINT_LOAD_TIME", false) || env.get<bool>("JIT_DEBUG", false)) {
            const std::chrono::duration<double, std::milli> taken =
                std::chrono::steady_clock::now() - start;
            log::write(env, str::format("Load time ({}): {} ms", request.key, taken.count()));
        }
        return kernel;
    }

    /// Loads the artifact of an entry's directory.
    static std::shared_ptr<Kernel> load(const std::filesystem::path& directory, const Env& env) {
        std::string artifact;
        const auto path = directory / entry_files().artifact_name;
        if (const int error = try_read(path, artifact))
            detail::throw_error<LoadError>("Cannot read the kernel library {}: {}", path,
                                           detail::errno_text(error));
        return load(LoadRequest{artifact, directory, directory.filename().string()}, env);
    }

    void launch(const Kernel& kernel, const LaunchOptions& defaults, const LaunchOptions& overrides,
                const Arguments& arguments) const {
        kernel.launch(defaults, overrides, arguments);
    }
};

static_assert(Backend<Host>);

}  // namespace deep_jit
