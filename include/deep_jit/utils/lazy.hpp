// Values that are made at first use, by one thread, also across fork().
#pragma once

#include <unistd.h>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <utility>

#include <deep_jit/utils/exception.hpp>

namespace deep_jit {

/// Made by `factory` when first needed. Any number of threads may ask at once: one runs the
/// factory, the others wait. A factory that throws leaves the object unmade, every waiter tries
/// again in turn, and the error goes to whoever ran it. A child forked while another thread of
/// the parent was inside the factory starts over instead of waiting for a thread it does not have.
///
/// Assigning replaces factory and value; do it during initialization, not while others use it.
template <typename T>
class LazyInit {
public:
    using Factory = std::function<std::unique_ptr<T>()>;

    explicit LazyInit(std::nullptr_t) {}

    /// `factory()` returns T, or std::unique_ptr<T>.
    template <typename F>
        requires(!std::same_as<std::decay_t<F>, LazyInit> && std::invocable<F&>)
    explicit LazyInit(F factory) {
        if constexpr (std::is_convertible_v<std::invoke_result_t<F&>, std::unique_ptr<T>>)
            factory_ = std::move(factory);
        else
            factory_ = [make = std::move(factory)]() mutable {
                return std::unique_ptr<T>(new T(make()));
            };
    }

    LazyInit(LazyInit&& other) noexcept { take(other); }
    LazyInit& operator=(LazyInit&& other) noexcept {
        if (this != &other) {
            delete value_.exchange(nullptr);
            take(other);
        }
        return *this;
    }
    ~LazyInit() { delete value_.load(std::memory_order_acquire); }

    /// The value, made now if need be. Throws Error when no factory was ever assigned, and
    /// whatever the factory throws.
    T& get() {
        T* value = value_.load(std::memory_order_acquire);
        return value != nullptr ? *value : make();
    }
    T* operator->() { return &get(); }
    T& operator*() { return get(); }

    /// True once the value exists.
    bool initialized() const noexcept { return value_.load(std::memory_order_acquire) != nullptr; }

private:
    void take(LazyInit& other) noexcept {
        factory_ = std::move(other.factory_);
        value_.store(other.value_.exchange(nullptr), std::memory_order_release);
    }

    T& make() {
        const auto self = static_cast<std::int32_t>(::getpid());
        // maker_ is 0, or the process whose thread is inside the factory. A value of another
        // process was inherited by fork and belongs to nobody here.
        std::int32_t seen = 0;
        while (!maker_.compare_exchange_strong(seen, self, std::memory_order_acquire)) {
            if (seen == self) {
                maker_.wait(seen, std::memory_order_acquire);
                seen = 0;
            }
            if (T* value = value_.load(std::memory_order_acquire))
                return *value;
        }
        struct Unlock {
            std::atomic<std::int32_t>& maker;
            ~Unlock() {
                maker.store(0, std::memory_order_release);
                maker.notify_all();
            }
        } unlock{maker_};
        if (T* value = value_.load(std::memory_order_acquire))
            return *value;
        if (!factory_)
            throw ConfigError(
                "The lazy object must be initialized before use: no factory has "
                "been assigned to it yet");
        T* value = factory_().release();
        if (value == nullptr)
            throw ConfigError("The factory of a lazy object returned null");
        value_.store(value, std::memory_order_release);
        return *value;
    }

    Factory factory_;
    std::atomic<T*> value_{nullptr};
    std::atomic<std::int32_t> maker_{0};
};

/// A constant that is computed at first use and reads like a plain field: it converts to
/// `const T&`. Copies share the value. Thread-safe.
template <typename T>
class LazyValue {
public:
    LazyValue() : LazyValue([] { return T(); }) {}

    template <typename F>
        requires(!std::same_as<std::decay_t<F>, LazyValue> && std::invocable<F&>)
    explicit LazyValue(F compute) : state_(std::make_shared<LazyInit<T>>(std::move(compute))) {}

    const T& get() const { return state_->get(); }
    operator const T&() const { return get(); }  // NOLINT: it stands for a field
    const T& operator*() const { return get(); }
    const T* operator->() const { return &get(); }
    bool initialized() const noexcept { return state_->initialized(); }

    friend bool operator==(const LazyValue& a, const T& b) { return a.get() == b; }
    friend std::ostream& operator<<(std::ostream& out, const LazyValue& value) {
        return out << value.get();
    }

private:
    std::shared_ptr<LazyInit<T>> state_;
};

}  // namespace deep_jit
