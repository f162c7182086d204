// Finds CANN's compiler. Nothing is started for it: files are looked at.
#pragma once

#include <sys/utsname.h>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/log.hpp>

namespace deep_jit::ascend {

/// A CANN toolkit, as far as this library uses it. Paths are absolute.
struct Toolkit {
    std::filesystem::path root;
    std::filesystem::path bisheng;
    std::filesystem::path ld_lld;
    /// What bisheng does not find by itself: `adv_api`.
    std::vector<std::filesystem::path> include_dirs;
};

namespace detail {

inline bool is_dir(const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::is_directory(path, error);
}

/// "aarch64-linux" on such a machine.
inline std::string machine_dir() {
    utsname name{};
    return ::uname(&name) == 0 ? std::string(name.machine) + "-linux" : "aarch64-linux";
}

/// One search: where it looked is kept for messages.
class ToolkitSearch {
public:
    Toolkit run() {
        for (const char* name : {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"}) {
            const auto value = get_env<std::string>(name, std::string());
            if (!value.empty())
                return of_variable(name, value);
            note(name, "not set");
        }
        for (const char* root :
             {"/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann"}) {
            std::string problem;
            if (auto found = at(root, problem)) {
                note(root, "used");
                return *std::move(found);
            }
            note(root, problem);
        }
        throw ToolchainError(
            "There is no CANN toolkit with bin/bisheng, bin/ld.lld and the adv_api headers. "
            "Install "
            "one (8.5.0 or newer) and source its set_env.sh, or set ASCEND_HOME_PATH to it. Looked "
            "at:" +
            trace_);
    }

    /// One line for each place that was looked at, each with a line break in front.
    const std::string& trace() const { return trace_; }

private:
    /// A value that was given counts, or is an error; it is never passed over.
    Toolkit of_variable(const std::string& name, const std::string& value) {
        const auto root = normalize_path(value);
        std::string problem;
        auto found = at(root, problem);
        if (!found)
            deep_jit::detail::throw_error<ToolchainError>(
                "{} is '{}', but {}. Set it to a CANN toolkit (8.5.0 or newer), or unset it", name,
                value, problem);
        note(name, "uses " + root.string());
        return *std::move(found);
    }

    static std::optional<Toolkit> at(const std::filesystem::path& root, std::string& problem) {
        if (!is_dir(root)) {
            problem = "there is no directory " + root.string();
            return std::nullopt;
        }
        const std::string machine = machine_dir();
        const auto find_tool = [&](const char* name) -> std::filesystem::path {
            for (const auto& directory :
                 {std::filesystem::path("bin"), std::filesystem::path(machine) / "bin",
                  std::filesystem::path("tools/bisheng_compiler/bin"),
                  std::filesystem::path(machine) / "ccec_compiler/bin",
                  std::filesystem::path("compiler/ccec_compiler/bin")})
                if (is_executable(root / directory / name))
                    return root / directory / name;
            problem += problem.empty() ? "" : ", and ";
            problem += str::format("there is no executable bin/{} in {}", name, root);
            return {};
        };
        Toolkit out;
        out.root = root;
        out.bisheng = find_tool("bisheng");
        out.ld_lld = find_tool("ld.lld");
        if (auto headers = find_adv_api(root, machine); !headers.empty()) {
            out.include_dirs.push_back(std::move(headers));
        } else {
            problem += problem.empty() ? "" : ", and ";
            problem += str::format(
                "there are no headers {}/asc/include/adv_api in {} (the package asc-devkit has "
                "them)",
                machine, root);
        }
        return problem.empty() ? std::optional(std::move(out)) : std::nullopt;
    }

    static std::filesystem::path find_adv_api(const std::filesystem::path& root,
                                              const std::string& machine) {
        for (const auto& above : {machine, std::string(), std::string("compiler"),
                                  std::string("aarch64-linux"), std::string("x86_64-linux")}) {
            const auto path = root / above / "asc" / "include" / "adv_api";
            if (is_dir(path))
                return path;
        }
        return {};
    }

    void note(const std::string& what, const std::string& result) {
        trace_ += "\n  " + what + ": " + result;
    }

    std::string trace_;
};

}  // namespace detail

/// The toolkit of, in this order: ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME,
/// /usr/local/Ascend/ascend-toolkit/latest, /usr/local/Ascend/cann. Empty variables are unset ones.
/// Throws ToolchainError when there is none, or a variable names something else. `JIT_DEBUG` prints
/// where it looked.
inline Toolkit find_ascend_toolkit(const Env& env) {
    detail::ToolkitSearch search;
    auto out = search.run();
    if (env.get<bool>("JIT_DEBUG", false))
        log::write(env, "CANN toolkit search:" + search.trace());
    return out;
}

/// Versions of the headers that come with the toolkit but not with the compiler: the text of the
/// files that name them, as far as there are any.
inline std::string header_versions(const Toolkit& toolkit) {
    std::string out;
    for (const char* name : {"asc_devkit_version.h", "cann_version.h"}) {
        std::string text;
        if (try_read(toolkit.root / "include" / "version" / name, text) == 0)
            out += text;
    }
    return out;
}

}  // namespace deep_jit::ascend
