// Kernel binaries on disk: finding and checking entries, building and publishing new ones.
//
//     <root>/cache/<tag>.<digest>/    an entry: source, artifact, meta.json, .committed, dumps
//     <root>/tmp/                     builds in progress, private
//     <root>/quarantine/              entries that were found damaged
//     <root>/failed/                  sources that did not compile, with the compiler's log
//     <root>/toolchain/               what compilers said of their version
//
// Nothing here rests on locks, on modification times, or on seeing at once what another machine
// wrote. A cache that cannot be written makes kernels uncached, not calls fail.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <deep_jit/cache/entry_marker.hpp>
#include <deep_jit/cache/staging.hpp>
#include <deep_jit/cache/trust.hpp>
#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/log.hpp>

namespace deep_jit {

/// One entry, found or about to be built.
struct DiskCacheEntry {
    bool hit = false;        ///< a complete entry was found at `path`
    bool committed = false;  ///< `path` is a complete entry
    /// The entry's directory: a found one, or a private directory to build in.
    std::filesystem::path path;
    /// Where the entry is published in the first root; empty when nothing can be published.
    std::filesystem::path commit_path;

    /// Publishes what was built in `path`: checksums, fsync, one rename. Returns true when
    /// `path` is now the published entry; false when it stays private (then it lives as long as
    /// this object), because another process was first or the root cannot be written.
    bool commit();

    /// After a build failed: errno of what is wrong with `path` itself (it is gone, or nothing
    /// more can be written there); 0 when nothing is. A disk that is nearly full counts as full.
    int why_unusable() const;

    Env env{std::string(kGlobalEnvPrefix)};
    StagingDir staging;
};

/// What a kernel's entry must hold to be used.
struct EntryFiles {
    std::string source_name;    ///< such as "kernel.cu"
    std::string artifact_name;  ///< such as "kernel.cubin"
};

/// An entry whose files were checked, with the artifact's bytes as they were checked.
struct CheckedEntry {
    std::filesystem::path path;
    std::string artifact;
    std::filesystem::path root;  ///< in which it was found
};

class DiskCache {
public:
    std::vector<std::filesystem::path> paths;  ///< roots, absolute; the first is written to
    /// Called with the name of each entry that is moved aside.
    std::function<void(const std::string&)> on_quarantined;

    /// No roots: nothing is found and nothing is kept. Paths are made absolute.
    explicit DiskCache(const std::vector<std::filesystem::path>& roots = {},
                       Env env = Env(std::string(kGlobalEnvPrefix)))
        : env_(std::move(env)) {
        for (const auto& root : roots) {
            if (root.empty())
                throw ConfigError("The list of cache roots contains an empty path");
            paths.push_back(normalize_path(root));
        }
    }

    /// Roots of `JIT_CACHE_DIR` (colon-separated), else `$HOME/.dj`, else none. Throws
    /// ConfigError for an empty element, and CacheError for a root in which a stranger could have
    /// put code, unless `JIT_TRUST_CACHE_DIR` is set to 1.
    static DiskCache from_env(const Env& env) {
        auto out = of_env(env);
        if (!env.get("JIT_TRUST_CACHE_DIR", false))
            for (const auto& root : out.paths)
                if (const auto reason = distrust(root); !reason.empty())
                    detail::throw_error<CacheError>(
                        "The cache root {} is not used, because others could have put code into "
                        "it: {}. Choose another one ({}), correct its permissions, or set {}=1 to "
                        "use it nevertheless",
                        root, reason, env.name_of("JIT_CACHE_DIR"),
                        env.name_of("JIT_TRUST_CACHE_DIR"));
        return out;
    }

    /// The entry of a tag and digest: the first complete one, or a fresh directory to build in.
    DiskCacheEntry entry(std::string_view tag, std::string_view digest) const {
        const std::string name = str::format("{}.{}", tag, digest);
        for (const auto& root : paths) {
            auto path = root / "cache" / name;
            if (is_file(path / kCommitFileName)) {
                DiskCacheEntry found;
                found.hit = found.committed = true;
                found.commit_path = path;
                found.path = std::move(path);
                return found;
            }
        }
        return new_entry(name);
    }

