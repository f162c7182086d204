#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <deep_jit/cache/memory.hpp>

#include "support.hpp"

namespace {

using deep_jit::MemCache;
using namespace std::chrono_literals;

TEST(MemCache, MadeOnceFoundAfter) {
    MemCache<std::string, std::shared_ptr<int>> cache;
    EXPECT_EQ(cache.find("a"), std::nullopt);
    const auto first = cache.get_or_create("a", [] { return std::make_shared<int>(1); });
    EXPECT_EQ(cache.get_or_create("a", []() -> std::shared_ptr<int> { throw 1; }), first);
    EXPECT_EQ(cache.find("a"), first);
    EXPECT_EQ(cache.find("b"), std::nullopt);
    EXPECT_EQ(cache.size(), 1u);
}

TEST(MemCache, WhatMakeThrowsIsNotKept) {
    MemCache<int, int> cache;
    EXPECT_THROW(cache.get_or_create(1, []() -> int { throw std::runtime_error("x"); }),
                 std::runtime_error);
    EXPECT_EQ(cache.size(), 0u);
    EXPECT_EQ(cache.get_or_create(1, [] { return 4; }), 4);
}

TEST(MemCache, ThirtyTwoThreadsEightKeysEightMakers) {
    for (int round = 0; round < 20; ++round) {
        MemCache<int, int> cache;
        std::atomic<int> made{0}, wrong{0}, started{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 32; ++t)
            threads.emplace_back([&, t] {
                ++started;
                while (started < 32) std::this_thread::yield();
                for (int k = 0; k < 8; ++k) {
                    const int key = (k + t) % 8;
                    if (cache.get_or_create(key, [&] {
                            ++made;
                            return key * 10;
                        }) != key * 10)
                        ++wrong;
                }
            });
        for (auto& thread : threads) thread.join();
        EXPECT_EQ(made, 8);
        EXPECT_EQ(wrong, 0);
        EXPECT_EQ(cache.size(), 8u);
    }
}

TEST(MemCache, OtherKeysGoOnMeanwhile) {
    MemCache<int, int> cache;
    EXPECT_EQ(cache.get_or_create(1, [&] { return cache.get_or_create(2, [] { return 3; }); }), 3);
    EXPECT_EQ(cache.find(2), 3);
}

}  // namespace
