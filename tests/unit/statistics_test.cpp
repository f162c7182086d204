// Counters, events, and the reasons of misses.
#include <thread>

#include "unit/fake_backend.hpp"
#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class StatisticsTest : public testing::Test {
protected:
    StatisticsTest() {
        FakeBackend::reset();
        root_env_.set((dir_ / "root").string());
    }
    const TempDir dir_;
    ScopedEnv root_env_{"DJ_JIT_CACHE_DIR"};
};

TEST_F(StatisticsTest, EachWayToAKernelIsCounted) {
    FakeRuntime jit(Config("/", "STATTEST"));
    jit.compile("k", "a");
    jit.compile("k", "b");
    for (int i = 0; i < 5; ++i) jit.compile("k", "a");
    auto statistics = jit.statistics();
    EXPECT_EQ(statistics.compiled, 2U);
    EXPECT_EQ(statistics.memory_hits, 5U);
    EXPECT_EQ(statistics.disk_hits, 0U);
    EXPECT_GT(statistics.compiled_seconds, 0);

    FakeRuntime other(Config("/", "STATTEST"));
    other.compile("k", "a");
    statistics = other.statistics();
    EXPECT_EQ(statistics.disk_hits, 1U);
    EXPECT_EQ(statistics.compiled, 0U);
    EXPECT_EQ(statistics.disk_hits_by_root,
              (std::map<std::string, std::uint64_t>{{(dir_ / "root").string(), 1}}));
}

TEST_F(StatisticsTest, FailuresAndDamage) {
    FakeRuntime jit(Config("/", "STATTEST"));
    FakeBackend::on_build = [](const auto&, auto&) { throw CompileError("no", {}); };
    EXPECT_THROW(jit.compile("k", "bad"), CompileError);
    EXPECT_EQ(jit.statistics().failed, 1U);
    EXPECT_EQ(FakeBackend::counts.builds, 1) << "a failure is not tried twice";
    FakeBackend::on_build = nullptr;

    const auto path = jit.compile_without_load("k", "good");
    write(path / "kernel.bin", "damage");
    FakeRuntime other(Config("/", "STATTEST"));
    const ScopedEnv quiet("DJ_JIT_LOG_FILE", (dir_ / "log").string());
    other.compile("k", "good");
    EXPECT_EQ(other.statistics().quarantined, 1U);
    EXPECT_EQ(other.statistics().compiled, 1U);
}

TEST_F(StatisticsTest, ThreadsLoseNoCount) {
    FakeRuntime jit(Config("/", "STATTEST"));
    jit.compile("k", "a");
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 1000; ++i) jit.compile("k", "a");
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(jit.statistics().memory_hits, 8000U);
}

TEST_F(StatisticsTest, EventsInOrderWithNames) {
    FakeRuntime jit(Config("/", "STATTEST"));
    std::vector<std::string> seen;
    jit.set_cache_event_callback([&](const CacheEvent& event) {
        seen.push_back(std::string(name_of(event.kind)) + " " + std::string(event.name));
    });
    jit.compile("k", "a");
    jit.compile("k", "a");
    const auto name = "k." + jit.cache_key("a");
    EXPECT_EQ(seen, (std::vector<std::string>{"compiled " + name, "memory_hit " + name}));
    jit.set_cache_event_callback({});
    jit.compile("k", "a");
    EXPECT_EQ(seen.size(), 2U);
}

TEST_F(StatisticsTest, WhyAKernelWasNotFound) {
    write(dir_ / "include/mine/a.hpp", "1\n");
    const auto config = [&](const std::string& signature) {
        return Config("/", "STATTEST", signature, {dir_ / "include"}, {"mine/"});
    };
    const std::string source = "#include <mine/a.hpp>\nkernel";
    FakeRuntime jit(config("one"));
    jit.compile("k", source);
    using Names = std::vector<std::string>;
    const auto reasons = [&](FakeRuntime& runtime, const std::string& text,
                             const FakeCompilerOptions& options = {}) {
        const auto all = runtime.explain_miss("k", text, options);
        return all.empty() ? Names{"no entry"} : all[0].differences;
    };
    EXPECT_EQ(reasons(jit, source), Names{});
    EXPECT_EQ(reasons(jit, source + "2"), Names{"source"});
    EXPECT_EQ(reasons(jit, source, {.extra_flags = {"-x"}}), Names{"flags"});
    EXPECT_EQ(reasons(jit, source, {.post_hook = "hook"}), Names{"post_hook"});
    FakeRuntime signed_otherwise(config("two"));
    EXPECT_EQ(reasons(signed_otherwise, source), Names{"extra_signature"});
    FakeBackend::identity = "fake compiler 2.0";
    FakeRuntime newer(config("one"));
    EXPECT_EQ(reasons(newer, source, {.extra_flags = {"-x"}}), (Names{"compiler", "flags"}));
    FakeBackend::reset();
    write(dir_ / "include/mine/a.hpp", "2\n");
    FakeRuntime changed(config("one"));
    EXPECT_EQ(reasons(changed, source), Names{"headers"});
    EXPECT_TRUE(changed.explain_miss("other", source).empty());
    // The most alike comes first.
    changed.compile("k", source);
    const auto all = changed.explain_miss("k", source);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_TRUE(all[0].differences.empty());
    EXPECT_EQ(all[0].entry.filename().string(), "k." + changed.cache_key(source));
}

}  // namespace
