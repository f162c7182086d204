// Kernel source in, loaded kernel out, launched: the runtime that a kernel library embeds.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <deep_jit/cache/disk.hpp>
#include <deep_jit/cache/explain.hpp>
#include <deep_jit/cache/hot_table.hpp>
#include <deep_jit/cache/memory.hpp>
#include <deep_jit/cache/node_flight.hpp>
#include <deep_jit/cache/prune.hpp>
#include <deep_jit/cache/single_flight.hpp>
#include <deep_jit/cache/statistics.hpp>
#include <deep_jit/runtime/arguments.hpp>
#include <deep_jit/runtime/backend_concept.hpp>
#include <deep_jit/runtime/config.hpp>
#include <deep_jit/runtime/options.hpp>
#include <deep_jit/source/digest.hpp>
#include <deep_jit/source/parser.hpp>
#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/gil.hpp>
#include <deep_jit/utils/hash.hpp>
#include <deep_jit/utils/lazy.hpp>
#include <deep_jit/utils/short_equal.hpp>

namespace deep_jit {

/// Compiles, caches, loads and launches kernels of one backend for one library. Thread-safe, but
/// for assigning `default_compiler_options` and `default_launch_options` while others use them.
/// Making one reads environment variables and nothing else: no compiler is looked for and no
/// device is asked before an answer is needed.
template <Backend B>
class Runtime {
public:
    using Kernel = typename B::Kernel;
    using Device = typename B::Device;
    using CompilerOptions = typename B::CompilerOptions;
    using LaunchOptions = typename B::LaunchOptions;

    /// Snapshot of what the library said; do not change.
    Config config;
    /// Reads `<PREFIX>_X`, then `DJ_X`.
    Env env;
    Device device;
    /// What unset fields of the options given to `compile` and `launch` inherit. May be changed:
    /// later calls see it. Do not clear fields that are set.
    CompilerOptions default_compiler_options;
    LaunchOptions default_launch_options;
    /// Do not change the rest.
    DiskCache disk_cache;
    B backend;
    Parser parser;
    MemCache<std::string, std::shared_ptr<Kernel>> mem_cache;  ///< by `<tag>.<digest>`
    LazyValue<hash::FNV1a> hash_base;                          ///< digest components 1 and 2

    /// Throws ConfigError for environment variables with invalid values, and CacheError for a
    /// cache root that others can put code into.
    explicit Runtime(Config library_config)
        : config(std::move(library_config)),
          env(config.env_prefix),
          default_compiler_options(CompilerOptions::default_options(env, device)),
          default_launch_options(LaunchOptions::default_options(env)),
          disk_cache(DiskCache::from_env(env)),
          backend(config, env, disk_cache.paths, device),
          parser(config.include_dirs, config.include_prefixes),
          hash_base(
              [this] { return digest_base(config.extra_signature, backend.compiler_hash()); }),
          limit_(CacheLimit::from_env(env)),
          node_flight_(env) {
        disk_cache.on_quarantined = [this](const std::string& name) {
            statistics_.add({.kind = CacheEvent::Kind::quarantined, .name = name});
        };
        take_defaults();
    }

    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    /// The kernel of `source`, from memory, from disk, or compiled now. `tag` (letters, digits,
    /// underscores) names it in the cache; it is not part of the digest. `source` must define or
    /// instantiate exactly one kernel.
    ///
    /// A kernel that is in memory costs one hash and one comparison of its source; no lock is
    /// taken and nothing is allocated, but for a counter when a thread asks for the first time.
    /// Else threads that want the same kernel share one compilation. Throws ConfigError,
    /// ToolchainError, CompileError, CacheError or LoadError; a failure is not remembered.
    std::shared_ptr<Kernel> compile(std::string_view tag, std::string_view source,
                                    const CompilerOptions& options = {}) {
        const Defaults* defaults = current_defaults();
        const bool plain = no_options(options);
        const std::uint64_t hash = hot_hash(tag, source, options, plain, defaults);
        const auto same = [&](const HotEntry& entry) {
            return entry.defaults == defaults && entry.plain == plain &&
                   str::short_equal(entry.tag(), tag) && entry.source == source &&
                   (plain || same_options(entry.options, options));
        };
        if (const HotEntry* entry = hot_.find(hash, same)) [[likely]] {
            const auto thread = detail::thread_number();
            statistics_.memory_hit(entry->name, thread);
            return entry->kernel.get(thread);
        }
        const GilRelease no_gil;
        std::string name;
        auto kernel = find_or_load(tag, source, options, name);
        auto entry = std::make_unique<HotEntry>(defaults, std::move(name), tag.size(), source,
                                                options, kernel);
        return hot_.insert(hash, std::move(entry), same)->kernel.get();
    }

