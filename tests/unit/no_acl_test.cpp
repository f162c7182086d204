// The Ascend backend in a process that finds no ACL, or only one in a toolkit's folder.
#include "unit/ascend/fake_cann.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
namespace driver = ascend::driver;

class AscendWithoutAcl : public AscendFakeCann {
protected:
    void SetUp() override {
        if (void* library = ::dlopen("libascendcl.so", RTLD_NOW | RTLD_LOCAL)) {
            ::dlclose(library);
            GTEST_SKIP() << "there is an ACL on this machine";
        }
    }
    /// A library in the toolkit's folder, made of this C source.
    void make_library(const std::string& name, const std::string& source) const {
        const auto folder = cann.root() / "lib64";
        write(folder / "source.c", source);
        const auto built =
            call_external_command({"cc", "-shared", "-fPIC", "-o", (folder / name).string(),
                                   (folder / "source.c").string()});
        ASSERT_TRUE(built.ok()) << built.output;
    }
};

TEST_F(AscendWithoutAcl, CompilingNeedsNone) {
    JIT jit(config());
    EXPECT_TRUE(fs::exists(jit.compile_without_load("scale", "// source") / "kernel.o"));
    EXPECT_EQ(cann.runs("bisheng").size(), 1U);
}

TEST_F(AscendWithoutAcl, WhatNeedsItSaysWhereItComesFrom) {
    JIT jit(config());
    for (const auto& text : {message_of<ToolchainError>([&] { jit.compile("scale", "// source"); }),
                             message_of<ToolchainError>([&] { jit.device.get_num_sms(); })}) {
        EXPECT_CONTAINS(text,
                        "ACL cannot be opened, neither as libascendcl.so nor as libacl_rt.so");
        EXPECT_CONTAINS(text, "source its set_env.sh");
        EXPECT_CONTAINS(text, "Tried:\n  libascendcl.so: cannot open shared object file");
    }
    const ScopedEnv no_arch("NPUTEST_JIT_ARCH");
    JIT other(config());
    const auto text = message_of<ToolchainError>([&] { other.cache_key("// source"); });
    EXPECT_CONTAINS(text, "There is no device to compile for: ACL cannot be opened");
    EXPECT_CONTAINS(text, "Set NPUTEST_JIT_ARCH");
}

TEST_F(AscendWithoutAcl, TheToolkitsFolderIsLookedAt) {
    const auto result = run_child([&] {
        make_library("libascendcl.so", "int aclrtResetDevice(int device) { return device + 1; }\n");
        make_library("libacl_rt.so",
                     "int aclrtSetDevice(int device) { return device + 2; }\n"
                     "int aclrtResetDevice(int device) { return device + 3; }\n");
        EXPECT_EQ(driver::lazy_aclrtResetDevice(10), 11);
        // What the first library is without is taken from the second one.
        EXPECT_EQ(driver::lazy_aclrtSetDevice(10), 12);
        EXPECT_CONTAINS(message_of<ToolchainError>([] { driver::lazy_aclInit(nullptr); }),
                        "This CANN is too old, or incomplete: its ACL has no aclInit");
        return HasFailure() ? 1 : 0;
    });
    EXPECT_TRUE(result.ok()) << result;
}

TEST_F(AscendWithoutAcl, ADamagedLibraryIsNamed) {
    write(cann.root() / "lib64" / "libascendcl.so", "not a library");
    EXPECT_CONTAINS(message_of<ToolchainError>([] { driver::lazy_aclInit(nullptr); }),
                    (cann.root() / "lib64" / "libascendcl.so").string() + ": file too short");
}

}  // namespace
