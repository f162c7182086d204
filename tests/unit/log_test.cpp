#include <string>
#include <thread>
#include <vector>

#include <deep_jit/utils/log.hpp>

#include "support.hpp"

namespace {

using deep_jit::Env;
using deep_jit_test::kOddName;
using deep_jit_test::ScopedEnv;
using deep_jit_test::slurp;
using deep_jit_test::TempDir;
namespace dj_log = deep_jit::log;

const Env kEnv("DJTEST");

TEST(Log, StderrByDefault) {
    const ScopedEnv global("DJ_JIT_LOG_FILE"), own("DJTEST_JIT_LOG_FILE");
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    dj_log::write(kEnv, "one");
    dj_log::write(kEnv, "two\n");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "one\ntwo\n");
}

TEST(Log, StdoutWhenAsked) {
    const ScopedEnv own("DJTEST_JIT_LOG_FILE", "stdout");
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    dj_log::write(kEnv, "one");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "one\n");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Log, AFileIsAppendedTo) {
    const TempDir dir;
    const ScopedEnv own("DJTEST_JIT_LOG_FILE", (dir / kOddName).string());
    dj_log::write(kEnv, "one");
    dj_log::write(kEnv, "two\nlines");
    dj_log::write(kEnv, "");
    EXPECT_EQ(slurp(dir / kOddName), "one\ntwo\nlines\n\n");
}

TEST(Log, WhatCannotBeOpenedGoesToStderr) {
    const TempDir dir;
    const ScopedEnv own("DJTEST_JIT_LOG_FILE", (dir / "missing" / "x").string());
    testing::internal::CaptureStderr();
    dj_log::write(kEnv, "one");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "one\n");
}

TEST(Log, WhatCannotBeWrittenIsLost) {
    const ScopedEnv own("DJTEST_JIT_LOG_FILE", "/dev/full");
    testing::internal::CaptureStderr();
    dj_log::write(kEnv, "one");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Log, LinesOfThreadsDoNotMix) {
    const TempDir dir;
    const ScopedEnv own("DJTEST_JIT_LOG_FILE", (dir / "log").string());
    std::vector<std::thread> threads;
    for (char c = 'a'; c < 'i'; ++c)
        threads.emplace_back([c] {
            for (int i = 0; i < 50; ++i) dj_log::write(kEnv, std::string(200, c));
        });
    for (auto& thread : threads) thread.join();
    std::string expected;
    const auto text = slurp(dir / "log");
    EXPECT_EQ(text.size(), 8u * 50 * 201);
    for (char c = 'a'; c < 'i'; ++c)
        EXPECT_EQ(deep_jit_test::count_of(text, std::string(200, c) + "\n"), 50u) << c;
}

TEST(Log, AWarningIsGivenOnceForATopic) {
    const TempDir dir;
    const ScopedEnv own("DJTEST_JIT_LOG_FILE", (dir / "log").string());
    const std::string topic = "log_test " + dir.path().string();
    for (int i = 0; i < 3; ++i) dj_log::warn_once(kEnv, topic, "careful");
    dj_log::warn_once(kEnv, topic + " other", "also");
    EXPECT_EQ(slurp(dir / "log"), "deep_jit warning: careful\ndeep_jit warning: also\n");
}

}  // namespace
