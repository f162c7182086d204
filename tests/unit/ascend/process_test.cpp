// Several processes on one cache, processes that die, forks, and the end of the process.
#include "unit/ascend/fixture.hpp"
#include "unit/cuda/rerun.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

/// Says, when everything else is gone, whether ACL was called after it may have shut down.
struct EndWatch {
    std::string file;
    std::size_t calls = 0;
    ~EndWatch() {
        if (!file.empty())
            write(file, str::format("{} late calls", stand_in::StandInCann().calls() - calls));
    }
} end_watch;

/// As a kernel library has it: made before anything else, destroyed after everything else.
LazyInit<JIT> global_jit = create_lazy_jit<Ascend>(Config("/", "NPUTEST"));
std::shared_ptr<ascend::Kernel> global_kernel;

/// Doubles three numbers.
void check_scale(JIT& jit) {
    const auto kernel = jit.compile("scale", kScale);
    const DeviceArray in(std::vector<float>{1, 2, 3}), out(std::vector<float>(3));
    jit.launch(kernel, {.num_blocks = 2}, out.data(), in.data(), 3);
    EXPECT_EQ(out.values(), (std::vector<float>{2, 4, 6}));
}

class AscendProcess : public AscendStandIn {
protected:
    /// A host compiler that waits until `go` is there, and says that it has started.
    void make_compiler_wait() {
        make_script(temp / "compiler",
                    "#!/bin/sh\ntouch \"$DJ_TEST_DIR/started\"\n"
                    "while [ -d \"$DJ_TEST_DIR\" ] && [ ! -e \"$DJ_TEST_DIR/go\" ]; do\n"
                    "  sleep 0.02\ndone\nexec c++ \"$@\"\n");
        compiler.set((temp / "compiler").string());
    }
    void wait_for_start() const {
        for (int i = 0; i < 2000 && !fs::exists(temp / "started"); ++i) ::usleep(10000);
        ASSERT_TRUE(fs::exists(temp / "started"));
    }
    std::size_t compilations() const {
        return fs::exists(temp / "programs") ? count_of(slurp(temp / "programs"), "kernel.asc") : 0;
    }
    /// A new process that runs check_scale.
    static pid_t start_process() {
        return start_child([] {
            const auto self = fs::read_symlink("/proc/self/exe");
            ::execl(self.c_str(), self.c_str(), "--gtest_filter=*.DISABLED_ChecksScale",
                    "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
            return 98;
        });
    }

    ScopedEnv test_dir{"DJ_TEST_DIR", temp.path().string()};
    ScopedEnv compiler{"DJ_STAND_IN_CANN_CXX"};
};

TEST_F(AscendProcess, CompileKillCompile) {
    make_compiler_wait();
    const pid_t child = start_process();
    wait_for_start();
    ::kill(child, SIGKILL);
    EXPECT_FALSE(wait_child(child).ok());
    EXPECT_TRUE(names_in(temp / "cache" / "cache").empty());
    // Its compiler goes on, with nobody to wait for it.
    write(temp / "go", "");
    JIT jit(config());
    check_scale(jit);
    EXPECT_EQ(names_in(temp / "cache" / "cache"),
              std::vector<std::string>{"scale." + jit.cache_key(kScale)});
    JIT again(config());
    const auto runs = compilations();
    check_scale(again);
    EXPECT_EQ(compilations(), runs);
}

TEST_F(AscendProcess, FourProcessesWantTheSameKernel) {
    make_compiler_wait();
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) children.push_back(start_process());
    wait_for_start();
    write(temp / "go", "");
    for (const pid_t child : children) {
        const auto result = wait_child(child, 120);
        EXPECT_TRUE(result.ok()) << result;
    }
    EXPECT_GE(compilations(), 1U);
    EXPECT_LE(compilations(), 4U);
    EXPECT_EQ(names_in(temp / "cache" / "cache").size(), 1U);
    EXPECT_TRUE(names_in(temp / "cache" / "tmp").empty());
    const auto runs = compilations();
    JIT jit(config());
    check_scale(jit);
    EXPECT_EQ(compilations(), runs);
}

