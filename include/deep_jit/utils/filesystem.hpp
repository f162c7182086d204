// File operations as the cache needs them: durable writes, whole reads, forgiving removal.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <deep_jit/utils/exception.hpp>

namespace deep_jit {

/// Owns a file descriptor.
class UniqueFd {
public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~UniqueFd() { reset(); }

    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    /// Gives the descriptor away.
    int release() noexcept { return std::exchange(fd_, -1); }

    /// Closes now. Returns 0, or errno: on NFS a failed write can show only here.
    int reset() noexcept {
        if (fd_ < 0)
            return 0;
        return ::close(std::exchange(fd_, -1)) == 0 || errno == EINTR ? 0 : errno;
    }

private:
    int fd_ = -1;
};

namespace fs_detail {

/// Never one of the numbers 0 to 2: in a program that runs without standard streams, what others
/// write to standard error must not land in our files.
inline UniqueFd open_retrying(const std::filesystem::path& path, int flags, mode_t mode = 0) {
    int fd;
    do {
        fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0 || fd > STDERR_FILENO)
        return UniqueFd(fd);
    UniqueFd low(fd);
    UniqueFd high(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    const int error = errno;
    low.reset();
    errno = error;
    return high;
}

/// Reads to the end of the file. Returns 0 or errno; a FIFO, which may never end, counts as a
/// directory in the file's place.
inline int read_all(int fd, std::string& out) {
    struct stat info {};
    if (::fstat(fd, &info) != 0)
        return errno;
    if (S_ISDIR(info.st_mode) || S_ISFIFO(info.st_mode))
        return EISDIR;
    out.clear();
    std::size_t have = 0;
    out.resize(static_cast<std::size_t>(info.st_size > 0 ? info.st_size : 0) + 1);
    while (true) {
        const auto n = ::read(fd, out.data() + have, out.size() - have);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        if (n == 0)
            break;
        have += static_cast<std::size_t>(n);
        if (have == out.size())
            out.resize(out.size() * 2);
    }
    out.resize(have);
    return 0;
}

/// Writes every byte. Returns 0 or errno.
inline int write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return 0;
}

inline int sync(int fd) {
    int result;
    do {
        result = ::fsync(fd);
    } while (result != 0 && errno == EINTR);
    // Some filesystems cannot fsync a directory, or anything; they have nothing to flush then.
    return result == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS ? 0 : errno;
}

}  // namespace fs_detail

/// Whole contents of a file into `out`. Returns 0, or errno.
inline int try_read(const std::filesystem::path& path, std::string& out) {
    // Nobody may be writing to what turns out to be a FIFO.
    const auto fd = fs_detail::open_retrying(path, O_RDONLY | O_NONBLOCK);
    if (!fd)
        return errno;
    return fs_detail::read_all(fd.get(), out);
}

/// Whole contents of a file. Throws CacheError with path and reason.
inline std::string read(const std::filesystem::path& path) {
    std::string out;
    if (const int error = try_read(path, out))
        detail::throw_error<CacheError>("Cannot read {}: {}", path, detail::errno_text(error));
    return out;
}

/// Flushes a file or directory to stable storage. Returns 0, or errno.
inline int try_sync(const std::filesystem::path& path) {
    const auto fd = fs_detail::open_retrying(path, O_RDONLY);
    if (!fd)
        return errno;
    return fs_detail::sync(fd.get());
}

/// Writes `bytes` to `path` (created or truncated, mode 0666 less the umask) and flushes them to
/// stable storage. Returns 0, or errno; then the file may be incomplete.
inline int try_write_file_sync(const std::filesystem::path& path, std::string_view bytes) {
    auto fd = fs_detail::open_retrying(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (!fd)
        return errno;
    int error = fs_detail::write_all(fd.get(), bytes);
    if (error == 0)
        error = fs_detail::sync(fd.get());
    const int close_error = fd.reset();
    return error != 0 ? error : close_error;
}

/// The same. Throws CacheError with path and reason.
inline void write_file_sync(const std::filesystem::path& path, std::string_view bytes) {
    if (const int error = try_write_file_sync(path, bytes))
        detail::throw_error<CacheError>("Cannot write {}: {}", path, detail::errno_text(error));
}

/// Makes a directory and what is missing above it; one that is there already is fine.
/// Returns 0, or errno.
inline int try_make_dirs(const std::filesystem::path& path) {
    if (::mkdir(path.c_str(), 0777) == 0)
        return 0;
    int error = errno;
    if (error == ENOENT && path.has_parent_path() && path.parent_path() != path) {
        error = try_make_dirs(path.parent_path());
        if (error != 0)
            return error;
        if (::mkdir(path.c_str(), 0777) == 0)
            return 0;
        error = errno;
    }
    // What counts is whether it is there now: EEXIST, but also EROFS or EACCES above an
    // existing one.
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0)
        return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    return error;
}

/// The same. Throws CacheError with path and reason.
inline void make_dirs(const std::filesystem::path& path) {
    if (const int error = try_make_dirs(path))
        detail::throw_error<CacheError>("Cannot make directory {}: {}", path,
                                        detail::errno_text(error));
}

/// Removes a file or a whole tree, as far as that goes; never throws. A link is removed, not what
/// it points to. Returns true when nothing is left.
inline bool safe_remove_all(const std::filesystem::path& path) noexcept {
    try {
        std::error_code error;
        std::filesystem::remove_all(path, error);
        return !error;
    } catch (...) {
        return false;
    }
}

/// True for a regular file (or a link to one) that this process may execute.
inline bool is_executable(const std::filesystem::path& path) noexcept {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
}

inline bool is_file(const std::filesystem::path& path) noexcept {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

/// Absolute, with `.`, `..` and double slashes resolved by their letters, no trailing slash.
/// The path need not exist; links are not followed.
inline std::filesystem::path normalize_path(const std::filesystem::path& path) {
    auto out = std::filesystem::absolute(path).lexically_normal();
    if (!out.has_filename() && out.has_relative_path())
        out = out.parent_path();
    return out;
}

/// Sets the modification time to now. Returns false when that is not allowed; never throws.
inline bool try_update_mtime(const std::filesystem::path& path) noexcept {
    return ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0;
}

/// What tells one version of a file from another without reading it.
struct FileStamp {
    std::uint64_t size = 0;
    std::int64_t mtime_ns = 0;
    std::uint64_t inode = 0;

    bool operator==(const FileStamp&) const = default;

    /// Stamp of a file (links followed), or nothing when it cannot be looked at.
    static std::optional<FileStamp> of(const std::filesystem::path& path) noexcept {
        struct stat info {};
        if (::stat(path.c_str(), &info) != 0)
            return std::nullopt;
        return FileStamp{static_cast<std::uint64_t>(info.st_size),
                         std::int64_t(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec,
                         static_cast<std::uint64_t>(info.st_ino)};
    }
};

}  // namespace deep_jit
