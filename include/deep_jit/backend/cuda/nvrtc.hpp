// Compiles a kernel with NVRTC, within the process.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/backend/cuda/build_steps.hpp>
#include <deep_jit/backend/cuda/nvrtc_api.hpp>
#include <deep_jit/backend/cuda/nvrtc_flags.hpp>
#include <deep_jit/backend/cuda/nvrtc_headers.hpp>
#include <deep_jit/backend/cuda/nvrtc_library.hpp>
#include <deep_jit/backend/cuda/nvrtc_pch.hpp>
#include <deep_jit/backend/cuda/options.hpp>
#include <deep_jit/runtime/backend_concept.hpp>
#include <deep_jit/utils/deep_stack.hpp>

namespace deep_jit::cuda {

/// One compilation of one kernel.
///
/// A source is known to NVRTC as `kernel.cu`, or, with line information, by the path where it
/// will be published.
class NvrtcBuild {
public:
    NvrtcBuild(const BuildRequest<CompilerOptions>& request, const NvrtcLibrary& library,
               nvrtc::Pch& pch)
        : request_(request),
          library_(library),
          pch_(pch),
          api_(nvrtc::Api::open(library.path)),
          steps_(request, "NVRTC", library.cuobjdump) {}

    /// Makes `kernel.cubin` and what else was asked for. Returns the library and the options that
    /// it got, as a command would read. Throws CompileError; ConfigError for flags that NVRTC
    /// does not have; ToolchainError when it does not work.
    std::vector<std::string> run() {
        steps_.check_dumps();
        options_ = make_options();
        std::vector<std::string> arguments = {library_.path.string(),
                                              (request_.directory / "kernel.cu").string()};
        arguments.insert(arguments.end(), options_.begin(), options_.end());
        command_ = command_text(arguments);
        steps_.announce(command_);
        compile(read(request_.directory / "kernel.cu"));
        steps_.finish();
        return arguments;
    }

private:
    // Templates nest deep, and NVRTC follows them by recursion: with CUTLASS, a thread's usual
    // stack may be too small, and then the process crashes.
    static constexpr std::size_t kStackBytes = std::size_t{128} << 20;

    std::vector<std::string> make_options() {
        auto out = translate_flags(request_.options.get_flags());
        const auto add = [&](const std::string& option) {
            if (std::find(out.begin(), out.end(), option) == out.end())
                out.push_back(option);
        };
        // What is not marked may be called by device code: a part of that is what NVCC's
        // --expt-relaxed-constexpr allows, and NVRTC takes no host functions.
        add("--device-as-default-execution-space");
        add("--device-int128");
        // That would change the stack limit of the whole process.
        add("--modify-stack-limit=false");
        // Its cache has no logs, and this library has its own.
        if (api_.version() >= 1209)
            add("--no-cache");
        add(std::string("--pre-include=") + nvrtc::kPreludeName);
        for (const auto& option : out)
            if (option.starts_with("--include-path="))
                include_dirs_.emplace_back(option.substr(option.find('=') + 1));
        for (const auto* more : {&request_.config.include_dirs, &library_.include_dirs})
            for (const auto& directory : *more) {
                include_dirs_.push_back(directory);
                out.push_back("--include-path=" + directory.string());
            }
        // Warnings can be turned off by other flags, these lines cannot: checks go by them.
        if (steps_.wants_checks())
            add("--ptxas-options=--verbose");
        return out;
    }

    void compile(const std::string& source) {
        std::string pch_key;
        if (wants_pch())
            pch_key = nvrtc::Pch::key(options_, source);
        if (!pch_key.empty())
            if (const auto more = pch_.options_for(pch_key); !more.empty()) {
                auto options = options_;
                options.insert(options.end(), more.begin(), more.end());
                if (try_compile(source, options, true))
                    return;
                // Whatever is wrong, it shows without.
                pch_.fail(pch_key);
            }
        const auto start = std::chrono::steady_clock::now();
        try_compile(source, options_, false);
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
        if (!pch_key.empty())
            pch_.learn(pch_key, time.count());
    }

    bool line_info() const {
        for (const auto& option : options_)
            if (option == "--generate-line-info" || option == "--device-debug")
                return true;
        return false;
    }

    /// Not when the source has a name of its own, by which files would differ.
    bool wants_pch() const {
        return api_.set_pch_heap_size != nullptr && !line_info() &&
               request_.env.get<bool>("JIT_NVRTC_PCH", true);
    }

    /// False when it did not compile and `may_fail`.
    bool try_compile(const std::string& source, const std::vector<std::string>& options,
                     bool may_fail) {
        const auto published = (request_.published / "kernel.cu").string();
        // PTX cannot write such a name.
        const bool can_be_named = published.find_first_of("\"\\\n\r") == std::string::npos;
        const auto headers = nvrtc::headers_for(include_dirs_);
        nvrtc::Compilation compilation(api_);
        int result = 0;
        run_on_deep_stack(kStackBytes, [&] {
            result = compilation.run(source, line_info() && can_be_named ? published : "kernel.cu",
                                     headers, options);
        });
        if (result != nvrtc::kSuccess && may_fail)
            return false;
        const auto log = compilation.log();
        if (result != nvrtc::kSuccess)
            report(result, log);
        steps_.take_log(command_, log);
        write_file_sync(request_.directory / "kernel.cubin", compilation.cubin());
        if (request_.options.dump_ptx.value_or(false))
            write_file_sync(request_.directory / "kernel.ptx", compilation.ptx());
        return true;
    }

    [[noreturn]] void report(int result, const std::string& log) const {
        const ErrorDetails details{command_, log, {}, request_.key};
        const std::string what = api_.get_error_string(result);
        if (result == nvrtc::kInvalidOption)
            throw ConfigError(
                str::format("NVRTC {}.{} does not take an option for kernel {}: {}\nCommand: {}",
                            api_.major, api_.minor, request_.key, log, command_),
                details);
        if (result == nvrtc::kBuiltinOperationFailure)
            throw ToolchainError(
                str::format("NVRTC does not work: {}. Its library libnvrtc-builtins.so.{}.{} must "
                            "lie beside {}\n{}",
                            what, api_.major, api_.minor, library_.path, log),
                details);
        std::string hint;
        if (result == nvrtc::kOutOfMemory)
            hint = " The process ran out of memory.";
        else if (log.find("cannot open source file") != std::string::npos)
            hint =
                " NVRTC has device code's headers only: those of CUDA, and the standard ones that "
                "CUDA's C++ library (cuda/std) has a counterpart for. Put others between #ifndef "
                "__CUDACC_RTC__ and #endif, add an include directory, or use NVCC.";
        throw CompileError(
            str::format("NVRTC failed for kernel {}: command failed with exit code {} ({}).{}\n"
                        "Command: {}\n{}",
                        request_.key, result, what, hint, command_, log),
            details);
    }

    const BuildRequest<CompilerOptions>& request_;
    const NvrtcLibrary& library_;
    nvrtc::Pch& pch_;
    const nvrtc::Api& api_;
    BuildSteps steps_;
    std::vector<std::string> options_;
    std::vector<std::filesystem::path> include_dirs_;
    std::string command_;
};

}  // namespace deep_jit::cuda
