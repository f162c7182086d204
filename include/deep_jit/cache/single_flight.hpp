// When several threads want the same thing at once, one makes it and all get it.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace deep_jit {

/// Runs one maker a key at a time. Nothing is kept once nobody waits for it any more.
template <typename Key, typename Value>
class SingleFlight {
public:
    /// Result of `make()`, by this thread or by another that is already at it. What `make` throws
    /// is thrown in every thread that waited for it; later calls start afresh.
    ///
    /// `make` must not ask for its own key. A child forked while a thread of the parent was making
    /// something starts over: that thread does not exist in the child.
    template <typename Make>
    Value run(const Key& key, Make&& make) {
        std::shared_ptr<Flight> flight;
        bool mine = false;
        {
            const std::lock_guard lock(mutex_);
            auto& slot = flights_[key];
            if (slot == nullptr || slot->process != ::getpid()) {
                slot = std::make_shared<Flight>();
                mine = true;
            }
            flight = slot;
        }
        if (!mine)
            return flight->wait();
        std::optional<Value> value;
        std::exception_ptr error;
        try {
            value.emplace(make());
        } catch (...) {
            error = std::current_exception();
        }
        {
            // At once: a call that comes after a waiter got its error must not find this flight.
            const std::lock_guard lock(mutex_);
            flights_.erase(key);
            flight->finish(std::move(value), std::move(error));
        }
        return flight->wait();
    }

private:
    struct Flight {
        pid_t process = ::getpid();
        std::mutex mutex;
        std::condition_variable changed;
        std::optional<Value> value;
        std::exception_ptr error;

        void finish(std::optional<Value> result, std::exception_ptr failure) {
            const std::lock_guard lock(mutex);
            value = std::move(result);
            error = std::move(failure);
            changed.notify_all();
        }

        Value wait() {
            std::unique_lock lock(mutex);
            changed.wait(lock, [this] { return value.has_value() || error != nullptr; });
            if (error != nullptr)
                std::rethrow_exception(error);
            return *value;
        }
    };

    std::mutex mutex_;
    std::map<Key, std::shared_ptr<Flight>> flights_;
};

}  // namespace deep_jit
