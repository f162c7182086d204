// Options, flags, and the table of processors.
#include <deep_jit/backend/ascend/backend.hpp>

#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using ascend::CompilerOptions;
using ascend::LaunchOptions;
using Flags = std::vector<std::string>;

CompilerOptions defaults() {
    return CompilerOptions::default_options(Env("NPUTEST"), ascend::Device());
}

TEST(AscendOptions, DefaultFlagsAsDocumented) {
    auto options = defaults();
    EXPECT_FALSE(options.arch.has_value());
    EXPECT_EQ(options.debug_info, false);
    EXPECT_EQ(options.dump_asm, false);
    options.arch = "3510";
    EXPECT_EQ(options.get_bisheng_flags(), (Flags{"-O2", "--npu-arch=dav-3510", "--cce-aicore-only",
                                                  "-mllvm", "-enable-hiipu-vf-loop-unroll"}));
    EXPECT_EQ(options.get_linker_flags(),
              (Flags{"-m", "aicorelinux", "-Ttext", "0", "--no-mmap-output-file"}));
}

TEST(AscendOptions, EveryFlagInTheDocumentedOrder) {
    const auto options = defaults().override_with({
        .optimize_level = "3",
        .arch = "dav-2201",
        .debug_info = true,
        .dump_asm = true,
        .bisheng_flags = Flags{"--cce-aicore-only", "-std=c++20"},
        .linker_flags = Flags{"-m", "aicorelinux"},
        .extra_bisheng_flags = {"-DA=1"},
        .extra_linker_flags = {"-static"},
    });
    EXPECT_EQ(options.get_bisheng_flags(),
              (Flags{"-O3", "--npu-arch=dav-2201", "-g", "-gdwarf-5", "-gembed-source",
                     "-gline-tables-only", "--cce-aicore-only", "-std=c++20", "-DA=1"}));
    EXPECT_EQ(options.get_linker_flags(), (Flags{"-m", "aicorelinux", "-static"}));
}

TEST(AscendOptions, TheKeyTellsCompilerAndLinkerFlagsApart) {
    CompilerOptions a, b;
    a.bisheng_flags = Flags{"-x"};
    a.linker_flags = Flags{"-y"};
    b.bisheng_flags = Flags{"-x", "-y"};
    b.linker_flags = Flags{};
    EXPECT_NE(a.get_flags(), b.get_flags());
    EXPECT_EQ(a.get_flags(), (Flags{"1", "-x", "-y"}));
}

TEST(AscendOptions, SetFieldsReplaceAndExtraFlagsAppend) {
    auto base = defaults();
    base.extra_bisheng_flags = {"-DA"};
    base.extra_linker_flags = {"-x"};
    base.debug_info = true;
    const auto merged = base.override_with(
        {.debug_info = false, .extra_bisheng_flags = {"-DB"}, .extra_linker_flags = {"-n"}});
    EXPECT_EQ(merged.extra_bisheng_flags, (Flags{"-DA", "-DB"}));
    EXPECT_EQ(merged.extra_linker_flags, (Flags{"-x", "-n"}));
    EXPECT_EQ(merged.debug_info, false);
    EXPECT_EQ(merged.optimize_level, "2");
    EXPECT_TRUE(same_options(base.override_with({}), base));
}

TEST(AscendOptions, JsonNamesEveryField) {
    EXPECT_EQ(
        defaults().override_with({.arch = "2201", .extra_bisheng_flags = {"-DX"}}).to_json().dump(),
        R"({"optimize_level": "2", "arch": "2201", "debug_info": false, "dump_asm": false, )"
        R"("bisheng_flags": ["--cce-aicore-only", "-mllvm", )"
        R"("-enable-hiipu-vf-loop-unroll"], "linker_flags": ["-m", "aicorelinux", "-Ttext", )"
        R"("0", "--no-mmap-output-file"], "extra_bisheng_flags": ["-DX"], )"
        R"("extra_linker_flags": []})");
}

TEST(AscendOptions, EnvironmentSetsDefaults) {
    const ScopedEnv debug_info("NPUTEST_JIT_KERNEL_DEBUG_INFO", "1");
    const ScopedEnv dump("DJ_JIT_DUMP_ASM", "yes");
    const ScopedEnv arch("NPUTEST_JIT_ARCH", "dav-3510");
    EXPECT_EQ(defaults().debug_info, true);
    EXPECT_EQ(defaults().dump_asm, true);
    EXPECT_EQ(defaults().arch, "3510");
}

TEST(AscendOptions, DebugPrintsOnly) {
    const ScopedEnv debug("NPUTEST_JIT_DEBUG", "1");
    EXPECT_EQ(defaults().debug_info, false);
    EXPECT_EQ(defaults().dump_asm, false);
}

TEST(AscendOptions, ArchIsChecked) {
    for (const char* bad : {"dav-", "Ascend910B2", "22 01", "-2201", "dav-dav_1", "3510;"}) {
        const ScopedEnv arch("NPUTEST_JIT_ARCH", bad);
        const auto text = message_of<ConfigError>([] { defaults(); });
        EXPECT_CONTAINS(text, "Environment variable NPUTEST_JIT_ARCH has an invalid value");
        EXPECT_CONTAINS(text, bad);
        CompilerOptions options;
        options.arch = bad;
        EXPECT_CONTAINS(message_of<ConfigError>([&] { options.get_bisheng_flags(); }),
                        "CompilerOptions::arch has an invalid value");
    }
    const ScopedEnv empty("NPUTEST_JIT_ARCH", "");
    EXPECT_FALSE(defaults().arch.has_value());
}

