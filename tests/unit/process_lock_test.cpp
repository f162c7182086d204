// The lock among the processes of a node.
#include <atomic>
#include <chrono>
#include <thread>

#include <deep_jit/cache/node_flight.hpp>
#include <deep_jit/cache/process_lock.hpp>
#include <deep_jit/utils/uuid.hpp>

#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using Result = ProcessLock::Result;
using Seconds = std::chrono::duration<double>;

const auto kNobody = [](const std::string&) {};

TEST(ProcessLock, OneHolderAKey) {
    const auto key = get_uuid();
    ProcessLock first, second, other;
    ASSERT_EQ(first.acquire(key, "work", Seconds(0), kNobody), Result::held);
    EXPECT_EQ(other.acquire(key + "other", "work", Seconds(0), kNobody), Result::held);
    EXPECT_EQ(second.acquire(key, "work", Seconds(0), kNobody), Result::timed_out);
    first.release();
    EXPECT_EQ(second.acquire(key, "work", Seconds(0), kNobody), Result::held);
}

TEST(ProcessLock, TheHolderIsNamed) {
    const auto key = get_uuid();
    ProcessLock first, second;
    ASSERT_EQ(first.acquire(key, "some kernel", Seconds(0), kNobody), Result::held);
    std::string holder;
    EXPECT_EQ(
        second.acquire(key, "", Seconds(0.05), [&](const std::string& name) { holder = name; }),
        Result::timed_out);
    EXPECT_EQ(holder, "process " + std::to_string(::getpid()) + " (some kernel)");
}

TEST(ProcessLock, AFailureLetsAllWaitersGo) {
    const auto key = get_uuid();
    ProcessLock first;
    ASSERT_EQ(first.acquire(key, "work", Seconds(0), kNobody), Result::held);
    std::atomic<bool> waits{false};
    Result result{};
    std::thread waiter([&] {
        ProcessLock second;
        result = second.acquire(key, "", Seconds(30), [&](const std::string&) { waits = true; });
    });
    while (!waits) std::this_thread::yield();
    first.release_failed();
    waiter.join();
    EXPECT_TRUE(result == Result::failed || result == Result::held);
}

TEST(ProcessLock, AForkedChildHoldsNothing) {
    const auto key = get_uuid();
    ProcessLock first;
    ASSERT_EQ(first.acquire(key, "work", Seconds(0), kNobody), Result::held);
    // The child lives on; its parent's lock must not live on in it.
    const pid_t child = start_child([] {
        ::pause();
        return 0;
    });
    first.release();
    ProcessLock second;
    EXPECT_EQ(second.acquire(key, "work", Seconds(0), kNobody), Result::held);
    ::kill(child, SIGKILL);
    wait_child(child);
}

TEST(ProcessLock, TheKernelFreesItWhenItsHolderDies) {
    const auto key = get_uuid();
    const TempDir dir;
    const pid_t child = start_child([&] {
        ProcessLock lock;
        if (lock.acquire(key, "work", Seconds(0), kNobody) == Result::held)
            write(dir / "held", "");
        ::pause();
        return 0;
    });
    while (!fs::exists(dir / "held")) ::usleep(1000);
    ProcessLock lock;
    EXPECT_EQ(lock.acquire(key, "work", Seconds(0), kNobody), Result::timed_out);
    ::kill(child, SIGKILL);
    wait_child(child);
    EXPECT_EQ(lock.acquire(key, "work", Seconds(0), kNobody), Result::held);
}

TEST(NodeFlight, WaitingIsReportedWhenAskedFor) {
    const TempDir dir;
    const ScopedEnv debug("DJ_JIT_DEBUG", "1");
    const ScopedEnv timeout("DJ_JIT_LOCK_TIMEOUT", "0");
    const ScopedEnv log("DJ_JIT_LOG_FILE", (dir / "log").string());
    const NodeFlight flight(Env("NODETEST"));
    ProcessLock first, second;
    EXPECT_FALSE(flight.enter(dir / "root", "k.1", first));
    EXPECT_TRUE(first.held());
    flight.enter(dir / "root", "k.1", second);
    EXPECT_FALSE(second.held());
    EXPECT_NE(slurp(dir / "log").find("DJ_JIT_LOCK_TIMEOUT"), std::string::npos);
}

TEST(NodeFlight, CanBeTurnedOff) {
    const TempDir dir;
    const ScopedEnv off("DJ_JIT_SINGLE_FLIGHT", "0");
    ProcessLock lock;
    EXPECT_FALSE(NodeFlight(Env("NODETEST")).enter(dir / "root", "k.1", lock));
    EXPECT_FALSE(lock.held());
}

TEST(NodeFlight, ANegativeTimeoutIsRefused) {
    const ScopedEnv timeout("DJ_JIT_LOCK_TIMEOUT", "-1");
    EXPECT_THROW(NodeFlight(Env("NODETEST")), ConfigError);
}

}  // namespace
