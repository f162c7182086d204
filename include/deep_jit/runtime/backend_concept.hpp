// What a backend must offer for Runtime to work with it. A new backend is one folder that
// provides one such type; Runtime knows nothing else of it.
#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <deep_jit/cache/disk.hpp>
#include <deep_jit/runtime/arguments.hpp>
#include <deep_jit/runtime/config.hpp>
#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/json.hpp>

namespace deep_jit {

/// One compilation, as Runtime asks a backend for it.
template <typename CompilerOptions>
struct BuildRequest {
    /// Private directory with the kernel source in it, under `Backend::entry_files().source_name`.
    /// The backend adds the artifact and any dumps.
    std::filesystem::path directory;
    /// Where the directory will be published; for paths that debuggers will look up.
    std::filesystem::path published;
    const Config& config;
    const Env& env;
    /// Effective options: defaults, overrides, and what `resolve` filled in.
    const CompilerOptions& options;
    std::string key;  ///< `<tag>.<digest>`, for messages
};

/// One artifact to load.
struct LoadRequest {
    std::string_view artifact;        ///< the checked bytes; all that is needed
    std::filesystem::path directory;  ///< where they came from; may be invisible to this machine
    std::string key;                  ///< `<tag>.<digest>`, for messages
};

template <typename B>
concept Backend = requires(B& backend, const B& constant, const Config& config, const Env& env,
                           const std::vector<std::filesystem::path>& roots,
                           typename B::Device& device, const typename B::CompilerOptions& options,
                           const BuildRequest<typename B::CompilerOptions>& build,
                           const LoadRequest& load, const typename B::Kernel& kernel,
                           const typename B::LaunchOptions& launch_options,
                           const Arguments& arguments) {
    /// Default-constructible; asks the driver nothing before its first query.
    requires std::default_initializable<typename B::Device>;

    /// `Backend(config, env, roots, device)`: looks for nothing, starts nothing. `roots` are the
    /// cache roots, where a backend may remember what its compiler said of its version.
    {B(config, env, roots, device)};

    /// Names of the kernel source and of the artifact in an entry.
    { B::entry_files() } -> std::convertible_to<EntryFiles>;

    /// Options from the environment, and the field list that merging and hashing go by.
    {
        B::CompilerOptions::default_options(env, device)
        } -> std::same_as<typename B::CompilerOptions>;
    { B::LaunchOptions::default_options(env) } -> std::same_as<typename B::LaunchOptions>;
    { options.override_with(options) } -> std::same_as<typename B::CompilerOptions>;
    { options.to_json() } -> std::convertible_to<json>;
    B::CompilerOptions::fields();

    /// Digest component 2: stands for the compiler's identity. May look for the compiler.
    { backend.compiler_hash() } -> std::convertible_to<std::string>;
    /// The options with what only the device knows filled in, such as the architecture.
    { backend.resolve(options) } -> std::same_as<typename B::CompilerOptions>;
    /// Digest component 3: the effective flags, without include directories.
    { backend.key_flags(options) } -> std::convertible_to<std::vector<std::string>>;
    /// Digest component 4: path and content of a post-compilation hook; empty without one.
    { backend.key_hook(options) } -> std::convertible_to<std::string>;

    /// Compiles. Returns what `meta.json` says beside config and options: the command and the
    /// compiler. Throws ToolchainError or CompileError.
    { backend.build(build) } -> std::convertible_to<json>;
    /// Loads from bytes, by `LoadRequest`, or from an entry's directory. Throws LoadError unless
    /// there is exactly one kernel.
    { B::load(load, env) } -> std::same_as<std::shared_ptr<typename B::Kernel>>;
    { B::load(std::filesystem::path(), env) } -> std::same_as<std::shared_ptr<typename B::Kernel>>;

    /// Launches with `defaults` overridden by `overrides`; takes what it needs of `arguments`
    /// before it returns. Throws LaunchError.
    {constant.launch(kernel, launch_options, launch_options, arguments)};
};

}  // namespace deep_jit
