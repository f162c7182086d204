// Turns a kernel source into a kernel library with the C++ compiler.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/backend/host/device.hpp>
#include <deep_jit/backend/host/kernel_name.hpp>
#include <deep_jit/backend/host/options.hpp>
#include <deep_jit/backend/host/prelude.hpp>
#include <deep_jit/backend/host/toolkit.hpp>
#include <deep_jit/runtime/backend_concept.hpp>
#include <deep_jit/utils/command.hpp>
#include <deep_jit/utils/elf.hpp>
#include <deep_jit/utils/log.hpp>

namespace deep_jit::host {

/// One compilation in one private directory.
///
/// The source is included by a generated file that puts the prelude before it and the kernel's
/// entry behind it. The entry needs the kernel's C++ name, which is guessed from the text; when
/// the guess does not compile or there is none, the source is compiled once without an entry to
/// learn the name from its symbols.
class Compilation {
public:
    Compilation(const BuildRequest<CompilerOptions>& request, const CompilerInfo& info)
        : request_(request),
          compiler_(info.compiler),
          flags_(request.options.get_flags()),
          print_(request.env.get<bool>("JIT_PRINT_COMPILER_COMMAND", false) ||
                 request.env.get<bool>("JIT_DEBUG", false)) {}

    /// Leaves `kernel.so`, and `kernel.s` when asked for. Returns the compiler's command. Throws
    /// CompileError, LoadError for other than one kernel, ConfigError for a tool that is missing.
    std::vector<std::string> run() {
        write(kPreludeFile, prelude_text());
        const auto guess = guess_kernel_name(read(request_.directory / "kernel.cpp"));
        auto result = compile(guess);
        if (guess && !result.ok())
            result = compile(std::nullopt);
        if (!result.ok())
            fail(compile_command(), result);
        auto kernels = kernel_symbols();
        if (has_entry_ && kernels.size() == 1 && base_name(*guess) != base_name(kernels[0])) {
            // Some other function has the name that was guessed.
            result = compile(std::nullopt);
            if (!result.ok())
                fail(compile_command(), result);
            kernels = kernel_symbols();
        }
        if (kernels.size() != 1 && !(kernels.empty() && has_entry_))
            throw CompileError(
                str::format("Kernel {}: expected exactly one kernel in the source, but it has {}{}",
                            request_.key, kernels.size(),
                            kernels.empty() ? std::string(": mark it with __global__, and let "
                                                          "__instantiate_kernel take the address "
                                                          "of a template's instance")
                                            : ": " + str::join(kernels, ", ")),
                {command_text(compile_command()), result.output, {}, request_.key});
        if (!has_entry_) {
            result = compile(expression_of(kernels[0]));
            // The name alone says too little when another function has it too.
            if (!result.ok())
                result = compile(overload_of(kernels[0]));
            if (!result.ok())
                fail(compile_command(), result);
        }
        link();
        keep_assembly();
        for (const char* name : {kPreludeFile, kEntryFile, kObjectFile, kSharedFile})
            safe_remove_all(request_.directory / name);
        return compile_command();
    }

private:
    static constexpr const char* kPreludeFile = "deep_jit_prelude.hpp";
    static constexpr const char* kEntryFile = "kernel.entry.cpp";
    static constexpr const char* kObjectFile = "kernel.rel.o";
    static constexpr const char* kSharedFile = "kernel.smem.s";

    void write(const char* name, std::string_view text) const {
        write_file_sync(request_.directory / name, text);
    }

    std::vector<std::string> compile_command() const {
        std::vector<std::string> out{compiler_.path.string()};
        out.insert(out.end(), flags_.begin(), flags_.end());
        out.insert(out.end(), {"-fPIC", "-fvisibility=hidden"});
        // Static data of inline functions must not be shared between kernels of one name.
        if (!compiler_.is_clang())
            out.emplace_back("-fno-gnu-unique");
        // Debuggers look where the source will be, not where it is now.
        out.push_back("-fdebug-prefix-map=" + request_.directory.string() + "=" +
                      request_.published.string());
        if (request_.options.dump_asm.value_or(false))
            out.emplace_back("-save-temps=obj");
        for (const auto& directory : request_.config.include_dirs)
            out.insert(out.end(), {"-I", directory.string()});
        out.insert(out.end(), {"-c", kEntryFile, "-o", kObjectFile});
        return out;
    }

    CommandResult compile(const std::optional<std::string>& kernel) {
        has_entry_ = kernel.has_value();
        write(kEntryFile, "#include \"" + std::string(kPreludeFile) +
                              "\"\n#include \"kernel.cpp\"\n" +
                              (kernel ? entry_text(*kernel) : std::string()));
        return call(compile_command());
    }