    /// A private directory to build an entry of this name (`<tag>.<digest>`) in: below the first
    /// root, or in the temporary directory when that cannot be written. Throws CacheError when
    /// neither can.
    DiskCacheEntry new_entry(const std::string& name) const {
        DiskCacheEntry out;
        out.env = env_;
        if (!paths.empty()) {
            const int error = StagingDir::create(paths[0] / "tmp", name, out.staging);
            if (error == 0)
                out.commit_path = paths[0] / "cache" / name;
            else
                warn_unwritable(env_, paths[0], detail::errno_text(error));
        }
        if (out.staging.empty()) {
            const auto parent = fallback_staging_parent();
            if (const int error = StagingDir::create(parent, name, out.staging))
                detail::throw_error<CacheError>(
                    "There is no place to build kernels in: neither a cache root nor {} can be "
                    "written: {}",
                    parent, detail::errno_text(error));
        }
        out.path = out.staging.entry_path();
        return out;
    }

    /// A complete and undamaged entry whose kernel source equals `source`. A damaged one is moved
    /// aside and reported, and counts as missing. Throws nothing but for lack of memory.
    std::optional<CheckedEntry> find(const std::string& name, const EntryFiles& files,
                                     std::string_view source) const {
        for (const auto& root : paths) {
            auto path = root / "cache" / name;
            std::string problem;
            State state = State::missing;
            // A network filesystem may replace or drop what was just seen: look again, then give
            // up.
            for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
                CheckedEntry out{path, {}, root};
                problem.clear();
                state = check(out, files, source, problem);
                if (state == State::good)
                    return out;
                if (state != State::incomplete && state != State::unreadable)
                    break;
                std::this_thread::sleep_for(std::chrono::milliseconds(attempt + 1));
            }
            // An incomplete entry stays so, and as long as it is there nothing can be published.
            if (state == State::damaged || state == State::incomplete)
                quarantine(path, problem);
        }
        return std::nullopt;
    }

    /// Moves a damaged entry to `<first root>/quarantine/` and says so, once. An entry that cannot
    /// be moved (a read-only root) is left where it is.
    void quarantine(const std::filesystem::path& path, std::string_view problem) const {
        const auto directory = paths[0] / "quarantine";
        std::error_code error;
        if (try_make_dirs(directory) == 0)
            std::filesystem::rename(path, directory / (path.filename().string() + "." + get_uuid()),
                                    error);
        if (on_quarantined)
            on_quarantined(path.filename().string());
        log::warn_once(env_, "damaged " + path.string(),
                       str::format("the cache entry {} is damaged ({}); it is not used and its "
                                   "kernel is compiled again",
                                   path, problem));
    }

    /// Keeps the directory of a build that failed, so that its source can be looked at: below
    /// `<first root>/failed/`, one for each name. Returns where it is.
    std::filesystem::path keep_failed(DiskCacheEntry& entry) const {
        if (!entry.commit_path.empty()) {
            const auto target = paths[0] / "failed" / entry.path.filename();
            std::error_code error;
            if (try_make_dirs(target.parent_path()) == 0) {
                safe_remove_all(target);
                std::filesystem::rename(entry.path, target, error);
                if (!error)
                    return target;
            }
        }
        return entry.staging.release();
    }

    static void warn_unwritable(const Env& env, const std::filesystem::path& root,
                                std::string_view problem) {
        log::warn_once(env, "unwritable " + root.string(),
                       str::format("the cache root {} cannot be written: {}; kernels are compiled "
                                   "but not cached there",
                                   root, problem));
    }

private:
    static DiskCache of_env(const Env& env) {
        if (const auto list = env.get<std::string>("JIT_CACHE_DIR")) {
            std::vector<std::filesystem::path> roots;
            for (auto& root : str::split(*list, ':')) {
                if (root.empty())
                    detail::throw_error<ConfigError>("{} contains an empty path: '{}'",
                                                     env.name_of("JIT_CACHE_DIR"), *list);
                roots.emplace_back(std::move(root));
            }
            return DiskCache(roots, env);
        }
        const auto home = get_env<std::string>("HOME");
        if (home && !home->empty())
            return DiskCache({std::filesystem::path(*home) / ".dj"}, env);
        log::warn_once(env, "no home",
                       "HOME is not set, so compiled kernels are kept in memory only. Set HOME or "
                       "DJ_JIT_CACHE_DIR to keep them on disk");
        return DiskCache({}, env);
    }

