// Finds the C++ compiler, and asks it who it is.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <deep_jit/cache/identity.hpp>
#include <deep_jit/utils/command.hpp>
#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/hash.hpp>
#include <deep_jit/utils/json.hpp>
#include <deep_jit/utils/lazy.hpp>

namespace deep_jit::host {

struct Compiler {
    std::filesystem::path path;
    std::string version;  ///< complete `--version` text and the target machine

    bool is_clang() const { return version.find("clang") != std::string::npos; }
};

namespace detail {

/// `name` itself when it has a slash, else the first executable of that name in PATH; empty when
/// there is none.
inline std::filesystem::path search_path(const std::string& name) {
    if (name.find('/') != std::string::npos)
        return is_executable(name) ? std::filesystem::absolute(name) : std::filesystem::path();
    const char* path = std::getenv("PATH");
    for (const auto& directory : str::split(path != nullptr ? path : "/usr/bin:/bin", ':')) {
        const auto candidate = std::filesystem::path(directory.empty() ? "." : directory) / name;
        if (!name.empty() && is_executable(candidate))
            return std::filesystem::absolute(candidate);
    }
    return {};
}

inline std::string ask_identity(const std::filesystem::path& compiler) {
    std::string out;
    for (const char* flag : {"--version", "-dumpmachine"}) {
        const auto result = call_external_command({compiler.string(), flag});
        if (!result.ok())
            throw ToolchainError(str::format("'{} {}' failed: command failed with exit code {}: {}",
                                             compiler, flag, result.exit_code, result.output));
        out += result.output;
    }
    return out;
}

}  // namespace detail

/// The first that works of `JIT_HOST_COMPILER`, `$CXX`, `c++`, `g++`, `clang++`. A
/// `JIT_HOST_COMPILER` that does not work is an error, a `$CXX` that does not is passed over;
/// empty means unset. Throws ToolchainError.
inline Compiler find_compiler(const Env& env, const std::vector<std::filesystem::path>& roots) {
    const auto identity = [&](const std::filesystem::path& path) {
        return remember_identity(roots, path, "identity",
                                 [&] { return detail::ask_identity(path); });
    };
    const auto chosen = env.get<std::string>("JIT_HOST_COMPILER", std::string());
    if (!chosen.empty()) {
        const auto path = detail::search_path(chosen);
        if (path.empty())
            deep_jit::detail::throw_error<ToolchainError>(
                "{}='{}' is no executable file and not in PATH", env.name_of("JIT_HOST_COMPILER"),
                chosen);
        return {path, identity(path)};
    }
    std::string trace;
    for (const auto& name : {get_env<std::string>("CXX", std::string()), std::string("c++"),
                             std::string("g++"), std::string("clang++")}) {
        if (name.empty())
            continue;
        const auto path = detail::search_path(name);
        if (path.empty()) {
            trace += "\n  " + name + ": not found";
            continue;
        }
        try {
            return {path, identity(path)};
        } catch (const ToolchainError& error) {
            trace += "\n  " + name + ": " + error.what();
        }
    }
    throw ToolchainError(
        "There is no C++ compiler for the Host backend. Install g++ or clang++, or set "
        "DJ_JIT_HOST_COMPILER. Tried:" +
        trace);
}

/// The compiler's path and version, looked for when first needed.
struct CompilerInfo {
    CompilerInfo() = default;
    CompilerInfo(const Env& env, const std::vector<std::filesystem::path>& roots)
        : compiler([env, roots] { return find_compiler(env, roots); }),
          path([found = compiler] { return found->path; }),
          version([found = compiler] { return found->version; }) {}

    LazyValue<Compiler> compiler;
    LazyValue<std::filesystem::path> path;
    LazyValue<std::string> version;

    std::string get_hash() const { return hash::get_hex_digest(version.get()); }

    json to_json() const {
        json out = json::object();
        out["path"] = path.get().string();
        out["version"] = version.get();
        return out;
    }
};

}  // namespace deep_jit::host
