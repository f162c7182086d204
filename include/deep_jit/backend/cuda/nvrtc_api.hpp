// NVRTC, opened at run time. Its functions are declared here, so that nvrtc.h is not needed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include <deep_jit/utils/dynamic_library.hpp>
#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>

namespace deep_jit::cuda::nvrtc {

/// NVRTC's result codes that are treated apart; it has more.
enum Result : int {
    kSuccess = 0,
    kOutOfMemory = 1,
    kInvalidOption = 5,
    kCompilation = 6,
    kBuiltinOperationFailure = 7,
};

using Program = struct OpaqueProgram*;

/// The functions of one library. It is never closed: others may use it as well, and what it keeps
/// for threads would be left without code.
class Api {
public:
    /// Opens a library, once a process for each path. Throws ToolchainError when that fails, or
    /// when it is older than 12.4.
    static const Api& open(const std::filesystem::path& path) {
        static std::mutex mutex;
        // Not destroyed: threads may still compile while the process ends.
        static auto& opened = *new std::map<std::string, std::unique_ptr<const Api>>;
        const std::lock_guard lock(mutex);
        auto& api = opened[path.string()];
        if (api == nullptr)
            api.reset(new Api(path));
        return *api;
    }

    int major = 0, minor = 0;

    /// 1209 for 12.9.
    int version() const { return major * 100 + minor; }

    const char* (*get_error_string)(int) = nullptr;
    int (*create_program)(Program*, const char* source, const char* name, int num_headers,
                          const char* const* headers, const char* const* include_names) = nullptr;
    int (*destroy_program)(Program*) = nullptr;
    int (*compile_program)(Program, int num_options, const char* const* options) = nullptr;
    int (*get_log_size)(Program, std::size_t*) = nullptr;
    int (*get_log)(Program, char*) = nullptr;
    int (*get_cubin_size)(Program, std::size_t*) = nullptr;
    int (*get_cubin)(Program, char*) = nullptr;
    int (*get_ptx_size)(Program, std::size_t*) = nullptr;
    int (*get_ptx)(Program, char*) = nullptr;
    /// Null before 12.8, when there were no precompiled headers.
    int (*set_pch_heap_size)(std::size_t) = nullptr;

    /// Directory of the builtins library, which NVRTC opens when it first compiles.
    static std::filesystem::path find_builtins(const std::filesystem::path& library) {
        const auto directory = std::filesystem::weakly_canonical(library).parent_path();
        std::error_code error;
        std::filesystem::directory_iterator it(directory, error), end;
        for (; !error && it != end; it.increment(error)) {
            const auto name = it->path().filename().string();
            if (name.starts_with("libnvrtc-builtins.so."))
                return it->path();
        }
        return {};
    }

private:
    explicit Api(const std::filesystem::path& path) {
        // Else it is looked for by its name only, which fails where the directory is not in the
        // loader's path.
        if (const auto builtins = find_builtins(path); !builtins.empty())
            DynamicLibrary::try_open(builtins.string()).release();
        std::string reason;
        auto library = DynamicLibrary::try_open(path.string(), RTLD_NOW | RTLD_LOCAL, &reason);
        if (!library)
            deep_jit::detail::throw_error<ToolchainError>("NVRTC cannot be opened: {}: {}", path,
                                                          reason);
        const auto find = [&](auto& function, const char* name, bool required = true) {
            using Function = std::remove_pointer_t<std::decay_t<decltype(function)>>;
            function = library.find<Function>(name);
            if (function == nullptr && required)
                deep_jit::detail::throw_error<ToolchainError>(
                    "{} is no NVRTC, or one that is too old: it has no {}", path, name);
        };
        int (*get_version)(int*, int*) = nullptr;
        find(get_version, "nvrtcVersion");
        get_version(&major, &minor);
        if (version() < 1204)
            deep_jit::detail::throw_error<ToolchainError>(
                "NVRTC version must be at least 12.4, but {} is {}.{}", path, major, minor);
        find(get_error_string, "nvrtcGetErrorString");
        find(create_program, "nvrtcCreateProgram");
        find(destroy_program, "nvrtcDestroyProgram");
        find(compile_program, "nvrtcCompileProgram");
        find(get_log_size, "nvrtcGetProgramLogSize");
        find(get_log, "nvrtcGetProgramLog");
        find(get_cubin_size, "nvrtcGetCUBINSize");
        find(get_cubin, "nvrtcGetCUBIN");
        find(get_ptx_size, "nvrtcGetPTXSize");
        find(get_ptx, "nvrtcGetPTX");
        find(set_pch_heap_size, "nvrtcSetPCHHeapSize", false);
        // By default too small for CUTLASS's headers. It cannot be changed once there is a
        // precompiled header, and is taken from the system only when the first one is made.
        if (set_pch_heap_size != nullptr)
            set_pch_heap_size(std::size_t{1} << 30);
        library.release();
    }
};

/// One program: created, compiled once, destroyed.
class Compilation {
public:
    explicit Compilation(const Api& api) : api_(api) {}
    Compilation(const Compilation&) = delete;
    Compilation& operator=(const Compilation&) = delete;
    ~Compilation() {
        if (program_ != nullptr)
            api_.destroy_program(&program_);
    }

    /// Returns NVRTC's result. The strings need to live no longer than the call.
    template <typename Headers>
    int run(const std::string& source, const std::string& name, const Headers& headers,
            const std::vector<std::string>& options) {
        std::vector<const char*> texts, names, arguments;
        for (const auto& header : headers) {
            names.push_back(header.name.c_str());
            texts.push_back(header.text.c_str());
        }
        for (const auto& option : options) arguments.push_back(option.c_str());
        const int result =
            api_.create_program(&program_, source.c_str(), name.c_str(),
                                static_cast<int>(texts.size()), texts.data(), names.data());
        if (result != kSuccess)
            return result;
        return api_.compile_program(program_, static_cast<int>(arguments.size()), arguments.data());
    }

    std::string log() const { return take(api_.get_log_size, api_.get_log, 1); }
    std::string cubin() const { return take(api_.get_cubin_size, api_.get_cubin, 0); }
    std::string ptx() const { return take(api_.get_ptx_size, api_.get_ptx, 1); }

private:
    /// Without the `terminators` bytes at the end; empty when there is none.
    std::string take(int (*get_size)(Program, std::size_t*), int (*get)(Program, char*),
                     std::size_t terminators) const {
        std::size_t size = 0;
        if (program_ == nullptr || get_size(program_, &size) != kSuccess || size <= terminators)
            return {};
        std::string out(size, '\0');
        if (get(program_, out.data()) != kSuccess)
            return {};
        out.resize(size - terminators);
        return out;
    }

    const Api& api_;
    Program program_ = nullptr;
};

}  // namespace deep_jit::cuda::nvrtc
