// The two commands of a compilation, what becomes of their output, and what is in the key.
#include "unit/ascend/fake_cann.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using Flags = std::vector<std::string>;

class AscendCompile : public AscendFakeCann {
protected:
    static json meta_of(const fs::path& entry) { return json::parse(slurp(entry / "meta.json")); }
    static Flags strings_of(json value) {
        Flags out;
        for (const auto& element : *value.get_if<json::array_t>())
            out.push_back(*element.get_if<std::string>());
        return out;
    }
};

TEST_F(AscendCompile, TheCommandsAsDocumented) {
    JIT jit(config());
    const auto entry = jit.compile_without_load("scale", "// source");
    ASSERT_EQ(cann.runs("bisheng").size(), 1U);
    ASSERT_EQ(cann.runs("ld.lld").size(), 1U);
    // The directory that it was built in is gone; the entry's record has the commands.
    auto meta = meta_of(entry);
    const auto command = strings_of(meta["command"]);
    const auto linker = strings_of(meta["linker_command"]);
    EXPECT_EQ(str::join(Flags(command.begin() + 1, command.end()), "|") + "|",
              cann.runs("bisheng")[0]);
    EXPECT_EQ(str::join(Flags(linker.begin() + 1, linker.end()), "|") + "|",
              cann.runs("ld.lld")[0]);
    const auto built = fs::path(command.back()).parent_path().string();
    EXPECT_EQ(command, (Flags{cann.bin("bisheng"), "-O2", "--npu-arch=dav-2201",
                              "--cce-aicore-only", "-mllvm", "-enable-hiipu-vf-loop-unroll",
                              "-I" + (temp / "my include").string(),
                              "-I" + (cann.root() / "aarch64-linux/asc/include/adv_api").string(),
                              built + "/kernel.asc", "-o", built + "/kernel.rel.o"}));
    EXPECT_EQ(linker,
              (Flags{cann.bin("ld.lld"), "-m", "aicorelinux", "-Ttext", "0",
                     "--no-mmap-output-file", built + "/kernel.rel.o", "-o", built + "/kernel.o"}));
    EXPECT_EQ(names_in(entry),
              (Flags{".committed", "kernel.asc", "kernel.o", "kernel.rel.o", "meta.json"}));
    EXPECT_EQ(slurp(entry / "kernel.asc"), "// source");
}

TEST_F(AscendCompile, TheRecordNamesCompilerAndOptions) {
    JIT jit(config());
    const auto entry = jit.compile_without_load("scale", "// source", {.debug_info = true});
    auto meta = meta_of(entry);
    EXPECT_EQ(meta["compiler_info"].dump(), jit.backend.compiler_info.to_json().dump());
    EXPECT_EQ(meta["compiler_info"].get<std::string>("path"), cann.bin("bisheng").string());
    EXPECT_EQ(meta["compiler_info"].get<std::string>("linker_version"), "LLD 15.0.5\n");
    EXPECT_EQ(meta["compiler_options"].get<bool>("debug_info"), true);
    EXPECT_EQ(meta["compiler_options"].get<std::string>("arch"), "2201");
}

TEST_F(AscendCompile, RunsInTheEntrysDirectory) {
    cann.compiler("pwd >\"$(dirname \"$output\")/where\"");
    JIT jit(config());
    const auto entry = jit.compile_without_load("scale", "// source");
    const fs::path built = strings_of(meta_of(entry)["command"]).back();
    EXPECT_EQ(slurp(entry / "where"), built.parent_path().string() + "\n");
}

TEST_F(AscendCompile, AssemblyIsKeptInAFolder) {
    cann.compiler(
        "case \"$*\" in *-save-temps*) echo \"$PWD\" >kernel.asci; echo s >kernel.s;; esac");
    JIT jit(config());
    const auto entry = jit.compile_without_load("scale", "// source", {.dump_asm = true});
    EXPECT_EQ(names_in(entry / "asm"), (Flags{"kernel.asci", "kernel.s"}));
    EXPECT_TRUE(slurp(entry / "asm" / "kernel.asci").ends_with("/asm\n"));
    ASSERT_EQ(cann.runs("bisheng").size(), 2U);
    EXPECT_CONTAINS(cann.runs("bisheng")[1], "|-enable-hiipu-vf-loop-unroll|-save-temps|-I");
    EXPECT_EQ(cann.runs("ld.lld").size(), 1U);
    // It is not in the key, and what is cached is not made again for it.
    EXPECT_EQ(jit.compile_without_load("scale", "// source"), entry);
    EXPECT_EQ(cann.runs("bisheng").size(), 2U);
}