TEST(AscendOptions, LaunchDefaultsAndMerging) {
    const auto base = LaunchOptions::default_options(Env("NPUTEST"));
    EXPECT_FALSE(base.stream || base.num_blocks);
    EXPECT_EQ(base.num_ubuf_bytes, 0);
    EXPECT_EQ(base.num_launch_timeout_secs, 10);
    const auto merged = base.override_with({.stream = nullptr, .num_blocks = 3});
    EXPECT_TRUE(merged.stream.has_value());
    EXPECT_EQ(merged.stream, nullptr);
    EXPECT_EQ(merged.num_blocks, 3);
    EXPECT_EQ(merged.num_launch_timeout_secs, 10);
}

TEST(AscendOptions, TimeoutOfTheEnvironment) {
    const auto timeout_of = [](const char* value) {
        const ScopedEnv timeout("NPUTEST_JIT_LAUNCH_TIMEOUT", value);
        return LaunchOptions::default_options(Env("NPUTEST")).num_launch_timeout_secs;
    };
    EXPECT_EQ(timeout_of("300"), 300);
    EXPECT_EQ(timeout_of("0"), 0);
    EXPECT_EQ(timeout_of("65535"), 65535);
    for (const char* bad : {"70000", "65536", "-1"}) {
        const auto text = message_of<ConfigError>([&] { timeout_of(bad); });
        EXPECT_CONTAINS(text, "NPUTEST_JIT_LAUNCH_TIMEOUT has an invalid value");
        EXPECT_CONTAINS(text, "launch timeout is out of range");
        EXPECT_CONTAINS(text, bad);
    }
    EXPECT_CONTAINS(message_of<ConfigError>([&] { timeout_of("soon"); }), "an integer");
}

TEST(AscendOptions, BlockingIsReadWhenTheRuntimeIsMade) {
    const TempDir temp;
    const ScopedEnv cache("NPUTEST_JIT_CACHE_DIR", temp.path().string());
    const auto make = [&] { Runtime<Ascend>(Config(temp.path(), "NPUTEST")); };
    for (const char* good : {"", "0", "1"}) {
        const ScopedEnv blocking("ASCEND_LAUNCH_BLOCKING", good);
        EXPECT_NO_THROW(make()) << good;
    }
    const ScopedEnv blocking("ASCEND_LAUNCH_BLOCKING", "perhaps");
    EXPECT_CONTAINS(message_of<ConfigError>(make), "ASCEND_LAUNCH_BLOCKING has an invalid value");
}

TEST(AscendSoc, ArchitectureByName) {
    const auto arch_of = [](const char* name) {
        const auto soc = ascend::find_soc(name);
        return soc ? std::string(soc->arch) : "unknown";
    };
    for (const char* name : {"Ascend950PR_9599", "Ascend950DT_9591"})
        EXPECT_EQ(arch_of(name), "3510") << name;
    for (const char* name :
         {"Ascend910B1", "Ascend910B2", "Ascend910B2C", "Ascend910B3", "Ascend910B4",
          "Ascend910B4-1", "Ascend910_9362", "Ascend910_9372", "Ascend910_9381", "Ascend910_9392"})
        EXPECT_EQ(arch_of(name), "2201") << name;
    // The older ones; plain 910B is one of them.
    for (const char* name : {"Ascend910", "Ascend910A", "Ascend910B", "Ascend910ProA",
                             "Ascend910ProB", "Ascend910PremiumA"})
        EXPECT_EQ(arch_of(name), "1001") << name;
    EXPECT_EQ(arch_of("Ascend310B1"), "3002");
    EXPECT_EQ(arch_of("Ascend310P3"), "2002");
    EXPECT_EQ(arch_of("Ascend035"), "3505");
    EXPECT_EQ(arch_of("Ascend031"), "3004");
    EXPECT_EQ(arch_of("KirinX90"), "3003");
    EXPECT_EQ(arch_of("Kirin9030"), "3113");
    for (const char* name : {"", "Ascend", "Ascend310", "Ascend1010", "Ascend910_5", "H200"})
        EXPECT_EQ(arch_of(name), "unknown") << name;
}

TEST(AscendSoc, UnifiedBuffer) {
    EXPECT_EQ(ascend::find_soc("Ascend910B2")->ubuf_bytes, 196608);
    EXPECT_EQ(ascend::find_soc("Ascend910_9391")->ubuf_bytes, 196608);
    EXPECT_EQ(ascend::find_soc("Ascend950PR_9599")->ubuf_bytes, 221184);
    EXPECT_EQ(ascend::find_soc("Ascend310P3")->ubuf_bytes, 262144);
}

TEST(AscendVersion, ThePlaceOfInstallationDoesNotCount) {
    const std::string first = "2026-01-13T09:46:36+08:00 clang version 15.0.5 (clang-5c68)\n";
    const std::string rest = "Target: x86_64-unknown-linux-gnu\nThread model: posix\n";
    const auto identity = ascend::version_identity(first + rest + "InstalledDir: /opt/a/bin\n");
    EXPECT_EQ(identity, ascend::version_identity(first + rest + "InstalledDir: /opt/b/bin\n"));
    EXPECT_NE(identity, ascend::version_identity("2026-04-25T15:46:25+08:00 clang version 15.0.5 "
                                                 "(clang-5c68)\n" +
                                                 rest + "InstalledDir: /opt/a/bin\n"));
}

TEST(AscendErrors, CodesHaveNames) {
    EXPECT_EQ(ascend::acl::error_name(107000), "ACL_ERROR_RT_PARAM_INVALID");
    EXPECT_EQ(ascend::acl::error_name(507015), "ACL_ERROR_RT_AICORE_EXCEPTION");
    EXPECT_EQ(ascend::acl::error_name(4711), "unknown ACL error");
    EXPECT_TRUE(ascend::acl::is_kernel_failure(507035));
    EXPECT_FALSE(ascend::acl::is_kernel_failure(107000));
}

}  // namespace