    /// Directory with the artifact of `source`, from disk or compiled now; nothing is loaded, no
    /// device is needed when the architecture is given, and the number of kernels is not looked
    /// at. Throws as `compile` does.
    std::filesystem::path compile_without_load(std::string_view tag, std::string_view source,
                                               const CompilerOptions& options = {}) {
        const GilRelease no_gil;
        check_tag(tag);
        const auto effective = effective_options(options);
        return obtain(key_of(tag, source, effective), source, effective).path();
    }

    /// Digest of `source` under these options: 32 hexadecimal digits.
    std::string cache_key(std::string_view source, const CompilerOptions& options = {}) {
        return digest_of(source, effective_options(options));
    }

    /// What the caches did since this runtime was made.
    Statistics statistics() const { return statistics_.snapshot(); }

    /// See StatisticsRecorder::set_callback.
    void set_cache_event_callback(StatisticsRecorder::Callback callback) {
        statistics_.set_callback(std::move(callback));
    }

    /// Why a kernel is not in the disk cache: the entries of the same tag that are there, each
    /// with the components of the key that differ; the most alike first. Throws as `cache_key`.
    std::vector<MissReason> explain_miss(std::string_view tag, std::string_view source,
                                         const CompilerOptions& options = {}) {
        check_tag(tag);
        return deep_jit::explain_miss(disk_cache.paths, tag,
                                      components_of(source, effective_options(options)));
    }

    /// Launches `kernel` with `default_launch_options` overridden by `options`. Arguments are
    /// passed by their bytes and must have the sizes of the kernel's parameters. Throws
    /// LaunchError.
    template <typename... Args>
    void launch(const std::shared_ptr<Kernel>& kernel, const LaunchOptions& options,
                const Args&... args) const {
        if (kernel == nullptr) [[unlikely]]
            throw LaunchError("The kernel must not be null");
        void* const pointers[sizeof...(Args) + 1] = {argument_pointer(args)..., nullptr};
        backend.launch(*kernel, default_launch_options, options,
                       Arguments{pointers, detail::kArgumentInfos<Args...>, sizeof...(Args)});
    }

private:
    /// A value that `default_compiler_options` had. Its address stands for it in the hot table.
    struct Defaults {
        CompilerOptions options;
    };

    struct HotEntry {
        const Defaults* defaults;
        std::string name;  ///< <tag>.<digest>
        std::size_t tag_size;
        std::string source;
        CompilerOptions options;
        bool plain;  ///< `options` sets nothing
        StripedPtr<Kernel> kernel;

        std::string_view tag() const { return std::string_view(name).substr(0, tag_size); }

        HotEntry(const Defaults* its_defaults, std::string its_name, std::size_t its_tag_size,
                 std::string_view its_source, const CompilerOptions& its_options,
                 const std::shared_ptr<Kernel>& its_kernel)
            : defaults(its_defaults),
              name(std::move(its_name)),
              tag_size(its_tag_size),
              source(its_source),
              options(its_options),
              plain(no_options(its_options)),
              kernel(its_kernel) {}
    };

    /// A build that may stay private. Shared by the threads that waited for it.
    struct PrivateBuild : DiskCacheEntry {
        explicit PrivateBuild(DiskCacheEntry entry) : DiskCacheEntry(std::move(entry)) {}
        ~PrivateBuild() {
            if (keep)
                staging.release();
        }
        std::atomic<bool> keep{false};  ///< someone was given its path
        bool source_kept = false;       ///< it failed for good, and `path` was moved away
    };

    /// An artifact just found or built. What could not be published lives as long as someone
    /// holds this.
    struct Artifact {
        std::shared_ptr<CheckedEntry> checked;
        std::shared_ptr<PrivateBuild> unpublished;

