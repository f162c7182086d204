// Finds NVRTC and the headers that belong to it. Nothing is opened but what the process or the
// loader has to be asked about.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/backend/cuda/toolkit.hpp>
#include <deep_jit/utils/dynamic_library.hpp>
#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/log.hpp>

namespace deep_jit::cuda {

/// An NVRTC library and what goes with it. Paths are absolute.
struct NvrtcLibrary {
    std::filesystem::path path;
    /// Directories of CUDA's headers and of CCCL (`cuda/std/...`); fewer where they are missing.
    std::vector<std::filesystem::path> include_dirs;
    std::optional<std::filesystem::path> cuobjdump;  ///< needed for SASS dumps only
};

namespace detail {

/// Path of a library that this process has loaded, or an empty one.
inline std::filesystem::path loaded_path(const std::string& name, int flags = RTLD_NOLOAD) {
    const auto library = DynamicLibrary::try_open(name, RTLD_LAZY | RTLD_LOCAL | flags);
    struct link_map* map = nullptr;
    if (!library || ::dlinfo(library.handle(), RTLD_DI_LINKMAP, &map) != 0 || map == nullptr)
        return {};
    const std::filesystem::path path(map->l_name);
    return path.is_absolute() ? path : std::filesystem::path();
}

/// The newest NVRTC in a directory, or an empty path.
inline std::filesystem::path nvrtc_in(const std::filesystem::path& directory) {
    std::pair<int, std::filesystem::path> best{-1, {}};
    std::error_code error;
    std::filesystem::directory_iterator it(directory, error), end;
    for (; !error && it != end; it.increment(error)) {
        const auto name = it->path().filename().string();
        constexpr std::string_view kStart = "libnvrtc.so";
        if (!name.starts_with(kStart) || !is_file(it->path()))
            continue;
        // libnvrtc.so.13, libnvrtc.so.11.8.89; the name without a number is for linkers.
        int number = 0;
        for (std::size_t i = kStart.size() + 1; i < name.size() && name[i] >= '0' && name[i] <= '9';
             ++i)
            number = number * 10 + (name[i] - '0');
        if (number > best.first || (number == best.first && it->path() < best.second))
            best = {number, it->path()};
    }
    return best.second;
}

/// One search: where it looked is kept for messages.
class NvrtcSearch {
public:
    explicit NvrtcSearch(const Env& env) : env_(env) {}

    NvrtcLibrary run() {
        const auto given = env_.get<std::string>("JIT_NVRTC_LIBRARY", std::string());
        NvrtcLibrary out;
        if (given.empty()) {
            out.path = find();
        } else {
            out.path = std::filesystem::absolute(given);
            if (!is_file(out.path))
                deep_jit::detail::throw_error<ToolchainError>(
                    "{} is '{}', which is not a file", env_.name_of("JIT_NVRTC_LIBRARY"), given);
            note(env_.name_of("JIT_NVRTC_LIBRARY"), "uses " + given);
        }
        if (out.path.empty())
            throw ToolchainError(
                "There is no NVRTC (libnvrtc.so.12 or newer). Install a CUDA toolkit and set "
                "CUDA_HOME to it, install the Python package nvidia-cuda-nvrtc, or set "
                "DJ_JIT_NVRTC_LIBRARY. Looked at:" +
                trace_);
        find_headers(out);
        find_cuobjdump(out);
        return out;
    }

    const std::string& trace() const { return trace_; }

private:
    std::filesystem::path find() {
        using std::filesystem::path;
        for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
            const auto root = get_env<std::string>(name, std::string());
            if (root.empty())
                note(name, "not set");
            else if (auto found = in_root(name, std::filesystem::absolute(root)); !found.empty())
                return found;
        }
        if (const auto nvcc = find_in_path("nvcc"); !nvcc.empty()) {
            const auto real = std::filesystem::weakly_canonical(nvcc);
            if (auto found = in_root("beside nvcc in PATH", real.parent_path().parent_path());
                !found.empty())
                return found;
        } else {
            note("nvcc in PATH", "not found");
        }
        if (auto found = in_root("the default place", "/usr/local/cuda"); !found.empty())
            return found;
        for (const auto& directory : python_package_dirs())
            if (auto found = in_packages("Python packages", directory); !found.empty())
                return found;
        if (const auto conda = get_env<std::string>("CONDA_PREFIX", std::string()); !conda.empty())
            if (auto found = in_root("CONDA_PREFIX", conda); !found.empty())
                return found;
        // PyTorch opens its NVRTC late, but the packages that it needs lie beside it.
        if (const auto torch = loaded_path("libtorch_cpu.so"); !torch.empty()) {
            const auto packages = torch.parent_path().parent_path().parent_path();
            for (auto found : {in_packages("PyTorch's packages", packages),
                               in_dir("PyTorch", torch.parent_path())})
                if (!found.empty())
                    return found;
        }
        for (const int flags : {RTLD_NOLOAD, 0})
            for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
                auto found = loaded_path(name, flags);
                note(flags != 0 ? "loaded by this process" : "the loader's path",
                     found.empty() ? std::string("no ") + name : "uses " + found.string());
                if (!found.empty())
                    return found;
            }
        return {};
    }