TEST_F(AscendProcess, AForkAfterTheFirstUseLeavesTheChildWithCompilingOnly) {
    arch.set("2201");
    JIT jit(config());
    auto kernel = jit.compile("nothing", kNothing);
    in_child([&] {
        EXPECT_TRUE(fs::exists(jit.compile_without_load("scale", kScale) / "kernel.o"));
        EXPECT_EQ(jit.compile("nothing", kNothing), kernel);
        constexpr const char* kHint =
            "ACL does not work in a child that was forked after its parent had used it";
        EXPECT_CONTAINS(message_of<LaunchError>([&] { jit.launch(kernel, {.num_blocks = 1}); }),
                        kHint);
        EXPECT_CONTAINS(message_of<Error>([&] { jit.compile("scale", kScale); }), kHint);
        // Nothing is unloaded here: it is the parent's.
        const auto calls = stand_in->calls();
        kernel->unload();
        EXPECT_EQ(stand_in->calls(), calls);
    });
    jit.launch(kernel, {.num_blocks = 1});
    EXPECT_EQ(stand_in->live_binaries(), 1U);
}

TEST_F(AscendProcess, AForkBeforeTheFirstUseWorksInBoth) {
    EXPECT_RERUN("AscendProcessBody.DISABLED_ForksBeforeItsFirstUse");
    EXPECT_EQ(compilations(), 1U);
}

TEST_F(AscendProcess, NothingIsCalledOnceTheProcessEnds) {
    const ScopedEnv end("DJ_TEST_END", (temp / "end").string());
    EXPECT_RERUN("AscendProcessBody.DISABLED_CallsAclTooLate");
    EXPECT_EQ(slurp(temp / "end"), "1 late calls");
    EXPECT_RERUN("AscendProcessBody.DISABLED_EndsWithKernelsAlive");
    EXPECT_EQ(slurp(temp / "end"), "0 late calls");
}

TEST_F(AscendProcess, ACannThatIsTooOldIsNamedWhenItMatters) {
    const ScopedEnv old("LD_LIBRARY_PATH", DEEP_JIT_TEST_CANN "/lib64-8.3");
    EXPECT_RERUN("AscendProcessBody.DISABLED_LaunchesWithTooOldACann");
}

// --- Bodies that run as processes of their own -------------------------------------------------

TEST(AscendProcessBody, DISABLED_ChecksScale) { check_scale(*global_jit); }

TEST(AscendProcessBody, DISABLED_LaunchesWithTooOldACann) {
    const auto text = message_of<ToolchainError>([] { check_scale(*global_jit); });
    EXPECT_CONTAINS(text, "its ACL has no aclrtLaunchKernelWithHostArgs");
    EXPECT_CONTAINS(text, "CANN 8.5.0 or newer is needed");
}

TEST(AscendProcessBody, DISABLED_ForksBeforeItsFirstUse) {
    JIT jit(Config("/", "NPUTEST"));
    in_child([&] {
        check_scale(jit);
        check_scale(*global_jit);
    });
    check_scale(jit);
    check_scale(*global_jit);
}

/// Counts the calls at the end of main, which is before ACL's own end.
void watch_the_end() {
    driver::lazy_aclInit.get();
    end_watch.file = std::getenv("DJ_TEST_END");
    // In front of what the library registers when it starts ACL, so it runs behind that.
    std::atexit([] { end_watch.calls = stand_in::StandInCann().calls(); });
}

TEST(AscendProcessBody, DISABLED_EndsWithKernelsAlive) {
    watch_the_end();
    global_kernel = global_jit->compile("nothing", kNothing);
    // Made later, so destroyed earlier; a kernel may outlive its runtime.
    static JIT later(Config("/", "NPUTEST"));
    static const auto kernel = later.compile("nothing", kNothing);
    later.launch(kernel, {.num_blocks = 1});
    global_jit->launch(global_kernel, {.num_blocks = 1});
    DJ_ACL_CHECK(driver::lazy_aclrtSynchronizeDevice());
}

/// That late calls would be seen.
TEST(AscendProcessBody, DISABLED_CallsAclTooLate) {
    struct Late {
        ~Late() {
            std::uint32_t count = 0;
            driver::lazy_aclrtGetDeviceCount(&count);
        }
    };
    static const auto late = std::make_unique<Late>();
    watch_the_end();
}

}  // namespace
