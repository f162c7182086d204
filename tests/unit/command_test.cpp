#include <pthread.h>
#include <signal.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include <deep_jit/utils/command.hpp>

#include "support.hpp"

namespace {

using namespace deep_jit;
using deep_jit_test::kOddName;
using deep_jit_test::make_script;
using deep_jit_test::message_of;
using deep_jit_test::run_child;
using deep_jit_test::ScopedEnv;
using deep_jit_test::TempDir;

CommandResult shell(const std::string& script) {
    return call_external_command({"/bin/sh", "-c", script});
}

TEST(Command, ExitCodes) {
    for (const int code : {0, 1, 2, 125, 255}) {
        const auto result = shell("exit " + std::to_string(code));
        EXPECT_EQ(result.exit_code, code);
        EXPECT_EQ(result.ok(), code == 0);
        EXPECT_EQ(result.output, "");
    }
}

TEST(Command, SignalsCountFrom128) {
    for (const int signal : {SIGTERM, SIGKILL, SIGSEGV, SIGABRT, SIGPIPE, SIGINT})
        EXPECT_EQ(shell("ulimit -c 0; kill -" + std::to_string(signal) + " $$").exit_code,
                  128 + signal);
}

TEST(Command, OutputAndErrorsInTheOrderWritten) {
    EXPECT_EQ(shell("echo a; echo b >&2; printf c").output, "a\nb\nc");
    const auto bytes = shell("printf '\\000\\377x'").output;
    EXPECT_EQ(bytes, std::string("\0\xffx", 3));
}

TEST(Command, AMissingProgramIs127) {
    const TempDir dir;
    for (const auto& program : {(dir / "gone").string(), std::string("no-such-program-djtest"),
                                (dir / "gone" / "x").string(), std::string()}) {
        const auto result = call_external_command({program});
        EXPECT_EQ(result.exit_code, 127) << program;
        EXPECT_CONTAINS(result.output, program);
    }
    deep_jit_test::write(dir / "file", "");
    EXPECT_EQ(call_external_command({(dir / "file" / "x").string()}).exit_code, 127);
}

TEST(Command, WhatMayNotBeExecutedIs126) {
    const TempDir dir;
    deep_jit_test::write(dir / "plain", "#!/bin/sh\n");
    EXPECT_EQ(call_external_command({(dir / "plain").string()}).exit_code, 126);
    EXPECT_EQ(call_external_command({dir.path().string()}).exit_code, 126) << "a directory";
    // Executable, but of no known format: a shell would try to interpret it.
    make_script(dir / "text", "touch pwned\n");
    EXPECT_EQ(call_external_command({(dir / "text").string()}, dir.path()).exit_code, 126);
}

TEST(Command, AMissingInterpreterIs127) {
    const TempDir dir;
    make_script(dir / "script", "#!/no/such/interpreter\n");
    EXPECT_EQ(call_external_command({(dir / "script").string()}).exit_code, 127);
}

TEST(Command, TheProgramIsFoundInPath) {
    const TempDir dir;
    make_script(dir / "djtest-tool", "#!/bin/sh\necho found\n");
    const ScopedEnv path("PATH", dir.path().string() + ":" + std::getenv("PATH"));
    const auto result = call_external_command({"djtest-tool"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, "found\n");
}

TEST(Command, ArgumentsAreTakenLiterally) {
    const TempDir dir;
    const std::vector<std::string> odd = {"",
                                          " ",
                                          "a b",
                                          "'",
                                          "\"",
                                          "\\",
                                          "$HOME",
                                          "$(touch pwned)",
                                          "`touch pwned`",
                                          ";",
                                          "; touch pwned",
                                          "|",
                                          "> pwned",
                                          "*",
                                          "?",
                                          "~",
                                          "\n",
                                          "a\nb",
                                          "\t",
                                          "-n",
                                          "--",
                                          "%s",
                                          "\xff\xfe",
                                          "{a,b}",
                                          "&& touch pwned",
                                          "#"};
    std::vector<std::string> command = {"/bin/sh", "-c", "printf '<%s>' \"$@\"", "sh"};
    command.insert(command.end(), odd.begin(), odd.end());
    const auto result = call_external_command(command, dir.path());
    std::string expected;
    for (const auto& argument : odd) expected += "<" + argument + ">";
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, expected);
}

TEST(Command, AProgramWithAnOddPath) {
    const TempDir dir;
    make_script(dir / kOddName / kOddName, "#!/bin/sh\necho \"$1\"\n");
    const auto result = call_external_command({(dir / kOddName / kOddName).string(), kOddName});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, std::string(kOddName) + "\n");
}

