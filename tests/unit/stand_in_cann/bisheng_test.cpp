// The stand-in bisheng takes the flags of the real one, and no others.
#include "unit/stand_in_cann/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInBisheng : public testing::Test {
protected:
    void SetUp() override { write(directory / "kernel.asc", kernel_source("plain_add")); }

    ToolResult bisheng(const std::vector<std::string>& arguments) {
        return run_tool("bisheng", arguments, directory.path());
    }
    void refuses(const std::vector<std::string>& arguments, const std::string& message) {
        const auto result = bisheng(arguments);
        EXPECT_EQ(result.status, 1) << message;
        EXPECT_CONTAINS(result.output, "bisheng: error: ");
        EXPECT_CONTAINS(result.output, message);
        EXPECT_FALSE(fs::exists(directory / "kernel.rel.o")) << message;
    }

    TempDir directory;
};

TEST_F(StandInBisheng, TakesWhatTheRealOneTakes) {
    for (const auto& flags : std::vector<std::vector<std::string>>{
             {},
             {"-g", "-gdwarf-5", "-gembed-source", "-gline-tables-only"},
             {"-fPIC", "-std=c++20", "-mllvm", "-cce-aicore-dcpreload-args=false"},
             {"-x", "asc", "-c", "--cce-auto-sync", "--cce-soc-version=Ascend910B3"},
             {"-mllvm", "-cce-aicore-stack-size=0x8000", "-D", "N=4", "-UN", "-Wall"},
             {"-Xaicore-start", "-O1", "-Xaicore-end", "-Xhost-start", "--foo", "-Xhost-end"}}) {
        const auto result = bisheng(with(bisheng_flags(), flags));
        EXPECT_EQ(result.status, 0) << result.output;
        EXPECT_EQ(result.output, "");
        EXPECT_TRUE(fs::remove(directory / "kernel.rel.o"));
    }
}

TEST_F(StandInBisheng, RefusesUnknownFlags) {
    refuses(with(bisheng_flags(), {"--no-such-flag"}), "unknown argument: '--no-such-flag'");
    refuses(with(bisheng_flags(), {"--use_fast_math"}), "unknown argument: '--use_fast_math'");
    refuses(with(bisheng_flags(), {"-mllvm", "-no-such-flag"}),
            "Unknown command line argument '-no-such-flag'");
    refuses(with(bisheng_flags(), {"-x", "cuda"}), "language not recognized: 'cuda'");
}

TEST_F(StandInBisheng, RefusesAnIncompleteCommand) {
    refuses({}, "no input files");
    refuses({"--npu-arch=dav-3510", "--cce-aicore-only", "none.asc"},
            "no such file or directory: 'none.asc'");
    refuses(with(bisheng_flags(), {"-D"}), "");
    refuses({"--cce-aicore-only", "kernel.asc", "-o"}, "argument to '-o' is missing");
    refuses({"--cce-aicore-only", "kernel.asc"}, "no NPU architecture");
    refuses({"--npu-arch=dav-3510", "kernel.asc"}, "--cce-aicore-only");
}

TEST_F(StandInBisheng, RefusesUnknownArchitectures) {
    refuses(bisheng_flags("dav-9999"), "unsupported value 'dav-9999'");
    refuses(bisheng_flags("3510"), "unsupported value '3510'");
    refuses(bisheng_flags("sm_90"), "unsupported value 'sm_90'");
}

TEST_F(StandInBisheng, TellsTheSourceWhatItCompilesFor) {
    const std::string source =
        "#if __NPU_ARCH__ != 2201 || !defined(__DAV_C220__) || !defined(__BISHENG_CCEC__) || "
        "__cplusplus != 201703L\n#error other\n#endif\n";
    write(directory / "kernel.asc", source + kernel_source("plain_add"));
    EXPECT_EQ(bisheng(bisheng_flags("dav-2201")).status, 0);
    fs::remove(directory / "kernel.rel.o");
    refuses(bisheng_flags("dav-3510"), "#error other");
}

