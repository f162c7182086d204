// The table behind a hot `compile()`: found without a lock, without an allocation, and without
// writing to memory that another thread uses.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
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

inline constexpr std::size_t kMaxThreadNumbers = 64;

/// A small number of a thread.
struct ThreadNumber {
    std::size_t value = kMaxThreadNumbers;  ///< below kMaxThreadNumbers once it is given out
    bool exclusive = false;                 ///< no other living thread has it
};

/// Gives out numbers: each to one thread, as long as there are no more threads than numbers; above
/// that, numbers are shared. Taken without a lock, so that a child forked at any moment can go on.
class ThreadNumberLease {
public:
    explicit ThreadNumberLease(ThreadNumber& out) : out_(out) {
        std::uint64_t taken = all_taken().load(std::memory_order_relaxed);
        while (~taken != 0) {
            const auto number = static_cast<std::size_t>(std::countr_one(taken));
            const auto mine = std::uint64_t(1) << number;
            // Acquire: what the thread that had it before counted is seen.
            if (all_taken().compare_exchange_weak(taken, taken | mine, std::memory_order_acquire,
                                                  std::memory_order_relaxed)) {
                mine_ = mine;
                out_ = {number, true};
                return;
            }
        }
        static std::atomic<std::size_t> next{0};
        out_ = {next.fetch_add(1, std::memory_order_relaxed) % kMaxThreadNumbers, false};
    }
    ThreadNumberLease(const ThreadNumberLease&) = delete;
    ThreadNumberLease& operator=(const ThreadNumberLease&) = delete;
    ~ThreadNumberLease() {
        // Objects of the thread that end later may still ask.
        out_.exclusive = false;
        all_taken().fetch_and(~mine_, std::memory_order_release);
    }

private:
    /// One bit for each number.
    static std::atomic<std::uint64_t>& all_taken() {
        static constinit std::atomic<std::uint64_t> bits{0};
        return bits;
    }

    ThreadNumber& out_;
    std::uint64_t mine_ = 0;
};

[[gnu::cold, gnu::noinline]] inline void take_thread_number(ThreadNumber& out) {
    thread_local const ThreadNumberLease lease(out);
}

/// That of the calling thread.
inline ThreadNumber thread_number() {
    // A constant to begin with: unlike an object that is constructed, it needs no guard.
    thread_local constinit ThreadNumber number;
    if (number.value == kMaxThreadNumbers) [[unlikely]]
        take_thread_number(number);
    return number;
}

}  // namespace detail

/// One shared_ptr for many threads to copy at once. Each copy counts a reference; were it always
/// the same counter, threads would wait for each other's cache line. So each thread gets a counter
/// of its own (made at its first call), all of which keep the one object alive.
template <typename T>
class StripedPtr {
public:
    explicit StripedPtr(const std::shared_ptr<T>& object) : object_(object) {}
    StripedPtr(const StripedPtr&) = delete;
    StripedPtr& operator=(const StripedPtr&) = delete;
    ~StripedPtr() {
        for (const auto& stripe : stripes_) delete stripe.load(std::memory_order_acquire);
    }

    const std::shared_ptr<T>& get(detail::ThreadNumber thread = detail::thread_number()) const {
        auto& stripe = stripes_[thread.value];
        const std::shared_ptr<T>* mine = stripe.load(std::memory_order_acquire);
        return mine != nullptr ? *mine : add(stripe);
    }

private:
    using Stripe = std::atomic<const std::shared_ptr<T>*>;

    [[gnu::noinline]] const std::shared_ptr<T>& add(Stripe& stripe) const {
        auto made = std::make_unique<const std::shared_ptr<T>>(
            object_.get(), [object = object_](T*) {}, detail::LineAllocator<char>());
        const std::shared_ptr<T>* known = nullptr;
        // With more threads than numbers, another one may have been faster.
        if (stripe.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel))
            return *made.release();
        return *known;
    }

    std::shared_ptr<T> object_;
    mutable std::array<Stripe, detail::kMaxThreadNumbers> stripes_{};
};

}  // namespace deep_jit
