#include <set>
#include <string>
#include <thread>
#include <vector>

#include <deep_jit/utils/uuid.hpp>

#include "support.hpp"

namespace {

using deep_jit::get_uuid;

TEST(Uuid, Is32HexDigits) {
    const auto id = get_uuid();
    EXPECT_EQ(id.size(), 32u);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(Uuid, ThreadsNeverRepeat) {
    std::vector<std::vector<std::string>> made(8);
    std::vector<std::thread> threads;
    for (auto& mine : made)
        threads.emplace_back([&mine] {
            for (int i = 0; i < 500; ++i) mine.push_back(get_uuid());
        });
    for (auto& thread : threads) thread.join();
    std::set<std::string> all;
    for (const auto& mine : made) all.insert(mine.begin(), mine.end());
    EXPECT_EQ(all.size(), 8u * 500);
}

TEST(Uuid, AForkedChildDoesNotRepeatItsParent) {
    get_uuid();
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const auto child = deep_jit_test::start_child([&] {
        const auto id = get_uuid();
        return ::write(ends[1], id.data(), id.size()) == 32 ? 0 : 1;
    });
    const auto mine = get_uuid();
    char theirs[32];
    EXPECT_EQ(::read(ends[0], theirs, 32), 32);
    EXPECT_TRUE(deep_jit_test::wait_child(child).ok());
    EXPECT_NE(std::string(theirs, 32), mine);
    ::close(ends[0]);
    ::close(ends[1]);
}

}  // namespace
