// Discovery of toolkits: made-up ones in temporary directories. Nothing of them is ever started.
#include <deep_jit/backend/ascend/toolkit.hpp>

#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class AscendToolkit : public testing::Test {
protected:
    /// A toolkit whose programs fail when they are run; `headers` is above `asc`.
    fs::path make_toolkit(const fs::path& root, const std::string& tools = "bin",
                          const std::string& headers = "aarch64-linux") const {
        make_script(root / tools / "bisheng", "#!/bin/sh\nexit 1\n");
        make_script(root / tools / "ld.lld", "#!/bin/sh\nexit 1\n");
        fs::create_directories(root / headers / "asc" / "include" / "adv_api");
        return root;
    }
    ascend::Toolkit find() const { return ascend::find_ascend_toolkit(Env("NPUTEST")); }
    std::string failure() const {
        return message_of<ToolchainError>([this] { find(); });
    }
    fs::path adv_api(const fs::path& above) const { return above / "asc" / "include" / "adv_api"; }

    TempDir temp;
    std::string machine = ascend::detail::machine_dir();
    ScopedEnv home{"ASCEND_HOME_PATH"}, toolkit_home{"ASCEND_TOOLKIT_HOME"};
};

TEST_F(AscendToolkit, HomePathBeforeToolkitHome) {
    const auto a = make_toolkit(temp / "a"), b = make_toolkit(temp / "b");
    toolkit_home.set(b.string());
    EXPECT_EQ(find().bisheng, b / "bin" / "bisheng");
    home.set(a.string() + "/");
    const auto found = find();
    EXPECT_EQ(found.root, a);
    EXPECT_EQ(found.bisheng, a / "bin" / "bisheng");
    EXPECT_EQ(found.ld_lld, a / "bin" / "ld.lld");
    EXPECT_EQ(found.include_dirs, std::vector<fs::path>{adv_api(a / "aarch64-linux")});
    home.set("");
    EXPECT_EQ(find().root, b);
}

TEST_F(AscendToolkit, EveryLayoutOfTheHeaders) {
    for (const char* above : {"aarch64-linux", "x86_64-linux", ".", "compiler"}) {
        const auto root = make_toolkit(temp / "layouts" / above / "root", "bin", above);
        home.set(root.string());
        const auto found = find();
        ASSERT_EQ(found.include_dirs.size(), 1U);
        EXPECT_TRUE(fs::equivalent(found.include_dirs[0], adv_api(root / above))) << above;
    }
}

TEST_F(AscendToolkit, TheMachinesOwnHeadersComeFirst) {
    const auto root = make_toolkit(temp / "a", "bin", "aarch64-linux");
    for (const char* above : {"x86_64-linux", "compiler", "."}) {
        fs::create_directories(adv_api(root / above));
    }
    home.set(root.string());
    EXPECT_EQ(find().include_dirs[0], adv_api(root / machine));
    fs::remove_all(root / machine);
    EXPECT_EQ(find().include_dirs[0], adv_api(root));
}

TEST_F(AscendToolkit, EveryPlaceOfTheTools) {
    for (const std::string& tools :
         {std::string("bin"), machine + "/bin", std::string("tools/bisheng_compiler/bin"),
          machine + "/ccec_compiler/bin", std::string("compiler/ccec_compiler/bin")}) {
        const auto root = make_toolkit(temp / "tools" / tools / "root", tools);
        home.set(root.string());
        EXPECT_EQ(find().bisheng, root / tools / "bisheng") << tools;
        EXPECT_EQ(find().ld_lld, root / tools / "ld.lld") << tools;
    }
    // `bin` is the front door, whatever lies elsewhere.
    const auto root = make_toolkit(temp / "both", "tools/bisheng_compiler/bin");
    make_toolkit(root, "bin");
    home.set(root.string());
    EXPECT_EQ(find().bisheng, root / "bin" / "bisheng");
}

TEST_F(AscendToolkit, ABadVariableIsAnErrorThatQuotesIt) {
    toolkit_home.set(make_toolkit(temp / "good").string());
    home.set((temp / "missing").string());
    EXPECT_CONTAINS(failure(), "ASCEND_HOME_PATH is '" + (temp / "missing").string() + "'");
    EXPECT_CONTAINS(failure(), "there is no directory");
    home.set("/dev/null");
    EXPECT_CONTAINS(failure(), "ASCEND_HOME_PATH is '/dev/null'");
    home.set(std::nullopt);
    toolkit_home.set(temp.path().string());
    EXPECT_CONTAINS(failure(), "ASCEND_TOOLKIT_HOME is");
}

TEST_F(AscendToolkit, WhatIsMissingIsNamed) {
    const auto root = make_toolkit(temp / "a");
    home.set(root.string());
    fs::remove(root / "bin" / "ld.lld");
    auto text = failure();
    EXPECT_CONTAINS(text, "there is no executable bin/ld.lld in " + root.string());
    EXPECT_FALSE(contains(text, "bin/bisheng"));
    fs::remove(root / "bin" / "bisheng");
    write(root / "bin" / "bisheng", "not executable");
    text = failure();
    EXPECT_CONTAINS(text, "there is no executable bin/bisheng");
    EXPECT_CONTAINS(text, "and there is no executable bin/ld.lld");
    make_toolkit(root);
    fs::remove_all(root / "aarch64-linux");
    EXPECT_CONTAINS(failure(), "there are no headers " + machine + "/asc/include/adv_api");
    EXPECT_CONTAINS(failure(), "asc-devkit");
}

TEST_F(AscendToolkit, WithoutAnyTheErrorListsEveryPlace) {
    if (fs::exists("/usr/local/Ascend"))
        GTEST_SKIP() << "there is a CANN on this machine";
    const auto text = failure();
    EXPECT_CONTAINS(text, "There is no CANN toolkit");
    EXPECT_CONTAINS(text, "\n  ASCEND_HOME_PATH: not set");
    EXPECT_CONTAINS(text, "\n  ASCEND_TOOLKIT_HOME: not set");
    EXPECT_CONTAINS(text, "\n  /usr/local/Ascend/ascend-toolkit/latest: there is no directory");
    EXPECT_CONTAINS(text, "\n  /usr/local/Ascend/cann: there is no directory");
}

TEST_F(AscendToolkit, DebugPrintsTheSearch) {
    const ScopedEnv debug("NPUTEST_JIT_DEBUG", "1");
    const ScopedEnv log("NPUTEST_JIT_LOG_FILE", (temp / "log").string());
    home.set(make_toolkit(temp / "a").string());
    find();
    EXPECT_CONTAINS(slurp(temp / "log"),
                    "CANN toolkit search:\n  ASCEND_HOME_PATH: uses " + (temp / "a").string());
}

TEST_F(AscendToolkit, VersionsOfTheHeaders) {
    const auto root = make_toolkit(temp / "a");
    home.set(root.string());
    EXPECT_EQ(ascend::header_versions(find()), "");
    write(root / "include" / "version" / "asc_devkit_version.h", "#define ASC \"9.1.0\"\n");
    EXPECT_EQ(ascend::header_versions(find()), "#define ASC \"9.1.0\"\n");
    write(root / "include" / "version" / "cann_version.h", "#define CANN \"9.1.1\"\n");
    EXPECT_EQ(ascend::header_versions(find()), "#define ASC \"9.1.0\"\n#define CANN \"9.1.1\"\n");
}

}  // namespace