TEST(Command, ANulByteInAnArgumentIsRefused) {
    EXPECT_CONTAINS(message_of<ConfigError>([] {
                        call_external_command({"echo", std::string("a\0b", 3)});
                    }),
                    "NUL");
    EXPECT_THROW(call_external_command({}), Error);
}

TEST(Command, RunsInTheGivenDirectory) {
    const TempDir dir;
    const auto here = std::filesystem::current_path();
    EXPECT_EQ(call_external_command({"pwd", "-P"}, dir.path()).output,
              std::filesystem::canonical(dir.path()).string() + "\n");
    EXPECT_EQ(call_external_command({"pwd", "-P"}).output, here.string() + "\n");
    EXPECT_EQ(std::filesystem::current_path(), here);
    make_script(dir / "tool", "#!/bin/sh\necho relative\n");
    EXPECT_EQ(call_external_command({"./tool"}, dir.path()).output, "relative\n");
}

TEST(Command, AMissingDirectoryIsNamed) {
    const TempDir dir;
    EXPECT_CONTAINS(
        message_of<ToolchainError>([&] { call_external_command({"/bin/true"}, dir / "gone"); }),
        (dir / "gone").string());
    deep_jit_test::write(dir / "file", "");
    EXPECT_CONTAINS(
        message_of<ToolchainError>([&] { call_external_command({"/bin/true"}, dir / "file"); }),
        (dir / "file").string());
}

TEST(Command, MuchOutput) {
    const auto result = shell("head -c 10000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 3");
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.output, std::string(11000000, '\0'));
}

TEST(Command, StandardInputIsEmpty) {
    const auto result = shell("cat; echo end");
    EXPECT_EQ(result.output, "end\n");
    EXPECT_EQ(shell("readlink /proc/self/fd/0").output, "/dev/null\n");
}

TEST(Command, ItHasAProcessGroupOfItsOwn) {
    // Fifth field of stat; the second holds the name in parentheses.
    const auto result = shell("set -- $(cat /proc/self/stat); echo $5 $$");
    const auto blank = result.output.find(' ');
    EXPECT_EQ(result.output.substr(0, blank) + "\n", result.output.substr(blank + 1));
    EXPECT_NE(std::stoi(result.output), ::getpgrp());
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
TEST(Command, TheChildGetsNoOtherFiles) {
    const int leak = ::open("/dev/null", O_RDONLY);  // without close-on-exec
    const int high = ::dup2(leak, 700);
    // ls opens one itself, for the directory.
    EXPECT_EQ(call_external_command({"ls", "/proc/self/fd"}).output, "0\n1\n2\n3\n");
    ::close(leak);
    ::close(high);
}
#endif

TEST(Command, NoFileStaysOpenInTheParent) {
    const auto open_files = [] { return deep_jit_test::names_in("/proc/self/fd").size(); };
    shell("true");
    const auto before = open_files();
    for (int i = 0; i < 20; ++i) {
        shell("exit 1");
        call_external_command({"no-such-program-djtest"});
    }
    EXPECT_EQ(open_files(), before);
}

TEST(Command, BlockedAndIgnoredSignalsAreNotPassedOn) {
    sigset_t all, old;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &old);
    const auto old_term = ::signal(SIGTERM, SIG_IGN);
    const auto old_pipe = ::signal(SIGPIPE, SIG_IGN);
    const auto term = shell("kill -TERM $$; echo survived");
    const auto pipe = shell("kill -PIPE $$; echo survived");
    ::signal(SIGTERM, old_term);
    ::signal(SIGPIPE, old_pipe);
    ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
    EXPECT_EQ(term.exit_code, 128 + SIGTERM);
    EXPECT_EQ(pipe.exit_code, 128 + SIGPIPE);
    EXPECT_EQ(term.output + pipe.output, "");
}

