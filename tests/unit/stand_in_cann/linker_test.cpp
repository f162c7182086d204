// The stand-in ld.lld links what the stand-in bisheng made, and nothing else.
#include "unit/stand_in_cann/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInLinker : public testing::Test {
protected:
    void compile(const std::string& source, const std::vector<std::string>& flags) {
        write(directory / "kernel.asc", source);
        const auto result = run_tool("bisheng", flags, directory.path());
        ASSERT_EQ(result.status, 0) << result.output;
    }
    ToolResult link(const std::vector<std::string>& arguments) {
        return run_tool("ld.lld", arguments, directory.path());
    }
    void refuses(const std::vector<std::string>& arguments, const std::string& message) {
        const auto result = link(arguments);
        EXPECT_EQ(result.status, 1) << message;
        EXPECT_CONTAINS(result.output, "ld.lld: error: " + message);
        EXPECT_FALSE(fs::exists(directory / "kernel.o")) << message;
    }

    TempDir directory;
};

TEST_F(StandInLinker, ChecksItsCommand) {
    compile(kernel_source("plain_add"), bisheng_flags());
    refuses({"kernel.rel.o", "-o", "kernel.o"}, "target emulation unknown");
    refuses({"-m", "elf_x86_64", "kernel.rel.o", "-o", "kernel.o"},
            "unknown emulation: elf_x86_64");
    refuses({"-m", "aicorelinux", "-o", "kernel.o"}, "no input files");
    refuses({"-m", "aicorelinux", "none.o", "-o", "kernel.o"}, "cannot open none.o");
    refuses(with(linker_flags(), {"--no-such-flag"}), "unknown argument '--no-such-flag'");
    EXPECT_EQ(
        link({"-m", "aicorelinux", "-Ttext=0", "-static", "kernel.rel.o", "-o", "kernel.o"}).status,
        0);
}

TEST_F(StandInLinker, RefusesObjectsOfTheHost) {
    compile(kernel_source("plain_add"),
            {"--npu-arch=dav-3510", "-c", "kernel.asc", "-o", "kernel.rel.o"});
    refuses(linker_flags(), "kernel.rel.o is incompatible with aicorelinux");
    write(directory / "kernel.rel.o", "not an object");
    refuses(linker_flags(), "kernel.rel.o: ");
}

TEST_F(StandInLinker, NamesWhatIsUndefined) {
    compile(
        "void helper(float*);\nextern \"C\" __global__ __aicore__ void k(__gm__ float* p) "
        "{ helper(p); }\n",
        bisheng_flags());
    refuses(linker_flags(), "undefined symbol: helper(float*)");
}

TEST_F(StandInLinker, ASourceWithoutKernelsIsNoError) {
    compile("constexpr int nothing = 0;\n", bisheng_flags());
    EXPECT_EQ(link(linker_flags()).status, 0);
    EXPECT_TRUE(fs::exists(directory / "kernel.o"));
}

TEST_F(StandInLinker, TellsItsVersion) {
    const auto result = link({"--version"});
    EXPECT_EQ(result.status, 0);
    EXPECT_CONTAINS(result.output, "LLD 15.0.5");
}

}  // namespace