TEST_F(StandInBisheng, ShowsWhereAnErrorIs) {
    write(directory / "kernel.asc",
          "#include \"kernel_operator.h\"\n"
          "extern \"C\" __global__ __aicore__ void k(__gm__ float* p) {\n"
          "    extern __ubuf__ float local[];\n"
          "    *p = wrong;\n}\n");
    const auto result = bisheng(bisheng_flags());
    EXPECT_EQ(result.status, 1);
    EXPECT_CONTAINS(result.output, "kernel.asc:4:10: error:");
    EXPECT_CONTAINS(result.output, "wrong");
}

TEST_F(StandInBisheng, FindsAdvancedApisOnlyWhereItIsTold) {
    write(directory / "kernel.asc", kernel_source("sigmoid"));
    refuses({"--npu-arch=dav-3510", "--cce-aicore-only", "kernel.asc", "-o", "kernel.rel.o"},
            "activation/sigmoid.h");
    EXPECT_EQ(bisheng(bisheng_flags()).status, 0);
}

TEST_F(StandInBisheng, WorksThroughLinksInOtherLayouts) {
    write(directory / "kernel.asc", kernel_source("sigmoid"));
    for (const std::string asc : {"aarch64-linux/asc", "x86_64-linux/asc", "asc"}) {
        const TempDir other("toolkit");
        fs::create_directories((other / asc).parent_path());
        fs::create_directory(other / "bin");
        fs::create_symlink(toolkit() / "bin/bisheng", other / "bin/bisheng");
        fs::create_symlink(toolkit() / "asc", other / asc);
        const auto result =
            run_tool((other / "bin/bisheng").string(),
                     {"--npu-arch=dav-3510", "--cce-aicore-only", "-o", "kernel.rel.o",
                      "-I" + (other / asc).string() + "/include/adv_api", "kernel.asc"},
                     directory.path());
        EXPECT_EQ(result.status, 0) << result.output;
        EXPECT_TRUE(fs::remove(directory / "kernel.rel.o"));
    }
}

TEST_F(StandInBisheng, LeavesItsIntermediates) {
    const auto result = bisheng(with(bisheng_flags(), {"-save-temps"}));
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_CONTAINS(slurp(directory / "kernel.asci"), "x[i] + y[i]");
    EXPECT_CONTAINS(slurp(directory / "kernel.s"), "plain_add");
    EXPECT_TRUE(fs::exists(directory / "kernel.rel.o"));
}

TEST_F(StandInBisheng, TheSameSourceGivesTheSameBytes) {
    const auto once = build(kernel_source("queue_add"));
    EXPECT_EQ(once, build(kernel_source("queue_add")));
    EXPECT_NE(once, build(kernel_source("queue_add"), "dav-2201"));
}

TEST_F(StandInBisheng, VersionsDifferInTheTime) {
    const auto newest = bisheng({"--version"});
    EXPECT_EQ(newest.status, 0);
    EXPECT_EQ(newest.output.substr(0, newest.output.find(" (")),
              "2026-07-30T20:53:21+08:00 clang version 15.0.5");
    EXPECT_EQ(count_of(newest.output, "\n"), 4u);
    EXPECT_CONTAINS(newest.output,
                    "InstalledDir: " + (toolkit() / "tools/bisheng_compiler/bin\n").string());
    const ScopedEnv older("DJ_STAND_IN_CANN_VERSION", "8.5.0");
    EXPECT_CONTAINS(bisheng({"--version"}).output, "2026-01-13T09:46:36+08:00 clang version 15");
}

TEST_F(StandInBisheng, NotesEveryRun) {
    const ScopedEnv log("DJ_STAND_IN_CANN_LOG", (directory / "log").string());
    bisheng(bisheng_flags());
    run_tool("ld.lld", linker_flags(), directory.path());
    const auto text = slurp(directory / "log");
    EXPECT_CONTAINS(text, "bisheng -O2 --npu-arch=dav-3510 ");
    EXPECT_CONTAINS(text, "\nld.lld -m aicorelinux ");
}

}  // namespace
