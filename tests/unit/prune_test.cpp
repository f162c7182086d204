// Keeping a root small: what goes, what stays, and what the dead left.
#include <sys/stat.h>
#include <sys/time.h>
#include <utime.h>

#include <ctime>

#include <deep_jit/cache/prune.hpp>

#include "unit/fake_backend.hpp"
#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

void set_age(const fs::path& path, std::time_t seconds) {
    const auto then = std::time(nullptr) - seconds;
    const utimbuf times{then, then};
    ASSERT_EQ(::utime(path.c_str(), &times), 0);
}

std::time_t age_of(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return std::time(nullptr) - info.st_mtime;
}

class Prune : public testing::Test {
protected:
    Prune() { root_env_.set(root_.string()); }

    /// An entry of 1000 bytes beside its marker, last used so long ago.
    void add(const std::string& name, std::time_t age) const {
        const auto path = root_ / "cache" / name;
        write(path / "kernel.bin", std::string(1000, 'x'));
        write(path / kCommitFileName, EntryMarker::of_directory(path).to_text());
        set_age(path / kCommitFileName, age);
    }

    const TempDir dir_;
    const fs::path root_ = dir_ / "root";
    ScopedEnv root_env_{"DJ_JIT_CACHE_DIR"};
};

TEST_F(Prune, TheLeastRecentlyUsedGoFirst) {
    add("old", 5000);
    add("older", 9000);
    add("new", 10);
    std::vector<std::string> removed;
    Pruner pruner(root_);
    pruner.on_removed = [&](const std::string& name, std::uint64_t bytes) {
        removed.push_back(name);
        EXPECT_GE(bytes, 1000U);
    };
    const auto report = pruner.prune(CacheLimit::parse("1 entry", ""));
    EXPECT_EQ(report.entries, 3U);
    EXPECT_EQ(report.removed, 2U);
    EXPECT_EQ(removed, (std::vector<std::string>{"older", "old"}));
    EXPECT_EQ(names_in(root_ / "cache"), std::vector<std::string>{"new"});
    EXPECT_TRUE(names_in(root_ / "tmp").empty());
}

TEST_F(Prune, BytesAreThoseOfTheFiles) {
    for (int i = 0; i < 10; ++i) add("e" + std::to_string(i), 1000 - i);
    // Each is a little more than 1000 bytes.
    const auto report = Pruner(root_).prune(CacheLimit::parse("5500", ""));
    EXPECT_EQ(report.removed, 5U);
    EXPECT_GE(report.bytes, 10000U);
    EXPECT_EQ(names_in(root_ / "cache"), (std::vector<std::string>{"e5", "e6", "e7", "e8", "e9"}));
}

TEST_F(Prune, WhatFitsStays) {
    add("a", 100000);
    EXPECT_EQ(Pruner(root_).prune(CacheLimit::parse("1 entry", "")).removed, 0U);
    EXPECT_EQ(Pruner(root_).prune(CacheLimit()).removed, 0U);
    EXPECT_EQ(names_in(root_ / "cache"), std::vector<std::string>{"a"});
}

TEST_F(Prune, AMarkerThatListsNothingIsMeasured) {
    write(root_ / "cache/foreign/kernel.bin", std::string(3000, 'x'));
    write(root_ / "cache/foreign" / kCommitFileName, "");
    EXPECT_EQ(Pruner(root_).prune(CacheLimit()).bytes, 3000U);
}

TEST_F(Prune, ADirectoryWithoutAMarkerGoesOnceItIsOld) {
    write(root_ / "cache/half/kernel.bin", "x");
    add("whole", 5);
    EXPECT_EQ(Pruner(root_).prune(CacheLimit::parse("0 entries", "")).removed, 1U);
    EXPECT_EQ(names_in(root_ / "cache"), std::vector<std::string>{"half"});
    set_age(root_ / "cache/half", 2 * kStampSeconds);
    EXPECT_EQ(Pruner(root_).prune(CacheLimit::parse("0 entries", "")).removed, 1U);
    EXPECT_TRUE(names_in(root_ / "cache").empty());
}

TEST_F(Prune, AUseIsNotedAtMostOnceAnHour) {
    add("a", 1800);
    touch_entry(root_ / "cache/a");
    EXPECT_GE(age_of(root_ / "cache/a" / kCommitFileName), 1800);
    set_age(root_ / "cache/a" / kCommitFileName, 4000);
    touch_entry(root_ / "cache/a");
    EXPECT_LT(age_of(root_ / "cache/a" / kCommitFileName), 100);
    touch_entry(root_ / "cache/missing");
}

