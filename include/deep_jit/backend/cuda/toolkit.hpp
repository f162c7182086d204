// Finds NVCC. Nothing is started for it: files are looked at.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/log.hpp>

namespace deep_jit::cuda {

/// A CUDA toolkit, as far as this library uses it. Paths are absolute.
struct Toolkit {
    std::filesystem::path nvcc;
    std::optional<std::filesystem::path> cuobjdump;  ///< needed for SASS dumps only
    std::filesystem::path root;
    /// What NVCC does not find by itself: wheels of one component each keep headers apart.
    std::vector<std::filesystem::path> include_dirs;
};

namespace detail {

/// A program in PATH, or an empty path. Relative elements of PATH are skipped.
inline std::filesystem::path find_in_path(const std::string& program) {
    for (const auto& directory : str::split(get_env<std::string>("PATH", std::string()), ':')) {
        const auto candidate = std::filesystem::path(directory) / program;
        if (candidate.is_absolute() && is_executable(candidate))
            return candidate;
    }
    return {};
}

inline bool is_dir(const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::is_directory(path, error);
}

/// Directories in which installed Python packages may lie: of PYTHONPATH, the active virtual or
/// conda environment, and the interpreter that runs this process.
inline std::vector<std::filesystem::path> python_package_dirs() {
    std::vector<std::filesystem::path> out, prefixes;
    for (const auto& entry : str::split(get_env<std::string>("PYTHONPATH", std::string()), ':'))
        if (std::filesystem::path(entry).is_absolute())
            out.emplace_back(entry);
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
        if (const auto prefix = get_env<std::string>(name, std::string()); !prefix.empty())
            prefixes.emplace_back(prefix);
    // A virtual environment's interpreter is a link; how it was called tells where it lies.
    std::string command_line;
    if (try_read("/proc/self/cmdline", command_line) == 0) {
        const std::filesystem::path program(command_line.c_str());
        const auto prefix = program.parent_path().parent_path();
        if (program.is_absolute() && is_file(prefix / "pyvenv.cfg"))
            prefixes.push_back(prefix);
    }
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!error && self.filename().string().starts_with("python"))
        prefixes.push_back(self.parent_path().parent_path());
    for (const auto& prefix : prefixes) {
        std::filesystem::directory_iterator it(prefix / "lib", error), end;
        for (; !error && it != end; it.increment(error)) {
            if (!it->path().filename().string().starts_with("python3"))
                continue;
            for (const char* name : {"site-packages", "dist-packages"})
                if (is_dir(it->path() / name))
                    out.push_back(it->path() / name);
        }
    }
    return out;
}

/// One search: where it looked is kept for messages.
class ToolkitSearch {
public:
    explicit ToolkitSearch(const Env& env) : env_(env) {}

    Toolkit run() {
        auto found = find();
        auto override_nvcc = env_.get<std::string>("JIT_NVCC_COMPILER", std::string());
        if (!override_nvcc.empty()) {
            std::filesystem::path nvcc = override_nvcc;
            if (override_nvcc.find('/') == std::string::npos)
                nvcc = find_in_path(override_nvcc);
            if (nvcc.empty() || !is_executable(nvcc))
                deep_jit::detail::throw_error<ToolchainError>(
                    "The NVCC compiler is not executable: {} is '{}'",
                    env_.name_of("JIT_NVCC_COMPILER"), override_nvcc);
            nvcc = std::filesystem::absolute(nvcc);
            note(env_.name_of("JIT_NVCC_COMPILER"), "uses " + nvcc.string());
            if (!found)
                found = of_compiler(nvcc);
            found->nvcc = std::move(nvcc);
        }
        if (!found)
            throw ToolchainError(
                "There is no CUDA toolkit with bin/nvcc. Install one (12.9 or newer) and set "
                "CUDA_HOME to it, or install the Python package nvidia-cuda-nvcc. Looked at:" +
                trace_);
        for (const auto& directory : {found->root / "bin", found->nvcc.parent_path(),
                                      found->root.parent_path() / "cuda_cuobjdump" / "bin"})
            if (!found->cuobjdump && is_executable(directory / "cuobjdump"))
                found->cuobjdump = directory / "cuobjdump";
        note("cuobjdump", found->cuobjdump ? found->cuobjdump->string() : "not found");
        return *std::move(found);
    }

