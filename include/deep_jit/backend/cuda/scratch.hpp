// What keeps paths that NVCC cannot take away from it.
//
// NVCC starts its parts through a shell, with its own and its input's paths in double quotes, and
// splits lists of directories at commas. So it must not see a path with a dollar sign, a quote, a
// backslash and so on: it is given links or copies in a temporary directory with a plain name.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>

namespace deep_jit::cuda {

/// True for a path that NVCC takes as it is. Blanks and letters beyond ASCII are fine.
inline bool is_plain_path(std::string_view path) {
    for (const char c : path)
        if (!str::is_word_char(c) && static_cast<unsigned char>(c) < 0x80 &&
            std::string_view(" -+=/.:@%~^").find(c) == std::string_view::npos)
            return false;
    return true;
}

/// A temporary directory with a plain path, made when first needed and removed at the end.
class Scratch {
public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        if (!path_.empty())
            safe_remove_all(path_);
    }

    /// Throws CacheError when it cannot be made.
    const std::filesystem::path& path() {
        if (path_.empty()) {
            std::string pattern = parent() + "/deep_jit.XXXXXX";
            if (::mkdtemp(pattern.data()) == nullptr)
                deep_jit::detail::throw_error<CacheError>(
                    "Cannot make a temporary directory like {}: {}", pattern,
                    deep_jit::detail::errno_text(errno));
            path_ = pattern;
        }
        return path_;
    }

    /// The path, or a link to it with a plain one.
    std::filesystem::path plain(const std::filesystem::path& target) {
        if (is_plain_path(target.string()))
            return target;
        const auto link = path() / ("link" + str::to_text(++links_));
        if (::symlink(target.c_str(), link.c_str()) != 0)
            deep_jit::detail::throw_error<CacheError>("Cannot make the link {}: {}", link,
                                                      deep_jit::detail::errno_text(errno));
        return link;
    }

    /// $TMPDIR, or /tmp when that has no plain path.
    static std::string parent() {
        const char* directory = std::getenv("TMPDIR");
        return directory != nullptr && directory[0] == '/' && is_plain_path(directory) ? directory
                                                                                       : "/tmp";
    }

private:
    std::filesystem::path path_;
    int links_ = 0;
};

}  // namespace deep_jit::cuda
