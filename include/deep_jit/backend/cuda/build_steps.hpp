// What is done around a compiler run, whichever compiler it is: the log, the checks, the hook, the
// SASS dump.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/backend/cuda/cubin.hpp>
#include <deep_jit/backend/cuda/options.hpp>
#include <deep_jit/backend/cuda/ptxas_log.hpp>
#include <deep_jit/backend/cuda/toolkit.hpp>
#include <deep_jit/runtime/backend_concept.hpp>
#include <deep_jit/utils/command.hpp>
#include <deep_jit/utils/log.hpp>

namespace deep_jit::cuda {

/// For one compilation of one kernel; `compiler` is its name in messages.
class BuildSteps {
public:
    BuildSteps(const BuildRequest<CompilerOptions>& request, std::string compiler,
               std::optional<std::filesystem::path> cuobjdump)
        : request_(request),
          options_(request.options),
          compiler_(std::move(compiler)),
          cuobjdump_(std::move(cuobjdump)),
          cubin_(request.directory / "kernel.cubin") {}

    /// To be called before the long part: says so when SASS is asked for and cannot be dumped.
    void check_dumps() {
        if (options_.dump_sass.value_or(false) && !cuobjdump_)
            report_missing_cuobjdump();
    }

    bool wants_checks() const {
        return options_.check_no_spills.value_or(false) ||
               options_.check_no_local_memory.value_or(false);
    }

    void announce(const std::string& command) const {
        const auto& env = request_.env;
        if (env.get<bool>("JIT_DEBUG", false) || env.get<bool>("JIT_PRINT_COMPILER_COMMAND", false))
            log::write(env, "Running command: " + command);
    }

    /// Keeps the log of a run that went well, beside the artifact, so that it is still there when
    /// this kernel comes from the cache; prints it when asked for; checks what it says.
    void take_log(const std::string& command, const std::string& log) const {
        if (!log.empty())
            write_file_sync(request_.directory / "kernel.log", log);
        if (options_.ptxas_verbose.value_or(false) && !log.empty())
            log::write(request_.env, log);
        check_usage(command, log);
    }

    /// Everything after the CUBIN was made.
    void finish() const {
        check_cubin(compiler_);
        if (options_.post_hook) {
            run_post_hook();
            check_cubin("The post-compilation hook " + *options_.post_hook);
        }
        if (options_.dump_sass.value_or(false) && cuobjdump_)
            dump_sass();
    }

    /// Runs a command; returns its output. Throws CompileError when it fails.
    std::string call(const std::vector<std::string>& arguments,
                     const std::filesystem::path& directory, const std::string& who) const {
        const auto text = command_text(arguments);
        announce(text);
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

private:
    void check_usage(const std::string& command, const std::string& log) const {
        if (!wants_checks())
            return;
        std::string found;
        for (const auto& [function, usage] : parse_ptxas_log(log)) {
            if (options_.check_no_spills.value_or(false) && usage.spills())
                found += str::format(
                    "\nregister spills in function '{}': {} bytes stored, {} bytes loaded "
                    "(check_no_spills)",
                    function, usage.spill_stores, usage.spill_loads);
            if (options_.check_no_local_memory.value_or(false) && usage.stack > 0)
                found += str::format(
                    "\nlocal memory usage in function '{}': {} bytes of stack frame "
                    "(check_no_local_memory)",
                    function, usage.stack);
        }
        if (!found.empty())
            throw CompileError(
                str::format("Kernel {} does not pass the checks that were asked for:{}\n"
                            "Command: {}\n{}",
                            request_.key, found, command, log),
                {command, log, {}, request_.key});
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

    /// A warning when JIT_DEBUG alone asked for SASS, else an error.
    void report_missing_cuobjdump() const {
        const std::string message =
            "SASS cannot be dumped: there is no executable cuobjdump beside " + compiler_ +
            ". It comes with the CUDA toolkit, or with the Python package nvidia-cuda-cuobjdump";
        const auto& env = request_.env;
        if (!env.get<bool>("JIT_DEBUG", false) || env.get<bool>("JIT_DUMP_SASS", false) ||
            env.get<bool>("JIT_DUMP_ASM", false))
            throw ToolchainError(message);
        log::warn_once(env, "no cuobjdump", message);
    }

    void dump_sass() const {
        // cuobjdump starts nvdisasm, which it finds beside itself or in PATH.
        const auto sass = call({cuobjdump_->string(), "--dump-sass", "kernel.cubin"},
                               request_.directory, "cuobjdump");
        write_file_sync(request_.directory / "kernel.sass", sass);
    }

    const BuildRequest<CompilerOptions>& request_;
    const CompilerOptions& options_;
    std::string compiler_;
    std::optional<std::filesystem::path> cuobjdump_;
    std::filesystem::path cubin_;
};

}  // namespace deep_jit::cuda
