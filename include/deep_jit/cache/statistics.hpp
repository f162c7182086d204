// What the caches of a runtime did: counters, and events for those who want to hear of each.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <deep_jit/cache/hot_table.hpp>
#include <deep_jit/utils/json.hpp>

namespace deep_jit {

/// One thing that happened.
struct CacheEvent {
    enum class Kind {
        memory_hit,   ///< `compile()` found the kernel in memory
        disk_hit,     ///< found in the root `root`; seconds: reading and checking it
        compiled,     ///< compiled here; seconds: the whole build, publication included
        waited,       ///< waited for another process that was at it; seconds: how long
        failed,       ///< a build that threw; seconds: until then
        quarantined,  ///< a damaged entry was moved aside
        evicted       ///< an entry was removed to keep to `JIT_CACHE_LIMIT`
    };
    Kind kind;
    std::string_view name;    ///< `<tag>.<digest>`; valid during the call
    std::string_view root{};  ///< of a disk hit: the cache root; valid during the call
    double seconds = 0;
};

inline constexpr std::size_t kCacheEventKinds = 7;

/// The kind's name: "memory_hit", "disk_hit", ...
inline std::string_view name_of(CacheEvent::Kind kind) {
    constexpr std::array<std::string_view, kCacheEventKinds> names = {
        "memory_hit", "disk_hit", "compiled", "waited", "failed", "quarantined", "evicted"};
    return names[static_cast<std::size_t>(kind)];
}

/// Counters since the runtime was made, and the seconds that went into each. (A child counts on
/// from its parent's numbers at the fork.)
struct Statistics {
    std::uint64_t memory_hits = 0;
    std::uint64_t disk_hits = 0;
    std::uint64_t compiled = 0;
    std::uint64_t waited = 0;
    std::uint64_t failed = 0;
    std::uint64_t quarantined = 0;
    std::uint64_t evicted = 0;
    double disk_hit_seconds = 0;
    double compiled_seconds = 0;
    double waited_seconds = 0;
    double failed_seconds = 0;
    std::map<std::string, std::uint64_t> disk_hits_by_root;

    /// The fields under their names.
    json to_json() const {
        json out = json::object();
        out["memory_hits"] = memory_hits;
        out["disk_hits"] = disk_hits;
        out["compiled"] = compiled;
        out["waited"] = waited;
        out["failed"] = failed;
        out["quarantined"] = quarantined;
        out["evicted"] = evicted;
        out["disk_hit_seconds"] = disk_hit_seconds;
        out["compiled_seconds"] = compiled_seconds;
        out["waited_seconds"] = waited_seconds;
        out["failed_seconds"] = failed_seconds;
        json roots = json::object();
        for (const auto& [root, hits] : disk_hits_by_root) roots[root] = hits;
        out["disk_hits_by_root"] = std::move(roots);
        return out;
    }
};

/// Counts. Memory hits, which the hot path reports, cost one addition in a cache line of the
/// calling thread's own.
class StatisticsRecorder {
public:
    using Callback = std::function<void(const CacheEvent&)>;

    StatisticsRecorder() = default;
    StatisticsRecorder(const StatisticsRecorder&) = delete;
    StatisticsRecorder& operator=(const StatisticsRecorder&) = delete;

    void memory_hit(std::string_view name, detail::ThreadNumber thread = detail::thread_number()) {
        auto& count = memory_hits_[thread.value].count;
        if (thread.exclusive) [[likely]]
            count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        else
            count.fetch_add(1, std::memory_order_relaxed);
        if (const Callback* callback = callback_.load(std::memory_order_acquire)) [[unlikely]]
            (*callback)(CacheEvent{.kind = CacheEvent::Kind::memory_hit, .name = name});
    }

    /// Anything but a memory hit.
    void add(const CacheEvent& event) {
        {
            const std::lock_guard lock(mutex_);
            const auto kind = static_cast<std::size_t>(event.kind);
            ++counts_[kind];
            seconds_[kind] += event.seconds;
            if (event.kind == CacheEvent::Kind::disk_hit)
                ++by_root_[std::string(event.root)];
        }
        if (const Callback* callback = callback_.load(std::memory_order_acquire))
            (*callback)(event);
    }

    Statistics snapshot() const {
        using Kind = CacheEvent::Kind;
        Statistics out;
        for (const auto& stripe : memory_hits_)
            out.memory_hits += stripe.count.load(std::memory_order_relaxed);
        const std::lock_guard lock(mutex_);
        const auto count = [&](Kind kind) { return counts_[static_cast<std::size_t>(kind)]; };
        const auto seconds = [&](Kind kind) { return seconds_[static_cast<std::size_t>(kind)]; };
        out.disk_hits = count(Kind::disk_hit);
        out.compiled = count(Kind::compiled);
        out.waited = count(Kind::waited);
        out.failed = count(Kind::failed);
        out.quarantined = count(Kind::quarantined);
        out.evicted = count(Kind::evicted);
        out.disk_hit_seconds = seconds(Kind::disk_hit);
        out.compiled_seconds = seconds(Kind::compiled);
        out.waited_seconds = seconds(Kind::waited);
        out.failed_seconds = seconds(Kind::failed);
        out.disk_hits_by_root = by_root_;
        return out;
    }

    /// Calls `callback` with each event from now on, in the thread in which it happens; it must
    /// not throw and must not use the runtime. An empty one ends that. The former one may still
    /// be running in another thread, so it is kept.
    void set_callback(Callback callback) {
        const std::lock_guard lock(mutex_);
        if (!callback) {
            callback_.store(nullptr, std::memory_order_release);
            return;
        }
        callbacks_.push_back(std::make_unique<const Callback>(std::move(callback)));
        callback_.store(callbacks_.back().get(), std::memory_order_release);
    }

private:
    struct alignas(64) Stripe {
        std::atomic<std::uint64_t> count{0};
    };

    std::array<Stripe, detail::kMaxThreadNumbers> memory_hits_{};
    mutable std::mutex mutex_;
    std::array<std::uint64_t, kCacheEventKinds> counts_{};
    std::array<double, kCacheEventKinds> seconds_{};
    std::map<std::string, std::uint64_t> by_root_;
    std::vector<std::unique_ptr<const Callback>> callbacks_;
    std::atomic<const Callback*> callback_{nullptr};
};

/// A clock for events.
class Stopwatch {
public:
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace deep_jit
