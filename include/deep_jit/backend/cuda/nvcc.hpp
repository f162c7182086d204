// Compiles a kernel with NVCC: the command, the checks, the dumps, the hook.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/backend/cuda/cubin.hpp>
#include <deep_jit/backend/cuda/nvcc_command.hpp>
#include <deep_jit/backend/cuda/options.hpp>
#include <deep_jit/backend/cuda/ptxas_log.hpp>
#include <deep_jit/backend/cuda/toolkit.hpp>
#include <deep_jit/runtime/backend_concept.hpp>
#include <deep_jit/utils/command.hpp>
#include <deep_jit/utils/log.hpp>

namespace deep_jit::cuda {

/// Complete output of `nvcc --version`. Throws ToolchainError when it cannot be had, or tells of a
/// version before 12.9.
inline std::string ask_nvcc_version(const std::filesystem::path& nvcc) {
    const std::vector<std::string> command = {nvcc.string(), "--version"};
    const auto result = call_external_command(command);
    if (!result.ok())
        deep_jit::detail::throw_error<ToolchainError>(
            "The NVCC compiler does not say its version: command failed with exit code {}.{}\n"
            "Command: {}\n{}",
            result.exit_code, exit_code_hint(result.exit_code, result.output),
            command_text(command), result.output);
    return result.output;
}

/// Throws ToolchainError unless `version`, the output of `nvcc --version`, is of 12.9 or newer.
inline void check_nvcc_version(const std::filesystem::path& nvcc, const std::string& version) {
    int parts[2] = {0, 0};
    constexpr std::string_view kBefore = "release ";
    auto at = version.find(kBefore);
    if (at != std::string::npos) {
        at += kBefore.size();
        for (int part = 0; part < 2; ++part, ++at)
            for (; at < version.size() && version[at] >= '0' && version[at] <= '9'; ++at)
                parts[part] = parts[part] * 10 + (version[at] - '0');
    }
    if (parts[0] == 0)
        deep_jit::detail::throw_error<ToolchainError>(
            "Cannot read the version of {} (NVCC version must be at least 12.9); it says:\n{}",
            nvcc, version);
    if (parts[0] < 12 || (parts[0] == 12 && parts[1] < 9))
        deep_jit::detail::throw_error<ToolchainError>(
            "NVCC version must be at least 12.9, but {} is {}.{}", nvcc, parts[0], parts[1]);
}

/// One compilation of one kernel.
class NvccBuild {
public:
    NvccBuild(const BuildRequest<CompilerOptions>& request, const Toolkit& toolkit)
        : request_(request),
          toolkit_(toolkit),
          options_(request.options),
          cubin_(request.directory / "kernel.cubin") {}

    /// Makes `kernel.cubin` and what else was asked for. Returns the command's arguments. Throws
    /// CompileError, or ToolchainError when a tool is missing.
    std::vector<std::string> run() {
        // Before the long part: a dump that cannot be made.
        const auto cuobjdump =
            options_.dump_sass.value_or(false) ? find_cuobjdump() : std::filesystem::path();
        const auto arguments = compile();
        check_cubin("NVCC");
        if (options_.post_hook) {
            run_post_hook();
            check_cubin("The post-compilation hook " + *options_.post_hook);
        }
        if (!cuobjdump.empty())
            dump_sass(cuobjdump);
        return arguments;
    }

private:
    std::vector<std::string> compile() {
        const NvccCommand command(request_, toolkit_);
        const auto log = call(command.arguments(), command.directory(), "NVCC");
        // Kept beside the artifact, so that it is still there when this kernel comes from the
        // cache.
        if (!log.empty())
            write_file_sync(request_.directory / "kernel.log", log);
        if (options_.ptxas_verbose.value_or(false) && !log.empty())
            log::write(request_.env, log);
        check_usage(command.arguments(), log);
        command.collect();
        if (options_.dump_ptx.value_or(false) && !is_file(request_.directory / "kernel.ptx")) {
            call(command.ptx_arguments(), command.directory(), "NVCC, asked for PTX,");
            command.collect();
        }
        return command.arguments();
    }

