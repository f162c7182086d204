// Compiles a kernel with NVCC.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/backend/cuda/build_steps.hpp>
#include <deep_jit/backend/cuda/nvcc_command.hpp>
#include <deep_jit/backend/cuda/options.hpp>
#include <deep_jit/backend/cuda/toolkit.hpp>
#include <deep_jit/runtime/backend_concept.hpp>
#include <deep_jit/utils/command.hpp>

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
                // Whatever calls itself a compiler may print any number of digits.
                parts[part] = std::min(parts[part] * 10 + (version[at] - '0'), 9999);
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
        : request_(request), toolkit_(toolkit), steps_(request, "NVCC", toolkit.cuobjdump) {}

    /// Makes `kernel.cubin` and what else was asked for. Returns the command's arguments. Throws
    /// CompileError, or ToolchainError when a tool is missing.
    std::vector<std::string> run() {
        steps_.check_dumps();
        const NvccCommand command(request_, toolkit_);
        const auto log = steps_.call(command.arguments(), command.directory(), "NVCC");
        steps_.take_log(command_text(command.arguments()), log);
        command.collect();
        if (request_.options.dump_ptx.value_or(false) &&
            !is_file(request_.directory / "kernel.ptx")) {
            steps_.call(command.ptx_arguments(), command.directory(), "NVCC, asked for PTX,");
            command.collect();
        }
        steps_.finish();
        return command.arguments();
    }

private:
    const BuildRequest<CompilerOptions>& request_;
    const Toolkit& toolkit_;
    BuildSteps steps_;
};

}  // namespace deep_jit::cuda