        /// A path that stays: a private build is left on disk for the caller.
        const std::filesystem::path& path() const {
            if (unpublished != nullptr)
                unpublished->keep = true;
            return checked->path;
        }
    };

    const Defaults* current_defaults() {
        const Defaults* defaults = defaults_.load(std::memory_order_acquire);
        if (same_options(defaults->options, default_compiler_options)) [[likely]]
            return defaults;
        return take_defaults();
    }

    const Defaults* take_defaults() {
        const std::lock_guard lock(defaults_mutex_);
        for (const auto& known : all_defaults_)
            if (same_options(known->options, default_compiler_options)) {
                defaults_.store(known.get(), std::memory_order_release);
                return known.get();
            }
        all_defaults_.push_back(std::make_unique<Defaults>(Defaults{default_compiler_options}));
        defaults_.store(all_defaults_.back().get(), std::memory_order_release);
        return all_defaults_.back().get();
    }

    static std::uint64_t hot_hash(std::string_view tag, std::string_view source,
                                  const CompilerOptions& options, bool plain,
                                  const Defaults* defaults) {
        hash::FastHash hash;
        hash.add(source);
        hash.add(tag);
        hash.add(reinterpret_cast<std::uintptr_t>(defaults));
        if (!plain)
            hash_options(hash, options);
        return hash.value();
    }

    static void check_tag(std::string_view tag) {
        bool good = !tag.empty();
        for (const char c : tag) good = good && str::is_word_char(c);
        if (!good)
            detail::throw_error<ConfigError>(
                "The cache tag must contain only letters, digits, or underscores: '{}'", tag);
        // The entry's name is <tag>.<digest>, and file names end at 255 bytes.
        if (tag.size() > 200)
            detail::throw_error<ConfigError>("The cache tag is longer than 200 characters: '{}'",
                                             tag);
    }

    CompilerOptions effective_options(const CompilerOptions& options) {
        return backend.resolve(default_compiler_options.override_with(options));
    }

    std::string digest_of(std::string_view source, const CompilerOptions& effective) {
        return kernel_digest(hash_base, backend.key_flags(effective), backend.key_hook(effective),
                             parser.parse_into_hash(source));
    }

    std::string key_of(std::string_view tag, std::string_view source,
                       const CompilerOptions& effective) {
        return std::string(tag) + "." + digest_of(source, effective);
    }

    KeyComponents components_of(std::string_view source, const CompilerOptions& effective) {
        return KeyComponents::of(config.extra_signature, backend.compiler_hash(),
                                 backend.key_flags(effective), backend.key_hook(effective), source,
                                 parser.parse_into_hash(source));
    }

    std::shared_ptr<Kernel> find_or_load(std::string_view tag, std::string_view source,
                                         const CompilerOptions& options, std::string& key) {
        check_tag(tag);
        const auto effective = effective_options(options);
        key = key_of(tag, source, effective);
        return mem_cache.get_or_create(key, [&]() -> std::shared_ptr<Kernel> {
            const Artifact artifact = obtain(key, source, effective);
            return B::load(LoadRequest{artifact.checked->artifact, artifact.checked->path, key},
                           env);
        });
    }

    /// The artifact of a key: one thread looks or builds, others that want it share the result.
    Artifact obtain(const std::string& key, std::string_view source,
                    const CompilerOptions& effective) {
        return building_.run(key, [&]() -> Artifact {
            if (auto found = find_on_disk(key, source))
                return {std::move(found), nullptr};
            ProcessLock lock;
            if (!disk_cache.paths.empty()) {
                const Stopwatch watch;
                const bool waited = node_flight_.enter(disk_cache.paths[0], key, lock);
                if (waited)
                    statistics_.add({.kind = CacheEvent::Kind::waited,
                                     .name = key,
                                     .seconds = watch.seconds()});
                // Another process may have published it while this one waited, or just before.
                if (waited || lock.held())
                    if (auto found = find_on_disk(key, source))
                        return {std::move(found), nullptr};
            }
            const Stopwatch watch;
            try {
                auto built = build(key, source, effective);
                lock.release();
                statistics_.add(
                    {.kind = CacheEvent::Kind::compiled, .name = key, .seconds = watch.seconds()});
                if (built.unpublished == nullptr)
                    prune();
                return built;
            } catch (...) {
                lock.release_failed();
                statistics_.add(
                    {.kind = CacheEvent::Kind::failed, .name = key, .seconds = watch.seconds()});
                throw;
            }
        });
    }