TEST_F(Prune, TheSweepTakesWhatTheDeadLeft) {
    const pid_t dead = start_child([] { return 0; });
    wait_child(dead);
    char host[256] = "";
    ::gethostname(host, sizeof(host) - 1);
    const auto of = [&](const std::string& name) {
        write(root_ / "tmp" / name / "entry/kernel.bin", "x");
        return root_ / "tmp" / name;
    };
    const auto day = Pruner::kDeadSeconds + 100;
    const auto own_dead = of(std::string(host) + "." + std::to_string(dead) + ".1");
    const auto own_dead_young = of(std::string(host) + "." + std::to_string(dead) + ".2");
    const auto own_living = of(std::string(host) + "." + std::to_string(::getpid()) + ".3");
    const auto foreign = of("elsewhere.1.4");
    const auto foreign_old = of("elsewhere.1.5");
    for (const auto& path : {own_dead, own_living, foreign}) set_age(path, day);
    set_age(foreign_old, Pruner::kForeignSeconds + 100);
    write(root_ / "quarantine/old/x", "x");
    write(root_ / "failed/young/x", "x");
    set_age(root_ / "quarantine/old", Pruner::kKeptSeconds + 100);
    EXPECT_EQ(Pruner(root_).sweep(), 3U);
    EXPECT_FALSE(fs::exists(own_dead));
    EXPECT_TRUE(fs::exists(own_dead_young));
    EXPECT_TRUE(fs::exists(own_living));
    EXPECT_TRUE(fs::exists(foreign));
    EXPECT_FALSE(fs::exists(foreign_old));
    EXPECT_TRUE(names_in(root_ / "quarantine").empty());
    EXPECT_EQ(names_in(root_ / "failed").size(), 1U);
}

TEST_F(Prune, ARuntimeKeepsToItsLimitAndSaysSo) {
    const ScopedEnv limit("DJ_JIT_CACHE_LIMIT", "2 entries");
    for (int i = 0; i < 4; ++i) add("k." + std::string(32, static_cast<char>('a' + i)), 5000 + i);
    FakeBackend::reset();
    FakeRuntime jit(Config("/", "PRUNETEST"));
    std::vector<std::string> evicted;
    jit.set_cache_event_callback([&](const CacheEvent& event) {
        if (event.kind == CacheEvent::Kind::evicted)
            evicted.emplace_back(event.name);
    });
    jit.compile("k", "first");
    EXPECT_EQ(names_in(root_ / "cache").size(), 2U);
    EXPECT_EQ(evicted,
              (std::vector<std::string>{"k." + std::string(32, 'd'), "k." + std::string(32, 'c'),
                                        "k." + std::string(32, 'b')}));
    EXPECT_EQ(jit.statistics().evicted, 3U);
    // Not again within the hour.
    jit.compile("k", "second");
    EXPECT_EQ(names_in(root_ / "cache").size(), 3U);
    set_age(root_ / ".pruned", 2 * kStampSeconds);
    jit.compile("k", "third");
    EXPECT_EQ(names_in(root_ / "cache").size(), 2U);
}

TEST_F(Prune, AKernelInUseOutlivesItsEntry) {
    FakeBackend::reset();
    FakeRuntime jit(Config("/", "PRUNETEST"));
    const auto kernel = jit.compile("k", "source");
    Pruner(root_).prune(CacheLimit::parse("0 entries", ""));
    EXPECT_EQ(jit.compile("k", "source"), kernel);
    FakeRuntime other(Config("/", "PRUNETEST"));
    EXPECT_EQ(other.compile("k", "source")->text, kernel->text);
    EXPECT_EQ(other.statistics().compiled, 1U);
}

TEST_F(Prune, OthersMayPruneAtTheSameTime) {
    for (int i = 0; i < 200; ++i) add("e" + std::to_string(i), 1000 + i);
    std::vector<pid_t> children;
    for (int p = 0; p < 4; ++p)
        children.push_back(start_child([&] {
            Pruner(root_).prune(CacheLimit::parse("50 entries", ""));
            return 0;
        }));
    for (const auto child : children) EXPECT_TRUE(wait_child(child).ok());
    EXPECT_EQ(names_in(root_ / "cache").size(), 50U);
    EXPECT_TRUE(names_in(root_ / "tmp").empty());
}

}  // namespace
