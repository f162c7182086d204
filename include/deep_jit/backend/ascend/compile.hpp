// Turns a kernel source into a device object: bisheng, then ld.lld.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/backend/ascend/elf.hpp>
#include <deep_jit/backend/ascend/options.hpp>
#include <deep_jit/backend/ascend/toolkit.hpp>
#include <deep_jit/runtime/backend_concept.hpp>
#include <deep_jit/utils/command.hpp>
#include <deep_jit/utils/log.hpp>

namespace deep_jit::ascend {

/// Complete output of `tool --version`. Throws ToolchainError when it cannot be had.
inline std::string ask_version(const std::filesystem::path& tool) {
    const std::vector<std::string> command = {tool.string(), "--version"};
    auto result = call_external_command(command);
    if (!result.ok())
        deep_jit::detail::throw_error<ToolchainError>(
            "{} does not say its version: command failed with exit code {}.{}\nCommand: {}\n{}",
            tool.filename(), result.exit_code, exit_code_hint(result.exit_code, result.output),
            command_text(command), result.output);
    return std::move(result.output);
}

/// What of a version text says which compiler it is: all but the line with the place where it is
/// installed. (Every version calls itself clang 15.0.5; the time stamp in front tells them apart.)
inline std::string version_identity(const std::string& version) {
    std::string out;
    for (const auto& line : str::split(version, '\n'))
        if (!line.starts_with("InstalledDir:"))
            out += line + "\n";
    return out;
}

/// One compilation of one kernel in one private directory.
class Compilation {
public:
    Compilation(const BuildRequest<CompilerOptions>& request, const Toolkit& toolkit)
        : request_(request), toolkit_(toolkit) {}

    /// Command lines of the two steps.
    struct Commands {
        std::vector<std::string> compile;
        std::vector<std::string> link;
    };

    /// Makes `kernel.rel.o`, `kernel.o` and what else was asked for. Throws CompileError.
    Commands run() {
        const Commands commands{compile_command(request_.directory, {}), link_command()};
        log_ = call(commands.compile, request_.directory, "The compiler bisheng");
        check_object("kernel.rel.o", "bisheng");
        log_ += call(commands.link, request_.directory, "The linker ld.lld");
        check_object("kernel.o", "ld.lld");
        if (request_.options.dump_asm.value_or(false))
            dump_asm();
        // Kept beside the artifact, so that it is still there when this kernel comes from the
        // cache.
        if (!log_.empty())
            write_file_sync(request_.directory / "kernel.log", log_);
        return commands;
    }

private:
    std::vector<std::string> compile_command(const std::filesystem::path& output_directory,
                                             const std::vector<std::string>& more_flags) const {
        std::vector<std::string> out{toolkit_.bisheng.string()};
        const auto flags = request_.options.get_bisheng_flags();
        out.insert(out.end(), flags.begin(), flags.end());
        out.insert(out.end(), more_flags.begin(), more_flags.end());
        for (const auto& directory : request_.config.include_dirs)
            out.push_back("-I" + directory.string());
        for (const auto& directory : toolkit_.include_dirs)
            out.push_back("-I" + directory.string());
        out.insert(out.end(), {path("kernel.asc").string(), "-o",
                               (output_directory / "kernel.rel.o").string()});
        return out;
    }

    std::vector<std::string> link_command() const {
        std::vector<std::string> out{toolkit_.ld_lld.string()};
        const auto flags = request_.options.get_linker_flags();
        out.insert(out.end(), flags.begin(), flags.end());
        out.insert(out.end(), {path("kernel.rel.o").string(), "-o", path("kernel.o").string()});
        return out;
    }

    /// Bisheng leaves its intermediate files in the directory that it runs in.
    void dump_asm() const {
        const auto directory = path("asm");
        make_dirs(directory);
        call(compile_command(directory, {"-save-temps"}), directory,
             "The compiler bisheng, asked for assembly,");
        safe_remove_all(directory / "kernel.rel.o");
    }

    void check_object(const char* name, const char* maker) const {
        std::string bytes;
        const int error = try_read(path(name), bytes);
        if (error == 0 && read_object(bytes))
            return;
        throw CompileError(
            str::format("{} did not produce a valid device object for kernel {}: {}{}", maker,
                        request_.key,
                        error != 0 ? "cannot read " + path(name).string() + ": " +
                                         deep_jit::detail::errno_text(error)
                                   : str::format("{} ({} bytes) is no ELF file of a device",
                                                 path(name), bytes.size()),
                        log_.empty() ? std::string() : "\n" + log_),
            {{}, log_, {}, request_.key});
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
        std::string hint = exit_code_hint(result.exit_code, result.output);
        if (result.output.find("unknown emulation: aicorelinux") != std::string::npos)
            hint += " This ld.lld is not the one of CANN.";
        throw CompileError(
            str::format("{} failed for kernel {}: command failed with exit code {}.{}\n"
                        "Command: {}\n{}",
                        who, request_.key, result.exit_code, hint, text, result.output),
            {text, result.output, {}, request_.key});
    }

    std::filesystem::path path(const char* name) const { return request_.directory / name; }

    const BuildRequest<CompilerOptions>& request_;
    const Toolkit& toolkit_;
    std::string log_;
};

}  // namespace deep_jit::ascend
