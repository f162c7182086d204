#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <deep_jit/cache/hot_table.hpp>

#include "support.hpp"

namespace {

using deep_jit::StripedPtr;
using deep_jit::detail::kMaxThreadNumbers;
using deep_jit::detail::thread_number;

/// Numbers of `count` threads that are all alive at once.
std::vector<std::size_t> numbers_of_threads(std::size_t count) {
    std::vector<std::size_t> numbers(count);
    std::atomic<std::size_t> ready{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i)
        threads.emplace_back([&, i] {
            numbers[i] = thread_number().value;
            ++ready;
            while (ready < count) std::this_thread::yield();
            if (thread_number().value != numbers[i])
                numbers[i] = kMaxThreadNumbers;
        });
    for (auto& thread : threads) thread.join();
    return numbers;
}

TEST(ThreadNumber, LivingThreadsHaveDifferentNumbers) {
    const auto mine = thread_number().value;
    for (int round = 0; round < 20; ++round) {
        const auto numbers = numbers_of_threads(16);
        const std::set<std::size_t> different(numbers.begin(), numbers.end());
        EXPECT_EQ(different.size(), 16u) << "round " << round;
        EXPECT_EQ(different.count(mine), 0u) << "this thread lives, too";
        EXPECT_LT(*different.rbegin(), kMaxThreadNumbers);
    }
}

TEST(ThreadNumber, MoreThreadsThanNumbersShareThem) {
    const auto many = numbers_of_threads(kMaxThreadNumbers + 30);
    for (const auto number : many) EXPECT_LT(number, kMaxThreadNumbers);
    const auto numbers = numbers_of_threads(16);
    EXPECT_EQ(std::set<std::size_t>(numbers.begin(), numbers.end()).size(), 16u)
        << "what they took they gave back";
}

/// Counts at the very end of its thread, behind the number's own end.
struct AsksAtTheEnd {
    std::atomic<int>* exclusive = nullptr;
    ~AsksAtTheEnd() {
        if (exclusive != nullptr)
            *exclusive = thread_number().exclusive;
    }
};

TEST(ThreadNumber, IsExclusiveWhileTheThreadHoldsItAlone) {
    std::atomic<int> exclusive_at_the_end{-1};
    bool exclusive = false;
    std::thread([&] {
        thread_local AsksAtTheEnd last;
        last.exclusive = &exclusive_at_the_end;
        exclusive = thread_number().exclusive;
    }).join();
    EXPECT_TRUE(exclusive);
    EXPECT_EQ(exclusive_at_the_end, 0) << "another thread may have it by then";

    std::atomic<std::size_t> ready{0}, shared{0};
    std::vector<std::thread> threads;
    const std::size_t count = kMaxThreadNumbers + 20;
    for (std::size_t i = 0; i < count; ++i)
        threads.emplace_back([&] {
            shared += !thread_number().exclusive;
            ++ready;
            while (ready < count) std::this_thread::yield();
        });
    for (auto& thread : threads) thread.join();
    EXPECT_GE(shared, 20u);
}

TEST(StripedPtr, LivingThreadsDoNotCountWithOneCounterHoweverManyCameAndWent) {
    const StripedPtr<int> striped(std::make_shared<int>(1));
    const auto* mine = &striped.get();
    for (int i = 0; i < 100; ++i) {
        const std::shared_ptr<int>* other = nullptr;
        std::thread([&] { other = &striped.get(); }).join();
        EXPECT_NE(other, mine) << "thread " << i;
    }
}

}  // namespace
