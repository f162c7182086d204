// Every file operation of the cache fails, with every error that it can have: the kernel still
// works, and nothing wrong is left for the next process.
#include <cerrno>
#include <string>
#include <vector>

#include <deep_jit/utils/command.hpp>
#include <deep_jit/utils/str.hpp>

#include "unit/support.hpp"

namespace {

using namespace deep_jit_test;

struct Fault {
    const char* operation;
    int error;
    const char* name;
};

const Fault kFaults[] = {
    {"open_read", EACCES, "EACCES"},
    {"open_read", EIO, "EIO"},
    {"open_read", ESTALE, "ESTALE"},
    {"open_read", ENOENT, "ENOENT"},
    {"open_read", EMFILE, "EMFILE"},
    {"open_read", EINTR, "EINTR"},
    {"open_write", ENOSPC, "ENOSPC"},
    {"open_write", EDQUOT, "EDQUOT"},
    {"open_write", EROFS, "EROFS"},
    {"open_write", EACCES, "EACCES"},
    {"open_write", EIO, "EIO"},
    {"open_write", ESTALE, "ESTALE"},
    {"open_write", EMFILE, "EMFILE"},
    {"open_write", EINTR, "EINTR"},
    {"read", EIO, "EIO"},
    {"read", ESTALE, "ESTALE"},
    {"read", EINTR, "EINTR"},
    {"write", ENOSPC, "ENOSPC"},
    {"write", EDQUOT, "EDQUOT"},
    {"write", EIO, "EIO"},
    {"write", ESTALE, "ESTALE"},
    {"write", EINTR, "EINTR"},
    {"short_write", 0, "short"},
    {"fsync", EIO, "EIO"},
    {"fsync", ENOSPC, "ENOSPC"},
    {"fsync", EDQUOT, "EDQUOT"},
    {"fsync", EINTR, "EINTR"},
    {"close", EIO, "EIO"},
    {"close", ENOSPC, "ENOSPC"},
    {"close", EDQUOT, "EDQUOT"},
    {"close", EINTR, "EINTR"},
    {"rename", ENOSPC, "ENOSPC"},
    {"rename", EROFS, "EROFS"},
    {"rename", EACCES, "EACCES"},
    {"rename", EIO, "EIO"},
    {"rename", ESTALE, "ESTALE"},
    {"rename", EBUSY, "EBUSY"},
    {"rename", EXDEV, "EXDEV"},
    {"rename", ENOENT, "ENOENT"},
    {"rename", EDQUOT, "EDQUOT"},
    {"mkdir", ENOSPC, "ENOSPC"},
    {"mkdir", EDQUOT, "EDQUOT"},
    {"mkdir", EROFS, "EROFS"},
    {"mkdir", EACCES, "EACCES"},
    {"mkdir", EIO, "EIO"},
    {"mkdir", ESTALE, "ESTALE"},
    {"stat", EACCES, "EACCES"},
    {"stat", EIO, "EIO"},
    {"stat", ESTALE, "ESTALE"},
    {"stat", ENOENT, "ENOENT"},
    {"unlink", EACCES, "EACCES"},
    {"unlink", EBUSY, "EBUSY"},
    {"unlink", EIO, "EIO"},
    {"unlink", ENOENT, "ENOENT"},
    {"lock", ENOLCK, "ENOLCK"},
    {"lock", EINTR, "EINTR"},
    {"lock", EIO, "EIO"},
    {"lock", EINVAL, "EINVAL"},
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.operation << fault.name; }

class Injection : public testing::TestWithParam<Fault> {
protected:
    Injection() {
        if (DJ_TEST_TSAN || DJ_TEST_ASAN)
            return;
        root_.set((dir_ / "root").string());
        tmp_.set((dir_ / "tmp").string());
        log_.set((dir_ / "log").string());
    }
    void SetUp() override {
        if (DJ_TEST_TSAN || DJ_TEST_ASAN)
            GTEST_SKIP() << "the sanitizer's own library must be loaded first";
    }

    static deep_jit::CommandResult run() {
        return deep_jit::call_external_command({DEEP_JIT_FAULT_PROGRAM, "1", "2"});
    }

    /// True when an operation failed in this run.
    bool run_with_fault(long nth, bool rest) {
        const auto& fault = GetParam();
        fs::remove_all(dir_ / "root");
        fs::remove_all(dir_ / "tmp");
        fs::create_directories(dir_ / "tmp");
        // One of the two kernels is there already.
        EXPECT_TRUE(deep_jit::call_external_command({DEEP_JIT_FAULT_PROGRAM, "1"}).ok());
        fs::remove(dir_ / "report");
        const auto where =
            std::string(fault.operation) == "lock" ? "locks" : (dir_ / "root").string();
        const ScopedEnv preload("LD_PRELOAD", DEEP_JIT_FAULT_LIBRARY);
        const ScopedEnv operation("DJ_INJECT_OPERATION", fault.operation);
        const ScopedEnv error("DJ_INJECT_ERROR", std::to_string(fault.error));
        const ScopedEnv path("DJ_INJECT_PATH", where);
        const ScopedEnv number("DJ_INJECT_NTH", std::to_string(nth));
        const ScopedEnv more("DJ_INJECT_REST",
                             rest ? std::optional<std::string>("1") : std::nullopt);
        const ScopedEnv report("DJ_INJECT_REPORT", (dir_ / "report").string());
        const auto result = run();
        EXPECT_TRUE(result.ok()) << result.output << "\nnth: " << nth << ", rest: " << rest;
        return fs::exists(dir_ / "report");
    }

    const TempDir dir_{"fault"};
    ScopedEnv root_{"DJ_JIT_CACHE_DIR"};
    ScopedEnv tmp_{"TMPDIR"};
    ScopedEnv log_{"DJ_JIT_LOG_FILE"};
};

TEST_P(Injection, TheKernelWorksAndTheNextProcessIsWell) {
    const bool interrupts = GetParam().error == EINTR;
    long faults = 0;
    for (const bool rest : {false, true}) {
        // A call that is interrupted for ever never ends, and that is right.
        if (rest && interrupts)
            continue;
        for (long nth = 1; run_with_fault(nth, rest); ++nth) {
            ++faults;
            const auto after = run();
            EXPECT_TRUE(after.ok()) << after.output << "\nafter nth: " << nth << ", rest: " << rest;
            ASSERT_LT(nth, 500);
            if (HasFailure())
                return;
        }
    }
    EXPECT_GT(faults, 0) << "nothing ever failed: the injector does not see this operation";
}

INSTANTIATE_TEST_SUITE_P(Cache, Injection, testing::ValuesIn(kFaults), [](const auto& info) {
    return deep_jit::str::format("{}_{}", info.param.operation, info.param.name);
});

}  // namespace