    /// One line for each place that was looked at, each with a line break in front.
    const std::string& trace() const { return trace_; }

private:
    std::optional<Toolkit> find() {
        for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
            const auto root = get_env<std::string>(name, std::string());
            if (!root.empty())
                return of_variable(name, root);
            note(name, "not set");
        }
        if (const auto nvcc = find_in_path("nvcc"); !nvcc.empty()) {
            auto found = of_compiler(nvcc);
            note("nvcc in PATH", found.nvcc.string());
            return found;
        }
        note("nvcc in PATH", "not found");
        if (auto found = try_root("the default place", "/usr/local/cuda"))
            return found;
        for (const auto& directory : python_package_dirs())
            for (const char* layout : {"cu13", "cuda_nvcc"})
                if (auto found = try_root("Python packages", directory / "nvidia" / layout))
                    return found;
        const auto conda = get_env<std::string>("CONDA_PREFIX", std::string());
        return conda.empty() ? std::nullopt : try_root("CONDA_PREFIX", conda);
    }

    /// A value that was given counts, or is an error; it is never passed over.
    Toolkit of_variable(const std::string& name, const std::string& value) {
        const auto root = std::filesystem::absolute(value);
        if (!is_dir(root))
            deep_jit::detail::throw_error<ToolchainError>(
                "{} is '{}', which is not a directory. Set it to a CUDA toolkit, or unset it", name,
                value);
        const bool compiler_given =
            !env_.get<std::string>("JIT_NVCC_COMPILER", std::string()).empty();
        if (!compiler_given && !is_executable(root / "bin" / "nvcc"))
            deep_jit::detail::throw_error<ToolchainError>(
                "{} is '{}', but the NVCC compiler is not executable there: {}. Set it to a CUDA "
                "toolkit, or unset it",
                name, value, root / "bin" / "nvcc");
        note(name, "uses " + root.string());
        return {root / "bin" / "nvcc", std::nullopt, root, {}};
    }

    std::optional<Toolkit> try_root(const std::string& what, const std::filesystem::path& root) {
        if (!is_executable(root / "bin" / "nvcc")) {
            note(what, "no bin/nvcc in " + root.string());
            return std::nullopt;
        }
        note(what, "uses " + root.string());
        Toolkit out{root / "bin" / "nvcc", std::nullopt, root, {}};
        if (root.filename() == "cuda_nvcc")
            for (const char* part : {"cuda_runtime", "cuda_cccl"})
                if (is_dir(root.parent_path() / part / "include"))
                    out.include_dirs.push_back(root.parent_path() / part / "include");
        return out;
    }

    /// The toolkit around a compiler. NVCC looks for its parts beside the path it was called by,
    /// so a link from elsewhere (/usr/local/bin/nvcc) is followed to where the parts are.
    static Toolkit of_compiler(const std::filesystem::path& nvcc) {
        const auto complete = [](const std::filesystem::path& path) {
            return is_file(path.parent_path() / "nvcc.profile") ||
                   is_dir(path.parent_path().parent_path() / "nvvm");
        };
        std::error_code error;
        const auto real = std::filesystem::canonical(nvcc, error);
        const auto& chosen = !complete(nvcc) && !error && complete(real) ? real : nvcc;
        return {chosen, std::nullopt, chosen.parent_path().parent_path(), {}};
    }

    void note(const std::string& what, const std::string& result) {
        trace_ += "\n  " + what + ": " + result;
    }

    const Env& env_;
    std::string trace_;
};

}  // namespace detail

/// The toolkit of, in this order: CUDA_HOME, CUDA_PATH, `nvcc` in PATH, /usr/local/cuda, Python
/// packages (nvidia/cu13, nvidia/cuda_nvcc), CONDA_PREFIX; with the compiler that
/// `JIT_NVCC_COMPILER` names, if any. Empty variables are unset ones. Throws ToolchainError when
/// there is none, or a variable names something else. `JIT_DEBUG` prints where it looked.
inline Toolkit find_cuda_toolkit(const Env& env) {
    detail::ToolkitSearch search(env);
    auto out = search.run();
    if (env.get<bool>("JIT_DEBUG", false))
        log::write(env, "CUDA toolkit search:" + search.trace());
    return out;
}

}  // namespace deep_jit::cuda
