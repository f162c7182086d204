// Two nodes that share a cache over a network filesystem: two mounts of one directory, each of
// which believes for a minute what it saw (entries, their absence, and attributes).
#include <sys/mount.h>

#include <string>

#include <deep_jit/utils/command.hpp>

#include "unit/fake_backend.hpp"
#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class Nodes : public testing::Test {
protected:
    void SetUp() override {
        if (DJ_TEST_TSAN || DJ_TEST_ASAN)
            GTEST_SKIP() << "too slow under a sanitizer";
        if (!fs::exists("/dev/fuse"))
            GTEST_SKIP() << "there is no /dev/fuse";
        for (int node = 0; node < 2; ++node) {
            fs::create_directories(mount(node));
            fs::create_directories(dir_ / "shared");
            CommandResult result;
            try {
                result = call_external_command(
                    {"bindfs", "-o", "attr_timeout=60,entry_timeout=60,negative_timeout=60",
                     (dir_ / "shared").string(), mount(node).string()});
            } catch (const ToolchainError&) {
                GTEST_SKIP() << "there is no bindfs";
            }
            if (!result.ok())
                GTEST_SKIP() << "bindfs cannot mount here: " << result.output;
        }
    }
    void TearDown() override {
        for (int node = 0; node < 2; ++node)
            if (::umount2(mount(node).c_str(), MNT_DETACH) != 0 && errno != EINVAL)
                call_external_command({"fusermount3", "-u", "-z", mount(node).string()});
    }

    fs::path mount(int node) const { return dir_ / ("node" + std::to_string(node)); }
    const TempDir dir_{"nodes"};
};

TEST_F(Nodes, ARaceHasNoLoser) {
    const int rounds = 100;
    // Nodes share no locks.
    const ScopedEnv apart("DJ_JIT_SINGLE_FLIGHT", "0");
    const ScopedEnv log("DJ_JIT_LOG_FILE", (dir_ / "log").string());
    std::vector<pid_t> children;
    for (int node = 0; node < 2; ++node)
        children.push_back(start_child([&, node] {
            const ScopedEnv root("DJ_JIT_CACHE_DIR", (mount(node) / "cache root").string());
            for (int round = 0; round < rounds; ++round) {
                const auto source = "kernel " + std::to_string(round) + std::string(3000, '.');
                // As another process each time: nothing is in memory.
                FakeRuntime jit(Config("/", "FAULT"));
                // At once, as far as can be told.
                write(dir_ / ("ready." + std::to_string(round) + "." + std::to_string(node)), "");
                while (!fs::exists(
                    dir_ / ("ready." + std::to_string(round) + "." + std::to_string(1 - node))))
                    ::usleep(100);
                if (jit.compile("k", source)->text != expected_artifact(jit, source))
                    return 1;
                FakeRuntime again(Config("/", "FAULT"));
                if (again.compile("k", source)->text != expected_artifact(again, source))
                    return 2;
            }
            return 0;
        }));
    for (const auto child : children) {
        const auto result = wait_child(child, 120);
        EXPECT_TRUE(result.ok()) << result;
    }
    EXPECT_FALSE(fs::exists(dir_ / "log")) << slurp(dir_ / "log");
    EXPECT_EQ(names_in(dir_ / "shared/cache root/cache").size(), static_cast<std::size_t>(rounds));
    EXPECT_TRUE(names_in(dir_ / "shared/cache root/quarantine").empty());
    // A node that starts later finds all of them.
    const ScopedEnv root("DJ_JIT_CACHE_DIR", (dir_ / "shared/cache root").string());
    FakeRuntime later(Config("/", "FAULT"));
    for (int round = 0; round < rounds; ++round)
        later.compile("k", "kernel " + std::to_string(round) + std::string(3000, '.'));
    EXPECT_EQ(later.statistics().disk_hits, static_cast<std::uint64_t>(rounds));
}

}  // namespace
