// Values kept in memory for the cache's life, each made once.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <deep_jit/cache/single_flight.hpp>

namespace deep_jit {

/// Map from Key to Value (a cheap copy, such as a shared_ptr). Thread-safe.
template <typename Key, typename Value>
class MemCache {
public:
    /// The value of `key`; made by `make()` when there is none yet. Threads that ask for the same
    /// key wait for one maker; other keys go on meanwhile. What `make` throws reaches every
    /// waiter and is not kept.
    template <typename Make>
    Value get_or_create(const Key& key, Make&& make) {
        if (auto value = find(key))
            return *std::move(value);
        return flights_.run(key, [&]() -> Value {
            // The maker before us may just have finished.
            if (auto value = find(key))
                return *std::move(value);
            Value value = make();
            const std::lock_guard lock(mutex_);
            return values_.insert_or_assign(key, std::move(value)).first->second;
        });
    }

    std::optional<Value> find(const Key& key) const {
        const std::lock_guard lock(mutex_);
        const auto it = values_.find(key);
        return it != values_.end() ? std::optional(it->second) : std::nullopt;
    }

    std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return values_.size();
    }

private:
    mutable std::mutex mutex_;
    std::map<Key, Value> values_;
    SingleFlight<Key, Value> flights_;
};

}  // namespace deep_jit
