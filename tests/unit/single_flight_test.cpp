#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <deep_jit/cache/single_flight.hpp>

#include "support.hpp"

namespace {

using deep_jit::SingleFlight;
using namespace std::chrono_literals;

TEST(SingleFlight, NothingIsKept) {
    SingleFlight<std::string, int> flights;
    int runs = 0;
    EXPECT_EQ(flights.run("a", [&] { return ++runs; }), 1);
    EXPECT_EQ(flights.run("a", [&] { return ++runs; }), 2);
}

TEST(SingleFlight, OneMakesAllGet) {
    SingleFlight<int, std::string> flights;
    std::atomic<int> runs{0}, wrong{0}, started{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; ++t)
        threads.emplace_back([&, t] {
            ++started;
            const auto value = flights.run(t % 2, [&] {
                ++runs;
                while (started < 16) std::this_thread::yield();
                std::this_thread::sleep_for(50ms);
                return "value " + std::to_string(t % 2);
            });
            if (value != "value " + std::to_string(t % 2))
                ++wrong;
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(wrong, 0);
}

TEST(SingleFlight, WhatIsThrownReachesEveryWaiter) {
    SingleFlight<int, int> flights;
    std::atomic<int> runs{0}, caught{0}, started{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&] {
            ++started;
            try {
                flights.run(1, [&]() -> int {
                    ++runs;
                    while (started < 8) std::this_thread::yield();
                    std::this_thread::sleep_for(50ms);
                    throw std::runtime_error("failed");
                });
            } catch (const std::runtime_error& error) {
                caught += std::string(error.what()) == "failed" ? 1 : 100;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(caught, 8);
    EXPECT_EQ(flights.run(1, [] { return 5; }), 5);
}

TEST(SingleFlight, ACallAfterAFailureIsNeverServedTheOldFailure) {
    // A waiter that got an error calls again at once, while the maker may still be on its way out.
    SingleFlight<int, int> flights;
    std::atomic<int> stale{0};
    for (int round = 0; round < 2000; ++round) {
        std::atomic<bool> entered{false};
        std::thread maker([&] {
            try {
                flights.run(1, [&]() -> int {
                    entered = true;
                    std::this_thread::yield();
                    throw std::runtime_error("old");
                });
            } catch (const std::runtime_error&) {  // NOLINT: expected
            }
        });
        while (!entered) std::this_thread::yield();
        bool mine = false;
        try {
            flights.run(1, [&] {
                mine = true;
                return 1;
            });
        } catch (const std::runtime_error&) {
            // That was a waiter's share. From here on the failure is over.
            try {
                mine = false;
                flights.run(1, [&] {
                    mine = true;
                    return 1;
                });
            } catch (const std::runtime_error&) {  // NOLINT: counted below
            }
            if (!mine)
                ++stale;
        }
        maker.join();
    }
    EXPECT_EQ(stale, 0);
}

TEST(SingleFlight, KeysDoNotWaitForEachOther) {
    SingleFlight<int, int> flights;
    EXPECT_EQ(flights.run(1, [&] { return flights.run(2, [] { return 5; }) + 1; }), 6);
}

TEST(SingleFlight, AChildForkedDuringAFlightStartsOver) {
    if (DJ_TEST_TSAN || DJ_TEST_ASAN)
        GTEST_SKIP() << "a sanitizer's own locks do not survive a fork of a threaded process";
    SingleFlight<int, pid_t> flights;
    std::atomic<bool> inside{false}, go{false};
    std::thread maker([&] {
        flights.run(1, [&] {
            inside = true;
            while (!go) std::this_thread::sleep_for(1ms);
            return ::getpid();
        });
    });
    while (!inside) std::this_thread::yield();
    const auto result = deep_jit_test::run_child(
        [&] {
            pid_t from_thread = 0;
            std::thread other([&] { from_thread = flights.run(1, [] { return ::getpid(); }); });
            other.join();
            const pid_t mine = flights.run(1, [] { return ::getpid(); });
            return mine == ::getpid() && from_thread == mine ? 0 : 1;
        },
        10);
    EXPECT_TRUE(result.ok()) << result;
    go = true;
    maker.join();
}

}  // namespace