    std::filesystem::path in_dir(const std::string& what, const std::filesystem::path& directory) {
        auto found = nvrtc_in(directory);
        note(what,
             found.empty() ? "no libnvrtc.so in " + directory.string() : "uses " + found.string());
        return found;
    }

    std::filesystem::path in_root(const std::string& what, const std::filesystem::path& root) {
        for (const char* name : {"lib64", "lib", "targets/x86_64-linux/lib",
                                 "targets/sbsa-linux/lib", "targets/aarch64-linux/lib"})
            if (auto found = nvrtc_in(root / name); !found.empty()) {
                note(what, "uses " + found.string());
                return found;
            }
        note(what, "no libnvrtc.so in " + root.string());
        return {};
    }

    std::filesystem::path in_packages(const std::string& what,
                                      const std::filesystem::path& directory) {
        for (const char* layout : {"cu13", "cuda_nvrtc"})
            if (auto found = in_dir(what, directory / "nvidia" / layout / "lib"); !found.empty())
                return found;
        return {};
    }

    /// Headers of the same toolkit or the same set of wheels; where there are none, of whatever
    /// toolkit NVCC would come from.
    void find_headers(NvrtcLibrary& out) {
        std::vector<std::filesystem::path> candidates;
        const auto add_root = [&](const std::filesystem::path& root) {
            candidates.push_back(root / "include");
            // Wheels of one component each keep headers apart.
            for (const char* part : {"cuda_runtime", "cuda_cccl"})
                candidates.push_back(root.parent_path() / part / "include");
        };
        // <root>/lib64, <root>/lib, <root>/targets/x86_64-linux/lib: the last has its own include.
        add_root(out.path.parent_path().parent_path());
        std::error_code error;
        const auto real = std::filesystem::canonical(out.path, error);
        if (!error)
            add_root(real.parent_path().parent_path());
        for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
            if (const auto root = get_env<std::string>(name, std::string()); !root.empty())
                add_root(std::filesystem::absolute(root));
        add_root("/usr/local/cuda");
        take_first(out, candidates, "cuda_fp16.h", "CUDA's headers");
        // CUDA 13 keeps CCCL in a directory of its own, of which programs need not know.
        std::vector<std::filesystem::path> cccl;
        for (const auto& directory : candidates) {
            cccl.push_back(directory / "cccl");
            cccl.push_back(directory);
        }
        take_first(out, cccl, "cuda/std/cstdint", "CCCL's headers");
    }

    void take_first(NvrtcLibrary& out, const std::vector<std::filesystem::path>& candidates,
                    const char* file, const char* what) {
        for (const auto& directory : candidates)
            if (is_file(directory / file)) {
                note(what, directory.string());
                if (std::find(out.include_dirs.begin(), out.include_dirs.end(), directory) ==
                    out.include_dirs.end())
                    out.include_dirs.push_back(directory);
                return;
            }
        note(what, "not found");
    }

    void find_cuobjdump(NvrtcLibrary& out) {
        const auto root = out.path.parent_path().parent_path();
        std::vector<std::filesystem::path> candidates = {
            root / "bin", root.parent_path() / "cuda_cuobjdump" / "bin", "/usr/local/cuda/bin"};
        const auto found = find_in_path("cuobjdump");
        if (!found.empty())
            candidates.push_back(found.parent_path());
        for (const auto& directory : candidates)
            if (!out.cuobjdump && is_executable(directory / "cuobjdump"))
                out.cuobjdump = directory / "cuobjdump";
        note("cuobjdump", out.cuobjdump ? out.cuobjdump->string() : "not found");
    }

    void note(const std::string& what, const std::string& result) {
        trace_ += "\n  " + what + ": " + result;
    }

    const Env& env_;
    std::string trace_;
};

}  // namespace detail

/// The NVRTC that `JIT_NVRTC_LIBRARY` names, else the one of, in this order: CUDA_HOME, CUDA_PATH,
/// the toolkit of `nvcc` in PATH, /usr/local/cuda, Python packages (nvidia/cu13,
/// nvidia/cuda_nvrtc), CONDA_PREFIX, PyTorch's packages, this process, the loader's path. Throws
/// ToolchainError when there is none. `JIT_DEBUG` prints where it looked.
inline NvrtcLibrary find_nvrtc(const Env& env) {
    detail::NvrtcSearch search(env);
    auto out = search.run();
    if (env.get<bool>("JIT_DEBUG", false))
        log::write(env, "NVRTC search:" + search.trace());
    return out;
}

}  // namespace deep_jit::cuda