    CommandResult call(const std::vector<std::string>& command) const {
        if (print_)
            log::write(request_.env, "Running command: " + command_text(command));
        return call_external_command(command, request_.directory);
    }

    [[noreturn]] void fail(const std::vector<std::string>& command,
                           const CommandResult& result) const {
        throw CompileError(
            str::format("Kernel {} does not compile: command failed with exit code {}.{}\n{}\n{}",
                        request_.key, result.exit_code,
                        exit_code_hint(result.exit_code, result.output), command_text(command),
                        result.output),
            {command_text(command), result.output, {}, request_.key});
    }

    [[noreturn]] void fail_without_output(std::string_view what,
                                          const std::vector<std::string>& command) const {
        throw CompileError(str::format("Kernel {}: the compiler did not produce {}. Command: {}",
                                       request_.key, what, command_text(command)),
                           {command_text(command), {}, {}, request_.key});
    }

    /// C++ names of the kernels in the object file.
    std::vector<std::string> kernel_symbols() {
        std::vector<std::string> out;
        shared_arrays_.clear();
        initializers_.clear();
        // Flags such as -fsyntax-only make a compiler succeed without one.
        std::string object;
        const int error = try_read(request_.directory / kObjectFile, object);
        const auto elf = error == 0 ? ElfView::parse(object) : std::nullopt;
        if (!elf)
            fail_without_output("an ELF object file", compile_command());
        for (const auto& symbol : elf->symbols()) {
            if (symbol.type == STT_FUNC && symbol.defined && symbol.visibility == STV_PROTECTED)
                out.push_back(demangle(symbol.name));
            // `extern __shared__ T name[]` is thread-local data that nothing defines. The C++
            // library has some of its own.
            if (symbol.type == STT_TLS && !symbol.defined && !symbol.name.starts_with("_ZSt") &&
                !symbol.name.starts_with("_ZNSt"))
                shared_arrays_.push_back(symbol.name);
            // GCC calls the initialiser of such an array, which might be elsewhere, unasked.
            if (!symbol.defined && symbol.name.starts_with("_ZTH"))
                initializers_.push_back(symbol.name);
        }
        return out;
    }

    void link() {
        std::vector<std::string> command{compiler_.path.string(), "-shared", "-o", "kernel.so",
                                         kObjectFile};
        kernel_symbols();
        if (!shared_arrays_.empty() || !initializers_.empty()) {
            write(kSharedFile, shared_memory_text());
            command.emplace_back(kSharedFile);
        }
        command.emplace_back("-Wl,-Bsymbolic");
        // Fast-math flags would link code that changes the whole process's floating-point mode.
        for (const auto& flag : flags_)
            if (flag != "-ffast-math" && flag != "-Ofast" && flag != "-funsafe-math-optimizations")
                command.push_back(flag);
        const auto result = call(command);
        if (!result.ok())
            fail(command, result);
        if (!is_file(request_.directory / "kernel.so"))
            fail_without_output("kernel.so", command);
    }

    /// Dynamic shared memory: every `extern __shared__` array is the same block of the running
    /// thread's memory, as large as a launch may ask for.
    std::string shared_memory_text() const {
        std::string out = "    .section .tbss,\"awT\",@nobits\n    .balign 1024\n";
        for (const auto& name : shared_arrays_)
            out += str::format("    .globl {}\n    .hidden {}\n    .type {}, @object\n{}:\n", name,
                               name, name, name);
        out += str::format("    .zero {}\n", kMaxSharedBytes);
        for (const auto& name : shared_arrays_)
            out += str::format("    .size {}, {}\n", name, kMaxSharedBytes);
        if (!initializers_.empty())
            out += "    .text\n";
        for (const auto& name : initializers_)
            out += str::format(
                "    .globl {}\n    .hidden {}\n    .type {}, @function\n{}:\n    ret\n", name,
                name, name, name);
        return out + "    .section .note.GNU-stack,\"\",@progbits\n";
    }

    void keep_assembly() const {
        if (!request_.options.dump_asm.value_or(false))
            return;
        // Compilers name the intermediate files after the source or after the object.
        for (const char* stem : {"kernel.entry", "kernel.rel"})
            for (const char* suffix : {".s", ".ii", ".bc", ".o"}) {
                const auto path = request_.directory / (std::string(stem) + suffix);
                std::error_code error;
                if (std::string_view(suffix) == ".s" && is_file(path))
                    std::filesystem::rename(path, request_.directory / "kernel.s", error);
                else if (path.filename() != kObjectFile)
                    safe_remove_all(path);
            }
    }

    const BuildRequest<CompilerOptions>& request_;
    const Compiler& compiler_;
    std::vector<std::string> flags_;
    bool print_;
    bool has_entry_ = false;
    std::vector<std::string> shared_arrays_;
    std::vector<std::string> initializers_;
};

}  // namespace deep_jit::host
