#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <deep_jit/cache/hot_table.hpp>

#include "support.hpp"

namespace {

using deep_jit::HotTable;
using deep_jit::StripedPtr;

struct Entry {
    int key;
    int value;
};

const Entry* find(const HotTable<Entry>& table, std::uint64_t hash, int key) {
    return table.find(hash, [&](const Entry& entry) { return entry.key == key; });
}
const Entry* insert(HotTable<Entry>& table, std::uint64_t hash, int key, int value) {
    return table.insert(hash, std::make_unique<Entry>(Entry{key, value}),
                        [&](const Entry& entry) { return entry.key == key; });
}

TEST(HotTable, FindsWhatIsInAndNothingElse) {
    HotTable<Entry> table;
    EXPECT_EQ(find(table, 5, 1), nullptr);
    const auto* entry = insert(table, 5, 1, 10);
    EXPECT_EQ(find(table, 5, 1), entry);
    EXPECT_EQ(entry->value, 10);
    EXPECT_EQ(find(table, 5, 2), nullptr) << "same hash, another key";
    EXPECT_EQ(find(table, 6, 1), nullptr) << "same key, another hash";
    EXPECT_EQ(insert(table, 5, 1, 20), entry) << "the first stays";
    EXPECT_EQ(entry->value, 10);
    EXPECT_EQ(table.size(), 1u);
}

TEST(HotTable, HashesThatCollide) {
    HotTable<Entry> table;
    // One hash for all, hashes that differ in the high bits only, and the ends of the range.
    for (int i = 0; i < 100; ++i) insert(table, 7, i, i);
    for (int i = 0; i < 100; ++i) insert(table, 7 + (std::uint64_t(i + 1) << 40), i, 1000 + i);
    for (int i = 0; i < 40; ++i) insert(table, ~std::uint64_t(0) - (i % 3), i, 2000 + i);
    insert(table, 0, 0, 3000);
    EXPECT_EQ(table.size(), 241u);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(find(table, 7, i)->value, i);
        EXPECT_EQ(find(table, 7 + (std::uint64_t(i + 1) << 40), i)->value, 1000 + i);
    }
    for (int i = 0; i < 40; ++i)
        EXPECT_EQ(find(table, ~std::uint64_t(0) - (i % 3), i)->value, 2000 + i);
    EXPECT_EQ(find(table, 0, 0)->value, 3000);
    EXPECT_EQ(find(table, 7, 100), nullptr);
}

TEST(HotTable, PointersStayGoodWhileItGrows) {
    HotTable<Entry> table;
    std::vector<const Entry*> entries;
    for (int i = 0; i < 5000; ++i)
        entries.push_back(insert(table, static_cast<std::uint64_t>(i) * 64, i, i));
    for (int i = 0; i < 5000; ++i) {
        EXPECT_EQ(find(table, static_cast<std::uint64_t>(i) * 64, i), entries[std::size_t(i)]);
        EXPECT_EQ(entries[std::size_t(i)]->value, i);
    }
}

TEST(HotTable, ReadersWhileItGrows) {
    HotTable<Entry> table;
    constexpr int kCount = 4000;
    const auto hash = [](int i) { return static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL; };
    std::atomic<int> inserted{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            // What was in before the look-up began may be missed while the table grows, but
            // never come out wrong; and once growing has stopped, all is there.
            for (int seen = 0; seen < kCount; seen = inserted) {
                const int i = (seen * 31 + t) % (seen + 1);
                const auto* entry = find(table, hash(i), i);
                if (entry != nullptr && (entry->key != i || entry->value != 3 * i))
                    ++wrong;
            }
        });
    for (int i = 0; i < kCount; ++i) {
        insert(table, hash(i), i, 3 * i);
        inserted = i + 1;
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    for (int i = 0; i < kCount; ++i) EXPECT_EQ(find(table, hash(i), i)->value, 3 * i);
}

TEST(HotTable, WritersThatRaceAgree) {
    HotTable<Entry> table;
    std::vector<std::vector<const Entry*>> seen(4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i)
                seen[std::size_t(t)].push_back(insert(table, std::uint64_t(i % 50), i, t));
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(table.size(), 500u);
    for (const auto& mine : seen) EXPECT_EQ(mine, seen[0]);
}

TEST(StripedPtr, AllStripesKeepTheOneObject) {
    auto object = std::make_shared<int>(5);
    const std::weak_ptr<int> watch = object;
    {
        std::shared_ptr<int> copy;
        {
            const StripedPtr<int> striped(object);
            EXPECT_EQ(striped.get().get(), object.get());
            object.reset();
            EXPECT_FALSE(watch.expired());
            std::vector<std::thread> threads;
            std::atomic<int> wrong{0};
            for (int t = 0; t < 8; ++t)
                threads.emplace_back([&] {
                    for (int i = 0; i < 1000; ++i) {
                        const std::shared_ptr<int> mine = striped.get();
                        if (*mine != 5)
                            ++wrong;
                    }
                });
            for (auto& thread : threads) thread.join();
            EXPECT_EQ(wrong, 0);
            copy = striped.get();
        }
        EXPECT_EQ(*copy, 5) << "a copy outlives the table";
        EXPECT_FALSE(watch.expired());
    }
    EXPECT_TRUE(watch.expired());
}

}  // namespace
