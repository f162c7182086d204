// Tests of what happens to a whole process run their body as a process of their own: this program
// again, with one test that is disabled otherwise.
#pragma once

#include <string>
#include <vector>

#include <deep_jit/utils/command.hpp>

#include "unit/support.hpp"

namespace deep_jit_test {

/// Runs the disabled test `suite.name` in a new process, which ends as processes end: by exit().
/// Fails when that test fails or does not exist.
inline deep_jit::CommandResult rerun(const std::string& test) {
    const auto self = fs::read_symlink("/proc/self/exe");
    auto result = deep_jit::call_external_command(
        {self.string(), "--gtest_filter=" + test, "--gtest_also_run_disabled_tests"});
    if (result.output.find("[  PASSED  ] 1 test.") == std::string::npos)
        result.exit_code = -1;
    return result;
}

#define EXPECT_RERUN(test)                                           \
    do {                                                             \
        const auto rerun_result = ::deep_jit_test::rerun(test);      \
        EXPECT_EQ(rerun_result.exit_code, 0) << rerun_result.output; \
    } while (false)

}  // namespace deep_jit_test