TEST_F(AscendCompile, WarningsAreKeptBesideTheArtifact) {
    cann.compiler("echo 'warning: compiler' >&2");
    cann.linker("echo 'warning: linker'");
    JIT jit(config());
    const auto entry = jit.compile_without_load("scale", "// source");
    EXPECT_EQ(slurp(entry / "kernel.log"), "warning: compiler\nwarning: linker\n");
    EXPECT_EQ(logged(), "");
}

TEST_F(AscendCompile, ThePrintedCommands) {
    const ScopedEnv print("NPUTEST_JIT_PRINT_COMPILER_COMMAND", "1");
    JIT jit(config());
    jit.compile_without_load("scale", "// source");
    EXPECT_EQ(count_of(logged(), "Running command: "), 2U);
    EXPECT_CONTAINS(logged(), "bin/ld.lld' -m aicorelinux -Ttext 0 --no-mmap-output-file ");
}

TEST_F(AscendCompile, AFailingCompilersLogReachesTheError) {
    cann.compiler("echo \"kernel.asc:3:5: error: use of undeclared identifier 'foo'\"; exit 1");
    JIT jit(config());
    try {
        jit.compile_without_load("scale", "// source");
        FAIL();
    } catch (const CompileError& error) {
        EXPECT_CONTAINS(error.what(), "The compiler bisheng failed");
        EXPECT_CONTAINS(error.what(), "command failed with exit code 1");
        EXPECT_CONTAINS(error.what(), "error: use of undeclared identifier 'foo'");
        EXPECT_EQ(error.log(), "kernel.asc:3:5: error: use of undeclared identifier 'foo'\n");
        EXPECT_CONTAINS(error.command(), "bisheng");
        EXPECT_CONTAINS(error.command(), "--npu-arch=dav-2201");
        EXPECT_EQ(slurp(error.source_path()), "// source");
        EXPECT_EQ(error.key(), "scale." + jit.cache_key("// source"));
    }
    EXPECT_EQ(cann.runs("ld.lld").size(), 0U);
    EXPECT_TRUE(names_in(temp / "cache" / "cache").empty());
}

TEST_F(AscendCompile, AFailingLinkersLogReachesTheError) {
    cann.linker("echo 'ld.lld: error: undefined symbol: foo' >&2; exit 1");
    JIT jit(config());
    try {
        jit.compile_without_load("scale", "// source");
        FAIL();
    } catch (const CompileError& error) {
        EXPECT_CONTAINS(error.what(), "The linker ld.lld failed");
        EXPECT_CONTAINS(error.what(), "ld.lld: error: undefined symbol: foo");
        EXPECT_EQ(error.log(), "ld.lld: error: undefined symbol: foo\n");
        EXPECT_CONTAINS(error.command(), "-m aicorelinux");
        EXPECT_EQ(slurp(error.source_path()), "// source");
    }
    // The linker of some other LLVM.
    cann.linker("echo 'ld.lld: error: unknown emulation: aicorelinux' >&2; exit 1");
    EXPECT_CONTAINS(
        message_of<CompileError>([&] { jit.compile_without_load("scale", "// source"); }),
        "This ld.lld is not the one of CANN");
}

TEST_F(AscendCompile, AKilledAndAMissingToolAreNamedAsSuch) {
    JIT jit(config());
    const auto failure = [&] {
        return message_of<CompileError>([&] { jit.compile_without_load("scale", "// source"); });
    };
    jit.cache_key("// source");
    cann.compiler("kill -9 $$");
    EXPECT_CONTAINS(failure(),
                    "exit code 137. It was killed, most likely because the machine or "
                    "the container ran out of memory");
    cann.compiler("exec /nonexistent/tool");
    EXPECT_CONTAINS(failure(), "exit code 127. The program, or one that it starts, is missing");
}

