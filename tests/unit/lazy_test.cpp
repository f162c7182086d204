#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <deep_jit/utils/lazy.hpp>

#include "support.hpp"

namespace {

using deep_jit::Error;
using deep_jit::LazyInit;
using deep_jit::LazyValue;
using deep_jit_test::message_of;
using namespace std::chrono_literals;

TEST(LazyInit, TheFactoryRunsAtTheFirstUseOnly) {
    int runs = 0;
    LazyInit<std::string> lazy([&] {
        ++runs;
        return std::make_unique<std::string>("made");
    });
    EXPECT_EQ(runs, 0);
    EXPECT_FALSE(lazy.initialized());
    EXPECT_EQ(lazy->size(), 4u);
    EXPECT_TRUE(lazy.initialized());
    EXPECT_EQ(*lazy, "made");
    EXPECT_EQ(&lazy.get(), &*lazy);
    EXPECT_EQ(runs, 1);
}

struct Immovable {
    explicit Immovable(int v) : value(v) {}
    Immovable(Immovable&&) = delete;
    int value;
};

TEST(LazyInit, AFactoryMayReturnTheValueItself) {
    LazyInit<Immovable> lazy([] { return Immovable(5); });
    EXPECT_EQ(lazy->value, 5);
}

TEST(LazyInit, EmptyUntilAssigned) {
    LazyInit<int> lazy(nullptr);
    EXPECT_FALSE(lazy.initialized());
    for (int i = 0; i < 2; ++i)
        EXPECT_CONTAINS(message_of<Error>([&] { lazy.get(); }),
                        "lazy object must be initialized before use");
    lazy = LazyInit<int>([] { return 3; });
    EXPECT_EQ(*lazy, 3);
}

TEST(LazyInit, AFactoryThatReturnsNullIsAnError) {
    bool null = true;
    LazyInit<int> lazy([&] { return null ? nullptr : std::make_unique<int>(4); });
    EXPECT_THROW(lazy.get(), Error);
    EXPECT_FALSE(lazy.initialized());
    null = false;
    EXPECT_EQ(*lazy, 4);
}

TEST(LazyInit, AssigningReplacesTheValue) {
    static int alive;
    struct Counted {
        Counted() { ++alive; }
        ~Counted() { --alive; }
    };
    alive = 0;
    {
        LazyInit<Counted> lazy([] { return std::make_unique<Counted>(); });
        lazy.get();
        EXPECT_EQ(alive, 1);
        lazy = LazyInit<Counted>([] { return std::make_unique<Counted>(); });
        EXPECT_EQ(alive, 0);
        EXPECT_FALSE(lazy.initialized());
        const Counted* made = &lazy.get();
        EXPECT_EQ(alive, 1);
        LazyInit<Counted> moved(std::move(lazy));
        EXPECT_EQ(&moved.get(), made) << "the value moves along";
        moved = LazyInit<Counted>(nullptr);
        EXPECT_EQ(alive, 0);
        EXPECT_THROW(moved.get(), Error);
    }
    EXPECT_EQ(alive, 0);
}

TEST(LazyInit, AThrowingFactoryLeavesItUnmade) {
    int runs = 0;
    LazyInit<int> lazy([&] {
        if (++runs < 3)
            throw std::runtime_error("try " + std::to_string(runs));
        return 42;
    });
    EXPECT_EQ(message_of<std::runtime_error>([&] { lazy.get(); }), "try 1");
    EXPECT_FALSE(lazy.initialized());
    EXPECT_EQ(message_of<std::runtime_error>([&] { lazy.get(); }), "try 2");
    EXPECT_EQ(*lazy, 42);
    EXPECT_EQ(*lazy, 42);
    EXPECT_EQ(runs, 3);
}

TEST(LazyInit, OneOfManyThreadsMakesIt) {
    for (int round = 0; round < 50; ++round) {
        std::atomic<int> runs{0}, waiting{0};
        LazyInit<int> lazy([&] {
            ++runs;
            if (round % 5 == 0)
                std::this_thread::sleep_for(2ms);
            return 7;
        });
        std::vector<std::thread> threads;
        std::atomic<int> wrong{0};
        std::vector<const int*> seen(16);
        for (int t = 0; t < 16; ++t)
            threads.emplace_back([&, t] {
                ++waiting;
                while (waiting < 16) std::this_thread::yield();
                seen[static_cast<std::size_t>(t)] = &lazy.get();
                if (*lazy != 7)
                    ++wrong;
            });
        for (auto& thread : threads) thread.join();
        EXPECT_EQ(runs, 1);
        EXPECT_EQ(wrong, 0);
        for (const auto* value : seen) EXPECT_EQ(value, &lazy.get());
    }
}

TEST(LazyInit, WaitersOfAThrowingFactoryTryInTurn) {
    std::atomic<int> runs{0}, errors{0}, values{0}, inside{0}, worst{0};
    LazyInit<int> lazy([&]() -> std::unique_ptr<int> {
        worst = std::max(worst.load(), ++inside);
        std::this_thread::sleep_for(1ms);
        --inside;
        if (++runs <= 5)
            throw std::runtime_error("not yet");
        return std::make_unique<int>(9);
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < 12; ++t)
        threads.emplace_back([&] {
            try {
                values += *lazy == 9 ? 1 : 1000;
            } catch (const std::runtime_error&) {
                ++errors;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(errors, 5);
    EXPECT_EQ(values, 7);
    EXPECT_EQ(runs, 6);
    EXPECT_EQ(worst, 1) << "never two at once";
}

TEST(LazyInit, AForkedChildUsesTheValueOfItsParent) {
    int runs = 0;
    LazyInit<int> lazy([&] { return ++runs; });
    EXPECT_EQ(*lazy, 1);
    const auto result = deep_jit_test::run_child([&] { return *lazy == 1 && runs == 1 ? 0 : 1; });
    EXPECT_TRUE(result.ok()) << result;
}

TEST(LazyInit, AForkedChildMakesItForItself) {
    LazyInit<pid_t> lazy([] { return ::getpid(); });
    const auto result = deep_jit_test::run_child([&] { return *lazy == ::getpid() ? 0 : 1; });
    EXPECT_TRUE(result.ok()) << result;
    EXPECT_EQ(*lazy, ::getpid());
}

TEST(LazyInit, AChildForkedWhileAnotherThreadIsInTheFactoryDoesNotHang) {
    if (DJ_TEST_TSAN || DJ_TEST_ASAN)
        GTEST_SKIP() << "a sanitizer's own locks do not survive a fork of a threaded process";
    std::atomic<bool> inside{false}, go{false};
    LazyInit<pid_t> lazy([&] {
        inside = true;
        while (!go) std::this_thread::sleep_for(1ms);
        return ::getpid();
    });
    std::thread maker([&] { lazy.get(); });
    std::thread waiter([&] { lazy.get(); });
    while (!inside) std::this_thread::yield();
    const auto result = deep_jit_test::run_child(
        [&] {
            go = true;  // in the child's memory only
            pid_t from_thread = 0;
            std::thread other([&] { from_thread = *lazy; });
            const pid_t mine = *lazy;
            other.join();
            return mine == ::getpid() && from_thread == mine ? 0 : 1;
        },
        10);
    EXPECT_TRUE(result.ok()) << result;
    EXPECT_FALSE(lazy.initialized());
    go = true;
    maker.join();
    waiter.join();
    EXPECT_EQ(*lazy, ::getpid());
}

TEST(LazyValue, ReadsLikeAField) {
    int runs = 0;
    const LazyValue<std::string> value([&] {
        ++runs;
        return std::string("text");
    });
    const LazyValue<std::string> copy = value;
    EXPECT_EQ(runs, 0);
    EXPECT_TRUE(copy == "text");
    const std::string& text = value;
    EXPECT_EQ(text, "text");
    EXPECT_EQ(&text, &*copy) << "copies share the value";
    EXPECT_EQ(value->size(), 4u);
    EXPECT_EQ(runs, 1);
    std::ostringstream out;
    out << copy;
    EXPECT_EQ(out.str(), "text");
    EXPECT_EQ(LazyValue<int>().get(), 0);
}

}  // namespace
