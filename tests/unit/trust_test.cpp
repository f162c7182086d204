// Which cache roots are refused.
#include <grp.h>
#include <sys/stat.h>

#include <deep_jit/cache/disk.hpp>

#include "unit/fake_backend.hpp"
#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class Trust : public testing::Test {
protected:
    Trust() {
        fs::create_directories(root_ / "cache");
        root_env_.set(root_.string());
    }
    const TempDir dir_{"trust"};
    const fs::path root_ = dir_ / "root";
    ScopedEnv root_env_{"DJ_JIT_CACHE_DIR"};
};

TEST_F(Trust, OwnAndMissingOnesAreFine) {
    EXPECT_EQ(distrust(root_), "");
    EXPECT_EQ(distrust(dir_ / "missing"), "");
}

TEST_F(Trust, WorldWritableOnesAreRefused) {
    ASSERT_EQ(::chmod(root_.c_str(), 0777), 0);
    EXPECT_NE(distrust(root_), "");
    try {
        FakeRuntime jit(Config("/", "TRUSTTEST"));
        FAIL();
    } catch (const CacheError& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find(root_.string()), std::string::npos) << text;
        EXPECT_NE(text.find("JIT_TRUST_CACHE_DIR"), std::string::npos) << text;
    }
    const ScopedEnv trust("DJ_JIT_TRUST_CACHE_DIR", "1");
    FakeBackend::reset();
    FakeRuntime jit(Config("/", "TRUSTTEST"));
    EXPECT_EQ(jit.compile("k", "source")->text, expected_artifact(jit, "source"));
}

TEST_F(Trust, StickyOnesAreFine) {
    ASSERT_EQ(::chmod(root_.c_str(), 01777), 0);
    EXPECT_EQ(distrust(root_), "");
}

TEST_F(Trust, TheEntriesDirectoryCountsAsWell) {
    ASSERT_EQ(::chmod((root_ / "cache").c_str(), 0777), 0);
    EXPECT_NE(distrust(root_), "");
}

TEST_F(Trust, AStrangersRootIsRefused) {
    if (::geteuid() != 0)
        GTEST_SKIP() << "only the superuser can give a directory away";
    ASSERT_EQ(::chown(root_.c_str(), 4711, 4712), 0);
    EXPECT_NE(distrust(root_), "");
    // Of a group of ours it is a shared one.
    ASSERT_EQ(::chown(root_.c_str(), 4711, ::getegid()), 0);
    EXPECT_EQ(distrust(root_), "");
}

// A root that belongs to a group, set-group-ID, with umask 002: what one makes the other uses, and
// the other way round.
TEST_F(Trust, TwoUsersShareAGroupsRoot) {
    if (::geteuid() != 0)
        GTEST_SKIP() << "only the superuser can be two users";
    fs::remove_all(root_);
    fs::create_directories(root_);
    ASSERT_EQ(::chown(root_.c_str(), 5001, 6000), 0);
    ASSERT_EQ(::chmod(root_.c_str(), 02775), 0);
    FakeBackend::reset();
    const auto as = [&](uid_t user, int kernels, std::uint64_t compiled) {
        return start_child([=] {
            ::umask(002);
            if (::setgroups(0, nullptr) != 0 || ::setgid(6000) != 0 || ::setuid(user) != 0)
                return 2;
            FakeRuntime jit(Config("/", "TRUSTTEST"));
            for (int i = 0; i < kernels; ++i) {
                const auto source = "kernel " + std::to_string(i);
                if (jit.compile("k", source)->text != expected_artifact(jit, source))
                    return 3;
            }
            return jit.statistics().compiled == compiled ? 0 : 4;
        });
    };
    EXPECT_TRUE(wait_child(as(5001, 2, 2)).ok());
    const auto second = wait_child(as(5002, 4, 2));
    EXPECT_TRUE(second.ok()) << second;
    const auto third = wait_child(as(5001, 4, 0));
    EXPECT_TRUE(third.ok()) << third;
    EXPECT_EQ(names_in(root_ / "cache").size(), 4U);
}

}  // namespace