    std::shared_ptr<CheckedEntry> find_on_disk(const std::string& key, std::string_view source) {
        const Stopwatch watch;
        auto found = disk_cache.find(key, B::entry_files(), source);
        if (!found)
            return nullptr;
        touch_entry(found->path);
        statistics_.add({.kind = CacheEvent::Kind::disk_hit,
                         .name = key,
                         .root = found->root.native(),
                         .seconds = watch.seconds()});
        return std::make_shared<CheckedEntry>(*std::move(found));
    }

    /// Keeps the first root within `JIT_CACHE_LIMIT`, when that is due.
    void prune() {
        prune_when_due(disk_cache.paths[0], limit_, [this](const std::string& name, std::uint64_t) {
            statistics_.add({.kind = CacheEvent::Kind::evicted, .name = name});
        });
    }

    Artifact build(const std::string& key, std::string_view source,
                   const CompilerOptions& effective) {
        auto entry = std::make_shared<PrivateBuild>(disk_cache.new_entry(key));
        if (entry->commit_path.empty())
            return build_in(entry, key, source, effective);
        try {
            return build_in(entry, key, source, effective);
        } catch (const CacheError& error) {
            DiskCache::warn_unwritable(env, disk_cache.paths[0], error.what());
        } catch (const Error&) {
            // Below a root that is full, read-only by now or gone, nothing builds, and what the
            // compiler says there tells nothing about the kernel.
            const int error = entry->source_kept ? 0 : entry->why_unusable();
            if (error == 0)
                throw;
            DiskCache::warn_unwritable(env, disk_cache.paths[0], detail::errno_text(error));
        }
        const DiskCache nowhere({}, env);
        return build_in(std::make_shared<PrivateBuild>(nowhere.new_entry(key)), key, source,
                        effective);
    }

    Artifact build_in(std::shared_ptr<PrivateBuild> entry, const std::string& key,
                      std::string_view source, const CompilerOptions& effective) {
        const auto files = B::entry_files();
        write_file_sync(entry->path / files.source_name, source);
        const auto published = entry->commit_path.empty() ? entry->path : entry->commit_path;
        json meta;
        try {
            meta = backend.build(
                BuildRequest<CompilerOptions>{entry->path, published, config, env, effective, key});
        } catch (const CompileError& error) {
            if (!entry->commit_path.empty() && entry->why_unusable() != 0)
                throw;
            // The message gets the place where the source can still be read.
            entry->source_kept = true;
            const auto kept = disk_cache.keep_failed(*entry);
            try_write_file_sync(kept / "compiler.log", error.log());
            const auto kept_source = (kept / files.source_name).string();
            throw CompileError(str::format("{}\nThe source is kept in {} (cache key {})",
                                           error.what(), kept_source, key),
                               {error.command(), error.log(), kept_source, key});
        }
        meta["config"] = config.to_json();
        meta["compiler_options"] = effective.to_json();
        meta["key"] = components_of(source, effective).to_json();
        write_file_sync(entry->path / "meta.json", meta.dump(2) + "\n");
        // From here on the bytes in memory count: what the disk does with them cannot hurt.
        auto artifact = std::make_shared<CheckedEntry>(
            CheckedEntry{{}, read(entry->path / files.artifact_name), {}});
        entry->commit();
        artifact->path = entry->path;
        return {std::move(artifact), entry->committed ? nullptr : std::move(entry)};
    }

    std::atomic<const Defaults*> defaults_{nullptr};
    std::mutex defaults_mutex_;
    std::vector<std::unique_ptr<Defaults>> all_defaults_;
    HotTable<HotEntry> hot_;
    SingleFlight<std::string, Artifact> building_;
    StatisticsRecorder statistics_;
    CacheLimit limit_;
    NodeFlight node_flight_;
};

/// A runtime that is made at its first use.
template <Backend B>
LazyInit<Runtime<B>> create_lazy_jit(Config config) {
    return LazyInit<Runtime<B>>(
        [config = std::move(config)] { return std::make_unique<Runtime<B>>(config); });
}

}  // namespace deep_jit
