// What a kernel library tells the runtime about itself.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/json.hpp>

namespace deep_jit {

/// Read once, when the runtime is made; later changes have no effect on it.
struct Config {
    /// Absolute directory of the library; relative `post_hook` paths start here.
    std::filesystem::path python_library_root;
    /// Prefix of the library's environment variables, such as "MYLIB"; not "DJ".
    std::string env_prefix;
    /// Stands for what affects generated code and is not tracked, such as "cutlass-40000".
    std::string extra_signature;
    /// Absolute directories, given to the compiler and searched for tracked includes, in order.
    std::vector<std::filesystem::path> include_dirs;
    /// Angle includes that start with one of these are tracked, such as "my_library/".
    std::vector<std::string> include_prefixes;

    /// Throws ConfigError for a relative or empty path, a bad prefix, or an empty include prefix.
    Config(std::filesystem::path root, std::string prefix, std::string signature = {},
           std::vector<std::filesystem::path> dirs = {}, std::vector<std::string> prefixes = {})
        : python_library_root(std::move(root)),
          env_prefix(std::move(prefix)),
          extra_signature(std::move(signature)),
          include_dirs(std::move(dirs)),
          include_prefixes(std::move(prefixes)) {
        check_path(python_library_root, "The library root");
        if (env_prefix.empty())
            throw ConfigError("The environment prefix must not be empty");
        if (env_prefix == kGlobalEnvPrefix)
            throw ConfigError(
                "The environment prefix DJ is reserved for global environment "
                "variables; choose the library's own");
        for (const char c : env_prefix)
            if (!str::is_word_char(c))
                detail::throw_error<ConfigError>(
                    "The environment prefix '{}' must contain only letters, digits, or underscores",
                    env_prefix);
        for (const auto& directory : include_dirs) check_path(directory, "An include directory");
        for (const auto& include_prefix : include_prefixes)
            if (include_prefix.empty())
                throw ConfigError("An include prefix must not be empty");
    }

    /// `relative` below the library root. Throws ConfigError when it is absolute, leads out of
    /// the root (also through a link), or is no file.
    std::filesystem::path get_python_path(const std::filesystem::path& relative) const {
        const auto path = python_library_root / relative;
        if (relative.empty() || relative.is_absolute())
            detail::throw_error<ConfigError>("'{}' must be a path relative to {}", relative,
                                             python_library_root);
        std::error_code error;
        const auto real = std::filesystem::canonical(path, error);
        if (error)
            detail::throw_error<ConfigError>("Cannot find {}: {}", path, error.message());
        const auto root = std::filesystem::canonical(python_library_root, error);
        const auto inside = real.lexically_relative(root);
        if (error || inside.empty() || *inside.begin() == "..")
            detail::throw_error<ConfigError>("{} lies outside the library root {}", path,
                                             python_library_root);
        if (!is_file(real))
            detail::throw_error<ConfigError>("{} is not a file", path);
        return real;
    }

    json to_json() const {
        json out = json::object();
        out["python_library_root"] = python_library_root.string();
        out["extra_signature"] = extra_signature;
        json::array_t dirs;
        for (const auto& directory : include_dirs) dirs.emplace_back(directory.string());
        out["include_dirs"] = std::move(dirs);
        out["include_prefixes"] = include_prefixes;
        return out;
    }

private:
    static void check_path(const std::filesystem::path& path, std::string_view what) {
        if (path.empty())
            detail::throw_error<ConfigError>("{} must not be empty", what);
        if (!path.is_absolute())
            detail::throw_error<ConfigError>("{} must be absolute: '{}'", what, path);
    }
};

}  // namespace deep_jit
