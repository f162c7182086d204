// Keeps a cache root small: removes what was not used for the longest time, and what the dead left.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <deep_jit/cache/entry_marker.hpp>
#include <deep_jit/cache/limit.hpp>
#include <deep_jit/cache/staging.hpp>
#include <deep_jit/utils/filesystem.hpp>

namespace deep_jit {

/// An entry's time stamp is the modification time of its `.committed`: set at publication, and at
/// a use when it is older than this. (Access times are off on many mounts.)
inline constexpr std::int64_t kStampSeconds = 3600;

/// Notes that an entry is used. Needs write access to the file; without, the older stamp stays.
inline void touch_entry(const std::filesystem::path& entry) noexcept {
    const auto marker = entry / kCommitFileName;
    struct stat info {};
    if (::stat(marker.c_str(), &info) == 0 && info.st_mtime + kStampSeconds < std::time(nullptr))
        try_update_mtime(marker);
}

struct PruneReport {
    std::uint64_t entries = 0;        ///< found
    std::uint64_t bytes = 0;          ///< that they hold
    std::uint64_t removed = 0;        ///< entries, those that others removed meanwhile included
    std::uint64_t removed_bytes = 0;  ///< bytes
    std::uint64_t swept = 0;          ///< leftovers of dead processes and old quarantine
};

/// Prunes one cache root. Any number of processes may do so at once, while others read and
/// publish: an entry leaves its place by one rename and is taken apart elsewhere. Errors are
/// passed over: what cannot be removed stays.
class Pruner {
public:
    /// Seconds after which a leftover can have no living owner worth waiting for.
    static constexpr std::int64_t kDeadSeconds = 24LL * 3600;
    static constexpr std::int64_t kForeignSeconds = 7 * kDeadSeconds;
    static constexpr std::int64_t kKeptSeconds = 30 * kDeadSeconds;

    explicit Pruner(std::filesystem::path root) : root_(std::move(root)) {}

    /// Called with (name, bytes) of each entry as it is removed.
    std::function<void(const std::string&, std::uint64_t)> on_removed;
    /// Called now and then with (done, of how many); for a progress bar.
    std::function<void(std::uint64_t, std::uint64_t)> on_progress;

    /// Removes the entries that were not used for the longest time until the rest fits into
    /// `limit`.
    PruneReport prune(const CacheLimit& limit) {
        PruneReport report;
        auto entries = list();
        report.entries = entries.size();
        for (const auto& entry : entries) report.bytes += entry.bytes;
        std::sort(entries.begin(), entries.end(),
                  [](const Entry& a, const Entry& b) { return a.stamp_ns < b.stamp_ns; });
        std::uint64_t left = report.entries, left_bytes = report.bytes;
        for (const auto& entry : entries) {
            if (left <= limit.entries && left_bytes <= limit.bytes)
                break;
            if (!remove(entry.name))
                continue;
            --left;
            left_bytes -= entry.bytes;
            ++report.removed;
            report.removed_bytes += entry.bytes;
            if (on_removed)
                on_removed(entry.name, entry.bytes);
        }
        trash_ = StagingDir();
        return report;
    }

    /// Removes staging directories whose process is gone and which are older than `dead_seconds`
    /// (of other machines: than a week), and quarantined entries and failed sources older than a
    /// month. Returns their number.
    std::uint64_t sweep(std::int64_t dead_seconds = kDeadSeconds) {
        std::uint64_t swept = 0;
        char host[256] = "unknown";
        ::gethostname(host, sizeof(host) - 1);
        const auto own = std::string(host) + ".";
        for (const auto& name : names_in("tmp")) {
            const auto age = age_of(root_ / "tmp" / name);
            const bool ours = name.starts_with(own);
            if (ours ? age >= dead_seconds && is_dead(name.substr(own.size()))
                     : age > kForeignSeconds)
                swept += safe_remove_all(root_ / "tmp" / name) ? 1 : 0;
        }
        for (const char* directory : {"quarantine", "failed"})
            for (const auto& name : names_in(directory))
                if (age_of(root_ / directory / name) > kKeptSeconds)
                    swept += safe_remove_all(root_ / directory / name) ? 1 : 0;
        return swept;
    }