TEST_F(AscendCompile, WhatIsNoDeviceObjectIsAnError) {
    JIT jit(config());
    const auto failure = [&] {
        return message_of<CompileError>([&] { jit.compile_without_load("scale", "// source"); });
    };
    cann.produce("not ELF");
    EXPECT_CONTAINS(failure(), "bisheng did not produce a valid device object");
    EXPECT_CONTAINS(failure(), "kernel.rel.o (7 bytes) is no ELF file of a device");
    cann.produce(slurp("/bin/true"));
    EXPECT_CONTAINS(failure(), "is no ELF file of a device");
    cann.produce(DeviceObject().kernel("scale").bytes());
    cann.linker("exit 0");
    EXPECT_CONTAINS(failure(), "ld.lld did not produce a valid device object");
    EXPECT_CONTAINS(failure(), "No such file");
}

TEST_F(AscendCompile, AVersionThatCannotBeHad) {
    fs::remove(cann.root() / "bisheng.version");
    JIT jit(config());
    EXPECT_CONTAINS(message_of<ToolchainError>([&] { jit.cache_key("// source"); }),
                    "bisheng does not say its version: command failed with exit code 1");
}

TEST_F(AscendCompile, WithoutAToolkit) {
    const ScopedEnv home("ASCEND_HOME_PATH", "/nonexistent");
    JIT jit(config());
    EXPECT_CONTAINS(
        message_of<ToolchainError>([&] { jit.compile_without_load("scale", "// source"); }),
        "ASCEND_HOME_PATH is '/nonexistent'");
}

TEST_F(AscendCompile, WhatIsInTheKey) {
    JIT jit(config());
    const auto key = [&](const ascend::CompilerOptions& options = {}) {
        return jit.cache_key("// source", options);
    };
    const auto plain = key();
    EXPECT_NE(key({.optimize_level = "3"}), plain);
    EXPECT_NE(key({.arch = "3510"}), plain);
    EXPECT_NE(key({.debug_info = true}), plain);
    EXPECT_NE(key({.bisheng_flags = Flags{"--cce-aicore-only"}}), plain);
    EXPECT_NE(key({.linker_flags = Flags{"-m", "aicorelinux"}}), plain);
    EXPECT_NE(key({.extra_bisheng_flags = {"-DX"}}), plain);
    EXPECT_NE(key({.extra_linker_flags = {"-x"}}), plain);
    EXPECT_NE(key({.extra_linker_flags = {"-x"}}), key({.extra_bisheng_flags = {"-x"}}));
    EXPECT_NE(jit.cache_key("// other"), plain);
    // Not these.
    EXPECT_EQ(key({.arch = "dav-2201"}), plain);
    EXPECT_EQ(key({.dump_asm = true}), plain);
}

TEST_F(AscendCompile, VersionsAreInTheKeyPlacesAreNot) {
    const auto key = [&] { return JIT(config()).cache_key("// source"); };
    const auto first = key();
    const std::string line = "2026-07-30T20:53:21+08:00 clang version 15.0.5\n";
    cann.version("bisheng", line + "InstalledDir: /somewhere\n");
    EXPECT_EQ(key(), first);
    cann.version("bisheng", "2026-04-25T15:46:25+08:00 clang version 15.0.5\n");
    const auto second = key();
    EXPECT_NE(second, first);
    cann.version("bisheng", line);
    EXPECT_EQ(key(), first);
    cann.version("ld.lld", "LLD 16\n");
    EXPECT_NE(key(), first);
    cann.version("ld.lld", "LLD 15.0.5\n");
    write(cann.root() / "include" / "version" / "asc_devkit_version.h", "#define V 2\n");
    EXPECT_NE(key(), first);
}

TEST_F(AscendCompile, AWarmStartStartsNoProgram) {
    JIT(config()).compile_without_load("scale", "// source");
    EXPECT_EQ(cann.starts(), 4U);
    JIT jit(config());
    EXPECT_EQ(cann.starts(), 4U);
    const auto entry = jit.compile_without_load("scale", "// source");
    EXPECT_TRUE(fs::exists(entry / "kernel.o"));
    EXPECT_EQ(cann.starts(), 4U);
}

TEST_F(AscendCompile, FlagsWithOddCharactersArriveAsTheyAre) {
    JIT jit(config());
    jit.compile_without_load("scale", "// source",
                             {.extra_bisheng_flags = {"-DX=\"a b\"", "-DY=$(touch pwned);'`"}});
    EXPECT_CONTAINS(cann.runs("bisheng")[0], "|-DX=\"a b\"|-DY=$(touch pwned);'`|");
}

}  // namespace