TEST(Command, InterruptingSignalsDoNotHurt) {
    struct sigaction action {
    }, old{};
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &action, &old);  // without SA_RESTART
    std::atomic<bool> stop{false};
    const pthread_t target = ::pthread_self();
    std::thread pest([&] {
        while (!stop) {
            ::pthread_kill(target, SIGUSR1);
            ::usleep(200);
        }
    });
    for (int i = 0; i < 5; ++i) {
        const auto result = shell("echo a; sleep 0.05; echo b; exit 4");
        EXPECT_EQ(result.exit_code, 4);
        EXPECT_EQ(result.output, "a\nb\n");
    }
    stop = true;
    pest.join();
    ::sigaction(SIGUSR1, &old, nullptr);
}

TEST(Command, AnyStandardStreamMayBeClosed) {
    for (int mask = 0; mask < 8; ++mask) {
        const auto result = run_child([&] {
            for (int fd = 0; fd < 3; ++fd)
                if ((mask & (1 << fd)) != 0)
                    ::close(fd);
            const auto out = shell("cat; echo out; echo err >&2; readlink /proc/self/fd/0; exit 5");
            if (out.exit_code != 5)
                return 1;
            if (out.output != "out\nerr\n/dev/null\n")
                return 2;
            int closed = 0;
            for (int fd = 0; fd < 3; ++fd)
                if (::fcntl(fd, F_GETFD) == -1)
                    closed |= 1 << fd;
            return closed == mask ? 0 : 3;  // something was left open, or closed
        });
        EXPECT_TRUE(result.ok()) << "closed: " << mask << ": " << result;
    }
}

TEST(Command, IgnoredSigchldIsSaidClearly) {
    const auto result = run_child([] {
        ::signal(SIGCHLD, SIG_IGN);
        const auto message =
            message_of<ToolchainError>([] { call_external_command({"/bin/true"}); });
        return message.find("SIGCHLD") != std::string::npos ? 0 : 1;
    });
    EXPECT_TRUE(result.ok()) << result;
}

TEST(Command, WhatIsTooLongToStartIsAnErrorNotAnExitCode) {
    const std::string big(4 << 20, 'x');
    EXPECT_CONTAINS(message_of<ToolchainError>([&] {
                        call_external_command({"/bin/true", big});
                    }),
                    "Argument list too long");
}

TEST(Command, ManyThreads) {
    std::vector<std::thread> threads;
    std::vector<int> bad(8, 0);
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([t, &bad] {
            for (int i = 0; i < 10; ++i) {
                const auto result =
                    shell("echo " + std::to_string(t * 100 + i) + "; exit " + std::to_string(t));
                if (result.exit_code != t || result.output != std::to_string(t * 100 + i) + "\n")
                    ++bad[static_cast<std::size_t>(t)];
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(bad, std::vector<int>(8, 0));
}

// A child that was forked while a command was being started, and lives on, must not hold the
// command's output open.
TEST(Command, EndsWhateverWasForkedMeanwhile) {
    const auto result = run_child([] {
        std::vector<pid_t> children;
        int code = -1;
        std::thread runs([&] {
            for (int i = 0; i < 20; ++i) code = shell("exit 3").exit_code;
        });
        for (int i = 0; i < 40; ++i) {
            children.push_back(::fork());
            if (children.back() == 0) {
                ::pause();
                ::_exit(0);
            }
            ::usleep(300);
        }
        runs.join();
        for (const auto child : children) {
            ::kill(child, SIGKILL);
            ::waitpid(child, nullptr, 0);
        }
        return code == 3 ? 0 : 1;
    });
    EXPECT_TRUE(result.ok()) << result;
}

TEST(Command, TextReadsBackInAShell) {
    const std::vector<std::string> command = {"printf", "<%s>",           "a b",
                                              "it's",   "$(touch pwned)", ""};
    EXPECT_EQ(command_text(command), "printf '<%s>' 'a b' 'it'\\''s' '$(touch pwned)' ''");
    EXPECT_EQ(shell(command_text(command)).output, "<a b><it's><$(touch pwned)><>");
}

TEST(Command, HintsNameTheUsualReasons) {
    EXPECT_CONTAINS(exit_code_hint(137, ""), "ran out of memory");
    EXPECT_CONTAINS(exit_code_hint(1, "g++: fatal error: Killed signal terminated"), "memory");
    EXPECT_CONTAINS(exit_code_hint(127, ""), "missing");
    EXPECT_CONTAINS(exit_code_hint(126, ""), "may not be executed");
    EXPECT_CONTAINS(exit_code_hint(1, "x: No space left on device"), "disk is full");
    EXPECT_EQ(exit_code_hint(1, "error: expected ';'"), "");
}

}  // namespace
