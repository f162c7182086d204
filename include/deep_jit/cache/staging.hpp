// Private directories in which kernels are built before they are published.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/uuid.hpp>

namespace deep_jit {

/// A directory that only this user can enter (mode 0700), holding one directory `entry_path()`
/// with ordinary permissions (the umask applies) that can be renamed to where others see it.
/// Removes what is left of itself at the end.
class StagingDir {
public:
    StagingDir() = default;
    StagingDir(StagingDir&& other) noexcept { *this = std::move(other); }
    StagingDir& operator=(StagingDir&& other) noexcept {
        std::swap(path_, other.path_);
        std::swap(entry_path_, other.entry_path_);
        return *this;
    }
    ~StagingDir() {
        if (!path_.empty())
            safe_remove_all(path_);
    }

    /// Makes one below `parent`, itself made when missing, with room for an entry of this name.
    /// Returns 0, or errno.
    static int create(const std::filesystem::path& parent, const std::string& entry_name,
                      StagingDir& out) {
        // Host and process are in the name, so that leftovers of the dead can be told.
        char host[256] = "unknown";
        ::gethostname(host, sizeof(host) - 1);
        StagingDir staging;
        staging.path_ = parent / str::format("{}.{}.{}", host, ::getpid(), get_uuid());
        if (const int error = try_make_dirs(parent))
            return error;
        if (::mkdir(staging.path_.c_str(), 0700) != 0)
            return errno;
        staging.entry_path_ = staging.path_ / entry_name;
        if (::mkdir(staging.entry_path_.c_str(), 0777) != 0)
            return errno;
        out = std::move(staging);
        return 0;
    }

    const std::filesystem::path& entry_path() const noexcept { return entry_path_; }
    bool empty() const noexcept { return path_.empty(); }

    /// Leaves the directory on disk for good. Returns the entry's path.
    std::filesystem::path release() {
        path_.clear();
        return std::exchange(entry_path_, {});
    }

private:
    std::filesystem::path path_;
    std::filesystem::path entry_path_;
};

/// Where builds go when no cache root can be written: $TMPDIR, or /tmp.
inline std::filesystem::path fallback_staging_parent() {
    const char* directory = std::getenv("TMPDIR");
    if (directory != nullptr && directory[0] == '/')
        return directory;
    return "/tmp";
}

}  // namespace deep_jit
