// Several processes, some of which die.
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <deep_jit/cache/prune.hpp>

#include "unit/fake_backend.hpp"
#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class Processes : public testing::Test {
protected:
    Processes() {
        FakeBackend::reset();
        root_.set((dir_ / "root").string());
    }

    static std::string source(int number) {
        return "kernel " + std::to_string(number) + std::string(3000, '.');
    }
    static bool right(FakeRuntime& jit, int number) {
        return jit.compile("k", source(number))->text == expected_artifact(jit, source(number));
    }
    /// Builds take a while, and each leaves one byte.
    void count_builds(int milliseconds) const {
        FakeBackend::on_build = [this, milliseconds](const FakeBackend::Request&, std::string&) {
            const auto fd =
                fs_detail::open_retrying(dir_ / "builds", O_WRONLY | O_CREAT | O_APPEND, 0666);
            fs_detail::write_all(fd.get(), "x");
            ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
        };
    }
    std::size_t builds() const {
        return fs::exists(dir_ / "builds") ? fs::file_size(dir_ / "builds") : 0;
    }
    void all_ask_for(int processes, int kernels) const {
        count_builds(20);
        std::vector<pid_t> children;
        children.reserve(static_cast<std::size_t>(processes));
        for (int p = 0; p < processes; ++p)
            children.push_back(start_child([&, p] {
                FakeRuntime jit(Config("/", "FAULT"));
                for (int k = 0; k < kernels; ++k)
                    if (!right(jit, (k + p) % kernels))
                        return 1;
                return 0;
            }));
        for (const auto child : children) EXPECT_TRUE(wait_child(child, 60).ok());
    }

    const TempDir dir_;
    ScopedEnv root_{"DJ_JIT_CACHE_DIR"};
};

TEST_F(Processes, EightBuildSixteenKernelsOnce) {
    all_ask_for(8, 16);
    EXPECT_EQ(builds(), 16U);
}

TEST_F(Processes, SixtyFourBuildFourKernelsOnce) {
    all_ask_for(64, 4);
    EXPECT_EQ(builds(), 4U);
}

TEST_F(Processes, WithoutSingleFlightEachMayBuildAndAllWork) {
    const ScopedEnv off("DJ_JIT_SINGLE_FLIGHT", "0");
    all_ask_for(8, 2);
    EXPECT_GE(builds(), 2U);
}

TEST_F(Processes, WhoWaitsTooLongBuildsForItself) {
    const ScopedEnv timeout("DJ_JIT_LOCK_TIMEOUT", "0");
    count_builds(300);
    std::vector<pid_t> children;
    for (int p = 0; p < 3; ++p)
        children.push_back(start_child([] {
            FakeRuntime jit(Config("/", "FAULT"));
            return right(jit, 1) ? 0 : 1;
        }));
    for (const auto child : children) EXPECT_TRUE(wait_child(child).ok());
    EXPECT_GE(builds(), 1U);
    EXPECT_LE(builds(), 3U);
}

TEST_F(Processes, WaitersGoOnWhenTheHolderIsKilled) {
    // The first one never ends; the others build at once.
    FakeBackend::on_build = [this](const FakeBackend::Request&, std::string&) {
        if (::mkdir((dir_ / "holder").c_str(), 0777) == 0)
            ::pause();
    };
    const auto work = [] {
        FakeRuntime jit(Config("/", "FAULT"));
        return right(jit, 1) ? 0 : 1;
    };
    const pid_t holder = start_child(work);
    while (!fs::exists(dir_ / "holder")) ::usleep(1000);
    std::vector<pid_t> waiters;
    for (int p = 0; p < 4; ++p) waiters.push_back(start_child(work));
    ::usleep(100000);
    for (const auto waiter : waiters) {
        int status = 0;
        EXPECT_EQ(::waitpid(waiter, &status, WNOHANG), 0) << "it does not wait";
    }
    ::kill(holder, SIGKILL);
    const auto start = std::chrono::steady_clock::now();
    for (const auto waiter : waiters) EXPECT_TRUE(wait_child(waiter).ok());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    RecordProperty("seconds", std::to_string(took.count()));
    EXPECT_LT(took.count(), 10) << "they waited for a timeout";
    wait_child(holder);
}

TEST_F(Processes, TheOthersDoNotQueueBehindAFailure) {
    FakeBackend::on_build = [this](const FakeBackend::Request&, std::string&) {
        const bool first = ::mkdir((dir_ / "holder").c_str(), 0777) == 0;
        ::usleep(first ? 300000 : 1000);
        throw CompileError("no", {});
    };
    std::vector<pid_t> children;
    for (int p = 0; p < 6; ++p)
        children.push_back(start_child([] {
            FakeRuntime jit(Config("/", "FAULT"));
            try {
                jit.compile("k", source(1));
            } catch (const CompileError&) {
                return 0;
            }
            return 1;
        }));
    for (const auto child : children) EXPECT_TRUE(wait_child(child).ok());
}

TEST_F(Processes, KilledAtAnyMomentNothingWrongIsLeft) {
    const char* asked = std::getenv("DEEP_JIT_KILL_ROUNDS");
    const int rounds = asked != nullptr               ? std::atoi(asked)
                       : DJ_TEST_TSAN || DJ_TEST_ASAN ? 40
                                                      : 500;
    std::mt19937 random(7);
    std::uniform_int_distribution<useconds_t> moment(0, 4000);
    FakeRuntime parent(Config("/", "FAULT"));
    int killed_early = 0;
    for (int round = 0; round < rounds; ++round) {
        const pid_t child = start_child([round] {
            FakeRuntime jit(Config("/", "FAULT"));
            return right(jit, round) ? 0 : 1;
        });
        ::usleep(moment(random));
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        killed_early += WIFSIGNALED(status) ? 1 : 0;
        ASSERT_TRUE(right(parent, round)) << "round " << round;
    }
    EXPECT_GT(killed_early, rounds / 20) << "the test must kill some in time";
    EXPECT_EQ(parent.statistics().quarantined, 0U);
    Pruner(dir_ / "root").sweep(0);
    EXPECT_TRUE(names_in(dir_ / "root/tmp").empty());
    EXPECT_EQ(names_in(dir_ / "root/cache").size(), static_cast<std::size_t>(rounds));
}

}  // namespace