    enum class State { good, missing, damaged, incomplete, unreadable };
    static constexpr int kReadAttempts = 4;

    static State check(CheckedEntry& entry, const EntryFiles& files, std::string_view source,
                       std::string& problem) {
        std::string text;
        if (const int error = try_read(entry.path / kCommitFileName, text)) {
            problem = detail::errno_text(error);
            return error == ENOENT || error == ENOTDIR ? State::missing : State::unreadable;
        }
        const auto marker = EntryMarker::parse(text);
        if (!marker) {
            problem = ".committed is damaged";
            return State::damaged;
        }
        std::string bytes;
        bool has_artifact = false, has_source = false;
        const auto visit = [&](const std::string& name) {
            const int error = try_read(entry.path / name, bytes);
            if (error != 0)
                problem = str::format("cannot read {}: {}", name, detail::errno_text(error));
            else if (name == files.source_name)
                has_source = true;
            else if (name == files.artifact_name)
                has_artifact = true;
            // Gone although the marker is there: an entry being removed, or a stale view of it,
            // or someone cleaned up old files; or something else is in the file's place.
            return error == 0                                             ? State::good
                   : error == ENOENT || error == EISDIR || error == ELOOP ? State::incomplete
                                                                          : State::unreadable;
        };
        const auto same_source = [&] {
            if (bytes == source)
                return true;
            problem = files.source_name + " is not the source that was asked for";
            return false;
        };
        for (const auto& file : marker->files) {
            if (const auto state = visit(file.name); state != State::good)
                return state;
            if (bytes.size() != file.size || hash::checksum(bytes) != file.checksum) {
                problem = file.name + " does not have the recorded size and checksum";
                return State::damaged;
            }
            if (file.name == files.source_name && !same_source())
                return State::damaged;
            if (file.name == files.artifact_name)
                entry.artifact.swap(bytes);
        }
        // A marker of another implementation lists nothing.
        if (!has_source) {
            if (const auto state = visit(files.source_name); state != State::good)
                return state;
            if (!same_source())
                return State::damaged;
        }
        if (!has_artifact) {
            if (const auto state = visit(files.artifact_name); state != State::good)
                return state;
            entry.artifact.swap(bytes);
        }
        if (entry.artifact.empty()) {
            problem = files.artifact_name + " is empty";
            return State::damaged;
        }
        return State::good;
    }

    Env env_;
};

inline int DiskCacheEntry::why_unusable() const {
    const auto probe = path / ".probe";
    const int error = try_write_file_sync(probe, std::string(std::size_t(1) << 20, ' '));
    ::unlink(probe.c_str());
    return error;
}

inline bool DiskCacheEntry::commit() {
    if (committed || commit_path.empty())
        return committed;
    int error = 0;
    try {
        const auto marker = EntryMarker::of_directory(path);
        for (const auto& file : marker.files)
            if (error == 0)
                error = try_sync(path / file.name);
        if (error == 0)
            error = try_write_file_sync(path / kCommitFileName, marker.to_text());
        if (error == 0)
            error = try_sync(path);
    } catch (const CacheError&) {
        error = EIO;
    }
    const auto root = commit_path.parent_path().parent_path();
    if (error == 0)
        error = try_make_dirs(commit_path.parent_path());
    if (error == 0 && ::rename(path.c_str(), commit_path.c_str()) != 0)
        error = errno;
    struct stat in_the_way {};
    if ((error == ENOTEMPTY || error == EEXIST || error == ENOTDIR) &&
        ::lstat(commit_path.c_str(), &in_the_way) == 0 && !is_file(commit_path / kCommitFileName)) {
        // No winner of a race, but something that will never be an entry is in the way.
        DiskCache({root}, env).quarantine(commit_path, "it has no .committed");
        error = ::rename(path.c_str(), commit_path.c_str()) != 0 ? errno : 0;
    }
    if (error == ENOTEMPTY || error == EEXIST)
        return false;  // another process was first; what was built here serves as well
    if (error != 0) {
        DiskCache::warn_unwritable(env, root, detail::errno_text(error));
        return false;
    }
    try_sync(commit_path.parent_path());
    path = commit_path;
    committed = true;
    staging = StagingDir();
    return true;
}

}  // namespace deep_jit