    void check_usage(const std::vector<std::string>& arguments, const std::string& log) const {
        const bool spills = options_.check_no_spills.value_or(false);
        const bool local = options_.check_no_local_memory.value_or(false);
        if (!spills && !local)
            return;
        std::string found;
        for (const auto& [function, usage] : parse_ptxas_log(log)) {
            if (spills && usage.spills())
                found += str::format(
                    "\nregister spills in function '{}': {} bytes stored, {} bytes loaded "
                    "(check_no_spills)",
                    function, usage.spill_stores, usage.spill_loads);
            if (local && usage.stack > 0)
                found += str::format(
                    "\nlocal memory usage in function '{}': {} bytes of stack frame "
                    "(check_no_local_memory)",
                    function, usage.stack);
        }
        if (!found.empty())
            throw CompileError(
                str::format("Kernel {} does not pass the checks that were asked for:{}\n"
                            "Command: {}\n{}",
                            request_.key, found, command_text(arguments), log),
                {command_text(arguments), log, {}, request_.key});
    }

    void check_cubin(const std::string& maker) const {
        std::string bytes;
        const int error = try_read(cubin_, bytes);
        if (error == 0 && is_cubin(bytes))
            return;
        throw CompileError(
            str::format("{} did not produce a valid CUBIN for kernel {}: {}", maker, request_.key,
                        error != 0 ? "cannot read " + cubin_.string() + ": " +
                                         deep_jit::detail::errno_text(error)
                                   : str::format("{} ({} bytes) is no complete ELF file of a CUDA "
                                                 "device",
                                                 cubin_, bytes.size())),
            {{}, {}, {}, request_.key});
    }

    void run_post_hook() const {
        const auto hook = request_.config.get_python_path(*options_.post_hook);
        auto python = request_.env.get<std::string>("JIT_PYTHON", std::string());
        for (const char* name : {"python", "python3"})
            if (python.empty())
                python = detail::find_in_path(name).string();
        if (python.empty())
            deep_jit::detail::throw_error<ToolchainError>(
                "The post-compilation hook {} needs Python, but there is neither python nor "
                "python3 in PATH; {}_JIT_PYTHON can name one",
                hook, request_.env.prefix());
        call({python, hook.string(), std::filesystem::absolute(cubin_).string()},
             request_.directory, "The post-compilation hook");
    }

    /// An empty path when SASS was asked for by JIT_DEBUG alone and cannot be had.
    std::filesystem::path find_cuobjdump() const {
        if (toolkit_.cuobjdump)
            return *toolkit_.cuobjdump;
        const auto message = str::format(
            "SASS cannot be dumped: there is no executable cuobjdump in {} nor beside {}. It comes "
            "with the CUDA toolkit, or with the Python package nvidia-cuda-cuobjdump",
            toolkit_.root / "bin", toolkit_.nvcc);
        const auto& env = request_.env;
        if (env.get<bool>("JIT_DEBUG", false) && !env.get<bool>("JIT_DUMP_SASS", false) &&
            !env.get<bool>("JIT_DUMP_ASM", false)) {
            log::warn_once(env, "no cuobjdump", message);
            return {};
        }
        throw ToolchainError(message);
    }

    void dump_sass(const std::filesystem::path& cuobjdump) const {
        // cuobjdump starts nvdisasm, which it finds beside itself or in PATH.
        const auto sass = call({cuobjdump.string(), "--dump-sass", "kernel.cubin"},
                               request_.directory, "cuobjdump");
        write_file_sync(request_.directory / "kernel.sass", sass);
    }

    /// Runs a command; returns its output. Throws CompileError when it fails.
    std::string call(const std::vector<std::string>& arguments,
                     const std::filesystem::path& directory, const std::string& who) const {
        const auto text = command_text(arguments);
        const auto& env = request_.env;
        if (env.get<bool>("JIT_DEBUG", false) || env.get<bool>("JIT_PRINT_COMPILER_COMMAND", false))
            log::write(env, "Running command: " + text);
        auto result = call_external_command(arguments, directory);
        if (result.ok())
            return std::move(result.output);
        throw CompileError(
            str::format("{} failed for kernel {}: command failed with exit code {}.{}\n"
                        "Command: {}\n{}",
                        who, request_.key, result.exit_code,
                        exit_code_hint(result.exit_code, result.output), text, result.output),
            {text, result.output, {}, request_.key});
    }

    const BuildRequest<CompilerOptions>& request_;
    const Toolkit& toolkit_;
    const CompilerOptions& options_;
    std::filesystem::path cubin_;
};

}  // namespace deep_jit::cuda
