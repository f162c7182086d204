// Precompiled headers of NVRTC: which kernels get them, and where the files are.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <deep_jit/cache/staging.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/hash.hpp>

namespace deep_jit::cuda::nvrtc {

namespace detail {

/// The lines before the first one that is neither blank, nor a directive, nor a comment: what a
/// precompiled header may stand for. Empty when nothing is included in them.
inline std::string_view leading_directives(std::string_view source) {
    std::size_t end = 0, at = 0;
    bool in_comment = false, continued = false;
    while (at < source.size()) {
        const auto stop = std::min(source.find('\n', at), source.size());
        const auto line = str::trim(source.substr(at, stop - at));
        const bool opens = line.starts_with("/*");
        if (in_comment || opens) {
            const auto close = line.find("*/", opens ? 2 : 0);
            in_comment = close == std::string_view::npos;
            // Code behind a comment is left for another time.
            if (!in_comment && close + 2 != line.size())
                break;
        } else if (line.starts_with("#") || continued) {
            if (line.find("include") != std::string_view::npos)
                end = stop;
            continued = line.ends_with("\\");
        } else if (!line.empty() && !line.starts_with("//")) {
            break;
        }
        at = stop + 1;
    }
    return source.substr(0, end);
}

}  // namespace detail

/// The precompiled headers of one runtime. NVRTC can read such a file only in the process that
/// wrote it, so they are private, below the first cache root, and go with this object.
///
/// Making one costs more than one compilation gains. So a kernel is compiled without when it is
/// the first to begin with its includes, and the second makes the file, if the first took long.
/// Thread-safe.
class Pch {
public:
    explicit Pch(const std::vector<std::filesystem::path>& roots)
        : root_(roots.empty() ? std::filesystem::path() : roots.front()) {}
    Pch(const Pch&) = delete;
    Pch& operator=(const Pch&) = delete;
    ~Pch() {
        // The files are the parent's.
        if (::getpid() != owner_)
            staging_.release();
    }

    /// Stands for what must be the same for one file: the options, and how the source begins.
    /// Empty when the source includes nothing.
    static std::string key(const std::vector<std::string>& options, std::string_view source) {
        const auto leading = detail::leading_directives(source);
        if (leading.empty())
            return {};
        hash::FNV1a hash;
        for (const auto& option : options) hash.update(option);
        return hash.update(leading).get_hex_digest();
    }

    /// Options to compile with; none when there should be no precompiled header.
    std::vector<std::string> options_for(const std::string& key) {
        if (::getpid() != owner_)
            return {};
        const std::lock_guard lock(mutex_);
        auto& state = known_[key];
        if (!state.worth_it)
            return {};
        if (state.directory.empty()) {
            if (made_ == kMostFiles || !make_directory(state.directory)) {
                state.worth_it = false;
                return {};
            }
            ++made_;
        }
        return {"--pch", "--pch-dir=" + state.directory.string(), "--pch-messages=false",
                "--pch-verbose=false"};
    }

    /// Tells how long a compilation without took.
    void learn(const std::string& key, double seconds) {
        const std::lock_guard lock(mutex_);
        auto& state = known_[key];
        state.worth_it = !state.failed && seconds >= kWorthSeconds;
    }

    /// Tells that a compilation with it went wrong: there will be no other.
    void fail(const std::string& key) {
        const std::lock_guard lock(mutex_);
        auto& state = known_[key];
        state.failed = true;
        state.worth_it = false;
    }

private:
    static constexpr double kWorthSeconds = 0.3;
    /// One may take 300 MB.
    static constexpr int kMostFiles = 8;

    struct State {
        bool worth_it = false;
        bool failed = false;
        std::filesystem::path directory;
    };

    bool make_directory(std::filesystem::path& out) {
        if (root_.empty())
            return false;
        if (staging_.empty() && StagingDir::create(root_ / "tmp", "pch", staging_) != 0)
            return false;
        out = staging_.entry_path() / str::to_text(made_);
        return try_make_dirs(out) == 0;
    }

    std::filesystem::path root_;
    std::mutex mutex_;
    std::map<std::string, State> known_;
    int made_ = 0;
    StagingDir staging_;
    pid_t owner_ = ::getpid();
};

}  // namespace deep_jit::cuda::nvrtc
