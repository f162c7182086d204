// The NVCC command line of one kernel.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <deep_jit/backend/cuda/options.hpp>
#include <deep_jit/backend/cuda/scratch.hpp>
#include <deep_jit/backend/cuda/toolkit.hpp>
#include <deep_jit/runtime/backend_concept.hpp>

namespace deep_jit::cuda {

namespace detail {

inline bool has_flag(const std::vector<std::string>& flags,
                     std::initializer_list<std::string_view> wanted) {
    for (const auto& flag : flags)
        for (const auto one : wanted)
            if (flag == one)
                return true;
    return false;
}

/// Definitions reach the compiler's parts in double quotes of a shell, which replaces dollar
/// signs and backquotes. They are named as variables, and `environment` gets their values: what a
/// shell inserts it does not read again.
inline std::vector<std::string> protect_definitions(std::vector<std::string> flags,
                                                    std::vector<std::string>& environment) {
    bool needed = false, value_follows = false;
    for (auto& flag : flags) {
        const bool definition =
            value_follows || flag.starts_with("-D") || flag.starts_with("--define-macro=");
        value_follows = flag == "-D" || flag == "--define-macro";
        if (!definition || flag.find_first_of("$`") == std::string::npos)
            continue;
        needed = true;
        std::string out;
        for (const char c : flag) {
            if (c == '$')
                out += "${DJ_NVCC_DOLLAR}";
            else if (c == '`')
                out += "${DJ_NVCC_BACKQUOTE}";
            else
                out += c;
        }
        flag = std::move(out);
    }
    if (needed) {
        environment.emplace_back("DJ_NVCC_DOLLAR=$");
        environment.emplace_back("DJ_NVCC_BACKQUOTE=`");
    }
    return flags;
}

}  // namespace detail

/// Where and how NVCC runs for one kernel, with everything it needs put in place.
///
/// The command is `nvcc DIR/kernel.cu --cubin --output-file DIR/kernel.cubin FLAGS
/// --include-path D ...`, run in DIR, the entry's directory. When the path of DIR is not plain
/// (see scratch.hpp), a temporary directory takes its place and the results are moved.
///
/// With line information, what is compiled starts with a `#line` that names the published source,
/// since DIR is gone by the time a debugger looks for it. `kernel.cu` itself is put back
/// unchanged. (A published path with a quote, a backslash or a line break cannot be written in
/// PTX; then the lines are those of DIR.)
class NvccCommand {
public:
    NvccCommand(const BuildRequest<CompilerOptions>& request, const Toolkit& toolkit)
        : entry_(request.directory), directory_(request.directory) {
        const auto flags = request.options.get_flags();
        const bool plain = is_plain_path(entry_.string());
        if (!plain)
            directory_ = scratch_.path();
        const bool line_info =
            detail::has_flag(flags, {"--generate-line-info", "-lineinfo", "--device-debug", "-G"});
        auto source = read(entry_ / "kernel.cu");
        const auto published = (request.published / "kernel.cu").string();
        const bool names_published =
            (line_info || !plain) && published.find_first_of("\"\\\n\r") == std::string::npos;
        if (names_published)
            source = "#line 1 \"" + published + "\"\n" + source;
        if (names_published && plain)
            original_ = entry_ / "kernel.cu.original";
        if (original_)
            std::filesystem::rename(entry_ / "kernel.cu", *original_);
        if (names_published || !plain)
            write_file_sync(directory_ / "kernel.cu", source);

        std::vector<std::string> environment;
        const auto protected_flags = detail::protect_definitions(flags, environment);
        const char* tmpdir = std::getenv("TMPDIR");
        if (tmpdir != nullptr && !is_plain_path(tmpdir))
            environment.push_back("TMPDIR=" + Scratch::parent());
        if (!environment.empty()) {
            arguments_.emplace_back("env");
            arguments_.insert(arguments_.end(), environment.begin(), environment.end());
        }
        add({toolkit.nvcc.string(), (directory_ / "kernel.cu").string(), "--cubin", "--output-file",
             (directory_ / "kernel.cubin").string()});
        add(protected_flags);
        for (const auto& include : request.config.include_dirs)
            add({"--include-path", scratch_.plain(include).string()});
        for (const auto& include : toolkit.include_dirs)
            add({"--include-path", scratch_.plain(include).string()});
        // Warnings can be turned off by other flags, these lines cannot: checks go by them.
        const bool checks = request.options.check_no_spills.value_or(false) ||
                            request.options.check_no_local_memory.value_or(false);
        if (checks && !detail::has_flag(flags, {"--ptxas-options=--verbose"}))
            add({"--ptxas-options=--verbose"});
        // PTX is made on the way to a CUBIN; this keeps it.
        if (request.options.dump_ptx.value_or(false)) {
            kept_ = scratch_.path() / "kept";
            std::filesystem::create_directory(kept_);
            add({"--keep", "--keep-dir", kept_.string()});
        }
    }

    NvccCommand(const NvccCommand&) = delete;
    NvccCommand& operator=(const NvccCommand&) = delete;
    ~NvccCommand() {
        std::error_code error;
        if (original_)
            std::filesystem::rename(*original_, entry_ / "kernel.cu", error);
    }

    const std::vector<std::string>& arguments() const { return arguments_; }
    const std::filesystem::path& directory() const { return directory_; }

    /// The same for PTX, for when the one above kept none.
    std::vector<std::string> ptx_arguments() const {
        auto out = arguments_;
        for (auto& argument : out) {
            if (argument == "--cubin")
                argument = "--ptx";
            else if (argument == (directory_ / "kernel.cubin").string())
                argument = (directory_ / "kernel.ptx").string();
        }
        return out;
    }

    /// Moves what was made to the entry: `kernel.cubin`, and `kernel.ptx` when it was kept.
    void collect() const {
        if (directory_ != entry_)
            for (const char* name : {"kernel.cubin", "kernel.ptx"})
                move(directory_ / name, entry_ / name);
        if (!kept_.empty())
            move(kept_ / "kernel.ptx", entry_ / "kernel.ptx");
    }

private:
    void add(const std::vector<std::string>& more) {
        arguments_.insert(arguments_.end(), more.begin(), more.end());
    }

    /// Also across filesystems. A file that is not there is left to later checks.
    static void move(const std::filesystem::path& from, const std::filesystem::path& to) {
        if (is_file(from))
            write_file_sync(to, read(from));
    }

    std::filesystem::path entry_;
    std::filesystem::path directory_;
    std::optional<std::filesystem::path> original_;
    std::filesystem::path kept_;
    std::vector<std::string> arguments_;
    Scratch scratch_;
};

}  // namespace deep_jit::cuda
