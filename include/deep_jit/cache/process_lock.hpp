// Keeps the processes of one node from doing the same work at once. It only saves work: nothing is
// wrong without it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/hash.hpp>
#include <deep_jit/utils/parent_fd.hpp>

namespace deep_jit {

/// A lock of one key among the processes (and threads) of this user on this node. It is a byte
/// range of one file in memory or in /tmp, held through an open file description: the kernel frees
/// it when its holder dies, however that happens, and it is never taken away from a living one.
class ProcessLock {
public:
    enum class Result {
        held,         ///< ours
        unavailable,  ///< locks do not work here: carry on without
        timed_out,    ///< someone else holds it: carry on without
        failed        ///< its holder has given up on the work: carry on without
    };

    ProcessLock() = default;
    ProcessLock(const ProcessLock&) = delete;
    ProcessLock& operator=(const ProcessLock&) = delete;
    ~ProcessLock() { release(); }

    /// Takes the lock of `key`. While another holds it, waits up to `timeout`; `on_wait(holder)` is
    /// called once, with the holder named as far as known. `label` (one line) names the work to
    /// those who wait for us.
    template <typename OnWait>
    Result acquire(std::string_view key, std::string_view label,
                   std::chrono::duration<double> timeout, OnWait&& on_wait) {
        release();
        ParentFd file = open_file();
        if (!file)
            return Result::unavailable;
        hash_ = hash::FNV1a().update(key).get_hex_digest().substr(0, 16);
        offset_ = static_cast<off_t>(std::stoull(hash_, nullptr, 16) >> 1);
        const auto start = std::chrono::steady_clock::now();
        auto pause = std::chrono::milliseconds(1);
        bool waited = false;
        while (true) {
            if (waited && read_record(file.get()).failed)
                return Result::failed;
            const int error = set_lock(file.get(), F_WRLCK);
            if (error == 0)
                break;
            if (error != EAGAIN && error != EACCES)
                return Result::unavailable;
            if (std::chrono::steady_clock::now() - start >= timeout)
                return Result::timed_out;
            if (!waited) {
                waited = true;
                on_wait(read_record(file.get()).holder);
            }
            std::this_thread::sleep_for(pause);
            pause = std::min(2 * pause, std::chrono::milliseconds(20));
        }
        file_ = std::move(file);
        write_record(str::format("process {} ({})", ::getpid(), label));
        return Result::held;
    }

    bool held() const noexcept { return static_cast<bool>(file_); }

    /// Tells those who wait that the work failed: each then tries for itself, at once, instead of
    /// one after the other.
    void release_failed() {
        if (file_.is_own())
            write_record("-");
        release();
    }

    void release() noexcept {
        if (file_.is_own())
            set_lock(file_.get(), F_UNLCK);
        file_.reset();
    }

    /// Where the lock file lies: a place that belongs to this user and to this node. None when
    /// there is no such place.
    static std::optional<std::filesystem::path> directory() {
        for (const char* parent : {"/dev/shm", "/tmp"}) {
            auto path = std::filesystem::path(parent) / str::format("deep_jit.{}", ::geteuid());
            if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
                continue;
            // Anybody may make files there: it must be ours, and no link.
            struct stat info {};
            if (::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                info.st_uid == ::geteuid() && (info.st_mode & 022) == 0)
                return path;
        }
        return std::nullopt;
    }

private:
    // What holders say of themselves: fixed places at the start of the file. Two keys that share
    // one only lose a name in a message.
    static constexpr std::size_t kRecords = 1024;
    static constexpr std::size_t kRecordBytes = 256;

    struct Record {
        std::string holder = "another process";
        bool failed = false;
    };

    static ParentFd open_file() {
        const auto where = directory();
        if (!where)
            return {};
        return ParentFd::own([&] {
            return fs_detail::open_retrying(*where / "locks", O_RDWR | O_CREAT, 0600).release();
        });
    }

    int set_lock(int fd, short type) const noexcept {
        struct flock range {};
        range.l_type = type;
        range.l_whence = SEEK_SET;
        range.l_start = offset_;
        range.l_len = 1;
        int result;
        do {
            result = ::fcntl(fd, F_OFD_SETLK, &range);
        } while (result != 0 && errno == EINTR);
        return result == 0 ? 0 : errno;
    }

    off_t record_offset() const {
        return static_cast<off_t>((static_cast<std::uint64_t>(offset_) % kRecords) * kRecordBytes);
    }

    void write_record(std::string_view text) const {
        std::string record = hash_ + " " + std::string(text);
        record.resize(kRecordBytes, ' ');
        // A message is all that depends on it.
        [[maybe_unused]] const auto written =
            ::pwrite(file_.get(), record.data(), record.size(), record_offset());
    }

    Record read_record(int fd) const {
        std::array<char, kRecordBytes> bytes{};
        const auto size = ::pread(fd, bytes.data(), bytes.size(), record_offset());
        Record out;
        if (size <= 0)
            return out;
        const std::string_view text(bytes.data(), static_cast<std::size_t>(size));
        if (!text.starts_with(hash_ + " "))
            return out;
        const auto holder = str::trim(text.substr(hash_.size() + 1));
        out.failed = holder == "-";
        if (!out.failed)
            out.holder = std::string(holder);
        return out;
    }

    ParentFd file_;
    std::string hash_;
    off_t offset_ = 0;
};

}  // namespace deep_jit
