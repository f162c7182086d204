// The table behind a hot `compile()`: found without a lock, without an allocation, and without
// writing to memory that another thread uses.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace deep_jit {

/// Grow-only hash table from a 64-bit hash to entries. Entries are never removed, so a pointer
/// found stays good for the table's life. Readers are wait-free; writers take a mutex.
template <typename Entry>
class HotTable {
public:
    HotTable() { publish(64); }

    /// The entry of this hash for which `same(entry)` is true, or null.
    template <typename Same>
    const Entry* find(std::uint64_t hash, Same&& same) const {
        const Slots* slots = slots_.load(std::memory_order_acquire);
        for (std::size_t i = hash;; ++i) {
            const Slot& slot = slots->at[i & slots->mask];
            const Entry* entry = slot.entry.load(std::memory_order_acquire);
            if (entry == nullptr)
                return nullptr;
            if (slot.hash.load(std::memory_order_relaxed) == hash && same(*entry))
                return entry;
        }
    }

    /// Adds `entry`, unless one for which `same` is true came first. Returns the one that is in.
    template <typename Same>
    const Entry* insert(std::uint64_t hash, std::unique_ptr<Entry> entry, Same&& same) {
        const std::lock_guard lock(mutex_);
        if (const Entry* known = find(hash, same))
            return known;
        const Slots* slots = slots_.load(std::memory_order_relaxed);
        if (2 * (entries_.size() + 1) > slots->mask + 1) {
            publish(2 * (slots->mask + 1));
            for (const auto& [known_hash, known] : entries_) put(known_hash, known.get());
        }
        const Entry* result = entry.get();
        entries_.emplace_back(hash, std::move(entry));
        put(hash, result);
        return result;
    }

    std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return entries_.size();
    }

private:
    struct Slot {
        std::atomic<std::uint64_t> hash{0};
        std::atomic<const Entry*> entry{nullptr};
    };
    struct Slots {
        std::size_t mask;
        std::unique_ptr<Slot[]> at;
    };

    /// A new, empty slot array becomes the current one. A reader that runs meanwhile may miss an
    /// entry and take the slow path, which finds it. Older arrays stay, for readers still in them:
    /// together they are smaller than the current one.
    void publish(std::size_t capacity) {
        auto slots =
            std::make_unique<Slots>(Slots{capacity - 1, std::make_unique<Slot[]>(capacity)});
        all_slots_.push_back(std::move(slots));
        slots_.store(all_slots_.back().get(), std::memory_order_release);
    }

    void put(std::uint64_t hash, const Entry* entry) {
        Slots* slots = all_slots_.back().get();
        std::size_t i = hash & slots->mask;
        while (slots->at[i].entry.load(std::memory_order_relaxed) != nullptr)
            i = (i + 1) & slots->mask;
        slots->at[i].hash.store(hash, std::memory_order_relaxed);
        slots->at[i].entry.store(entry, std::memory_order_release);
    }

    std::atomic<const Slots*> slots_{nullptr};
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<Slots>> all_slots_;
    std::vector<std::pair<std::uint64_t, std::unique_ptr<Entry>>> entries_;
};

namespace detail {

inline constexpr std::size_t kCacheLine = 64;

/// Gives every allocation cache lines of its own.
template <typename T>
struct LineAllocator {
    using value_type = T;
    LineAllocator() = default;
    template <typename U>
    LineAllocator(const LineAllocator<U>&) {}  // NOLINT: allocators convert

    T* allocate(std::size_t count) {
        const auto bytes = (count * sizeof(T) + kCacheLine - 1) / kCacheLine * kCacheLine;
        return static_cast<T*>(::operator new(bytes, std::align_val_t(kCacheLine)));
    }
    void deallocate(T* pointer, std::size_t) {
        ::operator delete(pointer, std::align_val_t(kCacheLine));
    }
    template <typename U>
    bool operator==(const LineAllocator<U>&) const {
        return true;
    }
};

inline std::size_t thread_number() {
    static std::atomic<std::size_t> count{0};
    thread_local const std::size_t number = count.fetch_add(1, std::memory_order_relaxed);
    return number;
}

}  // namespace detail

/// One shared_ptr for many threads to copy at once. Each copy counts a reference; were it always
/// the same counter, threads would wait for each other's cache line. So there are several
/// counters, one a group of threads, all of which keep the one object alive.
template <typename T>
class StripedPtr {
public:
    explicit StripedPtr(const std::shared_ptr<T>& object) {
        const auto count = std::bit_ceil(
            std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMaxStripes));
        for (std::size_t i = 0; i < count; ++i)
            stripes_.emplace_back(
                object.get(), [object](T*) {}, detail::LineAllocator<char>());
    }

    const std::shared_ptr<T>& get() const {
        return stripes_[detail::thread_number() & (stripes_.size() - 1)];
    }

private:
    static constexpr std::size_t kMaxStripes = 32;
    std::vector<std::shared_ptr<T>> stripes_;
};

}  // namespace deep_jit
