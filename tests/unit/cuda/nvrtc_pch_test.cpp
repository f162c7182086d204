// Precompiled headers: which sources share one, and that they change nothing but time.
#include "unit/cuda/nvrtc_fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using cuda::nvrtc::detail::leading_directives;

using CudaNvrtcPch = CudaNvrtc;

TEST(CudaNvrtcLeading, EndsWithTheLastIncludeBeforeCode) {
    EXPECT_EQ(leading_directives(""), "");
    EXPECT_EQ(leading_directives("int x;\n#include <a>\n"), "");
    EXPECT_EQ(leading_directives("#pragma once\n#define X 1\nint x;\n"), "");
    EXPECT_EQ(leading_directives("#include <a>"), "#include <a>");
    EXPECT_EQ(leading_directives("// a\n\n#include <a>\n  # include <b> // b\n\n#define X\nint x;\n"
                                 "#include <c>\n"),
              "// a\n\n#include <a>\n  # include <b> // b");
    EXPECT_EQ(leading_directives("/* one\n * two */\n#include <a>\nint x;\n"),
              "/* one\n * two */\n#include <a>");
    EXPECT_EQ(leading_directives("#define F \\\n  x\n#include <a>\nx\n"),
              "#define F \\\n  x\n#include <a>");
    EXPECT_EQ(leading_directives("#define X \\\n\n#include <a>\nx\n"),
              "#define X \\\n\n#include <a>")
        << "a blank line goes on with a directive";
    EXPECT_EQ(leading_directives("/* open\n#include <a>\n"), "");
    EXPECT_EQ(leading_directives("/* x */ int y;\n#include <a>\n"), "");
}

TEST(CudaNvrtcLeading, OptionsAndIncludesMakeTheKey) {
    using cuda::nvrtc::Pch;
    const auto key = Pch::key({"-DX"}, "#include <a>\nint x;\n");
    EXPECT_EQ(key, Pch::key({"-DX"}, "#include <a>\nint y;\n"));
    EXPECT_NE(key, Pch::key({"-DY"}, "#include <a>\nint x;\n"));
    EXPECT_NE(key, Pch::key({"-DX"}, "#include <b>\nint x;\n"));
    EXPECT_EQ(Pch::key({"-DX"}, "int x;\n"), "");
}

TEST(CudaNvrtcLeading, TheSecondSlowOneMakesTheFile) {
    const TempDir temp("plain");
    const auto files = temp / "tmp";
    {
        cuda::nvrtc::Pch pch({temp.path()});
        EXPECT_TRUE(pch.options_for("slow").empty());
        pch.learn("slow", 5);
        pch.learn("fast", 0.01);
        EXPECT_TRUE(pch.options_for("fast").empty());
        EXPECT_EQ(names_in(files), std::vector<std::string>());
        const auto options = pch.options_for("slow");
        ASSERT_EQ(options.size(), 4U);
        EXPECT_EQ(options[0], "--pch");
        EXPECT_TRUE(options[1].starts_with("--pch-dir=" + files.string()));
        EXPECT_TRUE(fs::is_directory(options[1].substr(options[1].find('=') + 1)));
        EXPECT_EQ(pch.options_for("slow"), options);
        pch.fail("slow");
        pch.learn("slow", 5);
        EXPECT_TRUE(pch.options_for("slow").empty());
        // Not without limit.
        int files_made = 0;
        for (int i = 0; i < 30; ++i) {
            const auto key = str::to_text(i);
            pch.learn(key, 5);
            files_made += pch.options_for(key).empty() ? 0 : 1;
        }
        EXPECT_LT(files_made, 10);
        // The files of the parent are not the child's.
        EXPECT_TRUE(run_child([&] { return pch.options_for("1").empty() ? 0 : 1; }).ok());
    }
    EXPECT_EQ(names_in(files), std::vector<std::string>());
    cuda::nvrtc::Pch nowhere({});
    nowhere.learn("slow", 5);
    EXPECT_TRUE(nowhere.options_for("slow").empty());
}

/// Includes that take a while.
std::string slow_source(const std::string& body) {
    return "#include <my/value.cuh>\n#include <utility>\n"
           "extern \"C\" __global__ void k(int* p) { " +
           body + " }\n";
}

TEST_F(CudaNvrtcPch, OneIsMadeUsedAndRemoved) {
    if (!has_cccl() || cuda::nvrtc::Api::open(library.path).version() < 1208)
        GTEST_SKIP() << "this NVRTC has no precompiled headers, or there are no CCCL headers";
    write(temp / "include" / "my" / "value.cuh", "#define VALUE 111\n");
    std::vector<std::string> with, without;
    for (const bool on : {true, false}) {
        const ScopedEnv use("CUDATEST_JIT_NVRTC_PCH", on ? "1" : "0");
        cache.set((temp / (on ? "on" : "off")).string());
        const auto files = temp / (on ? "on" : "off") / "tmp";
        {
            auto jit = make({temp / "include"});
            for (const char* body : {"*p = VALUE;", "*p = VALUE + 1;", "*p = VALUE + 2;"})
                (on ? with : without)
                    .push_back(slurp(jit.compile_without_load("kernel", slow_source(body)) /
                                     "kernel.cubin"));
            EXPECT_EQ(names_in(files).size(), on ? 1U : 0U);
        }
        EXPECT_EQ(names_in(files), std::vector<std::string>());
    }
    EXPECT_TRUE(with == without);
}

TEST_F(CudaNvrtcPch, ErrorsAreThoseOfAPlainCompilation) {
    write(temp / "include" / "my" / "value.cuh", "#define VALUE 111\n");
    if (!has_cccl())
        GTEST_SKIP() << "there are no CCCL headers";
    auto jit = make({temp / "include"});
    jit.compile_without_load("kernel", slow_source("*p = VALUE;"));
    const auto text = message_of<CompileError>(
        [&] { jit.compile_without_load("kernel", slow_source("*p = nonsense;")); });
    EXPECT_CONTAINS(text, "kernel.cu(3): error: identifier \"nonsense\" is undefined");
    EXPECT_EQ(count_of(text, "pch"), 0U);
}

}  // namespace