    /// Removes one entry, wherever its removal may be interrupted: it is gone or whole. True when
    /// it is gone.
    bool remove(const std::string& name) {
        // One private directory for all: making and removing one each time is half of the work.
        if (trash_.empty() && StagingDir::create(root_ / "tmp", "removed", trash_) != 0)
            return false;
        const auto target = trash_.entry_path() / name;
        if (::rename((root_ / "cache" / name).c_str(), target.c_str()) != 0)
            return errno == ENOENT;
        safe_remove_all(target);
        return true;
    }

private:
    struct Entry {
        std::string name;
        std::int64_t stamp_ns;
        std::uint64_t bytes;
    };

    /// Every entry, with its stamp and its bytes as its own marker lists them.
    std::vector<Entry> list() const {
        std::vector<Entry> out;
        const auto names = names_in("cache");
        std::string text;
        std::uint64_t seen = 0;
        for (const auto& name : names) {
            if (on_progress && (++seen & 1023) == 0)
                on_progress(seen, names.size());
            const auto marker = root_ / "cache" / name / kCommitFileName;
            struct stat info {};
            if (::stat(marker.c_str(), &info) != 0) {
                // What was never completed goes first, unless it is only now being moved.
                if (const auto age = age_of(root_ / "cache" / name); age > kStampSeconds)
                    out.push_back({name, 0, 0});
                continue;
            }
            const auto stamp =
                std::int64_t(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec;
            out.push_back({name, stamp, bytes_of(root_ / "cache" / name, marker, text)});
        }
        return out;
    }

    static std::uint64_t bytes_of(const std::filesystem::path& entry,
                                  const std::filesystem::path& marker, std::string& text) {
        std::uint64_t bytes = 0;
        if (try_read(marker, text) == 0)
            if (const auto parsed = EntryMarker::parse(text)) {
                for (const auto& file : parsed->files) bytes += file.size;
                if (!parsed->files.empty())
                    return bytes + text.size();
            }
        // A marker of another implementation lists nothing.
        std::error_code error;
        std::filesystem::recursive_directory_iterator it(entry, error), end;
        for (; !error && it != end; it.increment(error)) {
            std::error_code gone;
            const auto size = it->is_regular_file(gone) ? it->file_size(gone) : 0;
            bytes += gone ? 0 : size;
        }
        return bytes;
    }

    std::vector<std::string> names_in(const char* directory) const {
        std::vector<std::string> out;
        DIR* stream = ::opendir((root_ / directory).c_str());
        if (stream == nullptr)
            return out;
        while (const dirent* entry = ::readdir(stream)) {
            const std::string_view name = entry->d_name;
            if (name != "." && name != "..")
                out.emplace_back(name);
        }
        ::closedir(stream);
        return out;
    }

    /// Seconds since it was last changed; 0 when it is gone.
    static std::int64_t age_of(const std::filesystem::path& path) {
        struct stat info {};
        return ::lstat(path.c_str(), &info) == 0 ? std::int64_t(std::time(nullptr)) - info.st_mtime
                                                 : 0;
    }

    /// `rest` is "<pid>.<uuid>".
    static bool is_dead(const std::string& rest) {
        int pid = 0;
        const auto result = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
        return result.ec == std::errc() && pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
    }

    std::filesystem::path root_;
    StagingDir trash_;
};

/// Prunes and sweeps `root` when that is due: by a stamp file, at most once an hour among all who
/// share the root. For the slow path, after something was published.
template <typename OnRemoved>
PruneReport prune_when_due(const std::filesystem::path& root, const CacheLimit& limit,
                           OnRemoved&& on_removed) {
    const auto stamp = root / ".pruned";
    struct stat info {};
    if (::stat(stamp.c_str(), &info) == 0 && info.st_mtime + kStampSeconds > std::time(nullptr))
        return {};
    const auto file = fs_detail::open_retrying(stamp, O_WRONLY | O_CREAT, 0666);
    if (!file || ::futimens(file.get(), nullptr) != 0)
        return {};
    Pruner pruner(root);
    pruner.on_removed = std::forward<OnRemoved>(on_removed);
    PruneReport report;
    if (!limit.unlimited())
        report = pruner.prune(limit);
    report.swept = pruner.sweep();
    return report;
}

}  // namespace deep_jit
