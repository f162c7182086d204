// What each compiler option does to the kernel that comes out.
#include <elf.h>

#include <filesystem>
#include <limits>
#include <string>

#include <deep_jit/utils/elf.hpp>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

/// By each compiler that is installed.
class HostOptionsTest : public HostTest, public testing::WithParamInterface<const char*> {
protected:
    void SetUp() override {
        if (host::detail::search_path(GetParam()).empty())
            GTEST_SKIP() << GetParam() << " is not installed";
        compiler_env_.set(GetParam());
    }

    int value(HostJit& jit, const std::string& expression, const HostOptions& options = {}) const {
        return stored_by(jit, jit.compile("value", store(expression), options));
    }
    static std::string store(const std::string& expression) {
        return "__global__ void k(int* out) { *out = (" + expression + "); }\n";
    }
    std::string artifact(HostJit& jit, const HostOptions& options) const {
        return slurp(jit.compile_without_load("value", store("1"), options) / "kernel.so");
    }
};

std::string options_compiler(const testing::TestParamInfo<const char*>& info) {
    return info.param == std::string("g++") ? "Gcc" : "Clang";
}
INSTANTIATE_TEST_SUITE_P(Host, HostOptionsTest, testing::Values("g++", "clang++"),
                         options_compiler);

TEST_P(HostOptionsTest, OptimizeLevel) {
    HostJit jit = make();
    const auto optimized = "\n#ifdef __OPTIMIZE__\n1\n#else\n0\n#endif\n";
    EXPECT_EQ(value(jit, optimized), 1) << "the default is -O3";
    EXPECT_EQ(value(jit, optimized, {.optimize_level = "0"}), 0);
    EXPECT_EQ(
        value(jit, "\n#ifdef __OPTIMIZE_SIZE__\n1\n#else\n0\n#endif\n", {.optimize_level = "s"}),
        1);
}

TEST_P(HostOptionsTest, FastMathIsTheKernelsOwn) {
    HostJit jit = make();
    const auto fast = "\n#ifdef __FAST_MATH__\n1\n#else\n0\n#endif\n";
    EXPECT_EQ(value(jit, fast), 0);
    for (const HostOptions& options :
         {HostOptions{.fast_math = true}, HostOptions{.optimize_level = "fast"},
          HostOptions{.extra_compiler_flags = {"-ffast-math"}}}) {
        EXPECT_EQ(value(jit, fast, options), 1);
        // A library linked for fast math would make the whole process flush denormals to zero.
        volatile float smallest = std::numeric_limits<float>::min();
        EXPECT_GT(smallest / 2, 0.0f);
    }
}

TEST_P(HostOptionsTest, DebugInfo) {
    HostJit jit = make();
    const auto has_debug_info = [](const std::string& artifact) {
        for (const auto& section : ElfView::parse(artifact).value().sections())
            if (section.name == ".debug_info")
                return true;
        return false;
    };
    EXPECT_FALSE(has_debug_info(artifact(jit, {})));
    EXPECT_TRUE(has_debug_info(artifact(jit, {.debug_info = true})));
    const ScopedEnv all("DJ_JIT_KERNEL_DEBUG_INFO", "1");
    EXPECT_TRUE(*make().default_compiler_options.debug_info);
}

TEST_P(HostOptionsTest, DumpAsmKeepsTheAssemblyAndNothingElse) {
    HostJit jit = make();
    const auto path = jit.compile_without_load("value", store("1"), {.dump_asm = true});
    EXPECT_EQ(names_in(path), (std::vector<std::string>{".committed", "kernel.cpp", "kernel.s",
                                                        "kernel.so", "meta.json"}));
    EXPECT_CONTAINS(slurp(path / "kernel.s"), host::abi::kEntryName);
    EXPECT_CONTAINS(slurp(path / ".committed"), "kernel.s");
    EXPECT_EQ(value(jit, "1"), 1);
    EXPECT_EQ(jit.compile_without_load("value", store("1")), path) << "no part of the key";
    const auto plain = jit.compile_without_load("value", store("2"));
    EXPECT_EQ(names_in(plain),
              (std::vector<std::string>{".committed", "kernel.cpp", "kernel.so", "meta.json"}));
}

TEST_P(HostOptionsTest, Arch) {
    HostJit jit = make();
    EXPECT_NE(jit.cache_key("x"), jit.cache_key("x", {.arch = "x86-64"}));
#ifdef __x86_64__
    const auto avx = "\n#ifdef __AVX2__\n1\n#else\n0\n#endif\n";
    const auto has_avx = [&](HostJit& one, const HostOptions& options) {
        const auto path = one.compile_without_load("avx", store(avx), options);
        return contains(slurp(path / "meta.json"), "-march=haswell");
    };
    EXPECT_FALSE(has_avx(jit, {}));
    EXPECT_TRUE(has_avx(jit, {.arch = "haswell"}));
    const ScopedEnv arch("HOSTTEST_JIT_ARCH", "haswell");
    HostJit second = make();
    EXPECT_TRUE(has_avx(second, {}));
    EXPECT_FALSE(has_avx(second, {.arch = ""}));
#endif
}

TEST_P(HostOptionsTest, CppStandard) {
    HostJit jit = make();
    EXPECT_EQ(value(jit, "__cplusplus == 202002"), 1);
    const ScopedEnv standard("HOSTTEST_JIT_CPP_STANDARD", "17");
    HostJit other = make();
    EXPECT_EQ(value(other, "__cplusplus == 201703"), 1);
    EXPECT_NE(jit.cache_key("x"), other.cache_key("x"));
}

TEST_P(HostOptionsTest, FreeFormFlags) {
    HostJit jit = make();
    EXPECT_EQ(value(jit, "A + B", {.extra_compiler_flags = {"-DA=3", "-DB=4"}}), 7);
    jit.default_compiler_options.compiler_flags->push_back("-DA=5");
    EXPECT_EQ(value(jit, "A + B", {.extra_compiler_flags = {"-DB=4"}}), 9);
    EXPECT_EQ(value(jit, "C", {.compiler_flags = std::vector<std::string>{"-std=c++20", "-DC=2"}}),
              2);
}

TEST_P(HostOptionsTest, MacrosOfAnyNameAreTheKernelsOwn) {
    // Short names are what kernels are most often configured by.
    HostJit jit = make();
    HostOptions options;
    for (const std::string name :
         {"T",     "N",  "M",   "P",    "I",        "K",      "Kernel", "Type",     "Index",
          "BLOCK", "a",  "b",   "c",    "i",        "n",      "p",      "t",        "v",
          "nx",    "ny", "old", "made", "expected", "thread", "block",  "arguments"})
        options.extra_compiler_flags.push_back("-D" + name + "=3");
    EXPECT_EQ(value(jit, "T + N * 10 + p * 100 + thread * 1000", options), 3333);
}

TEST_P(HostOptionsTest, WarningsAsErrorsAreTheKernelsOwn) {
    // What the backend puts around a source must not trip over the user's warnings.
    HostJit jit = make();
    const HostOptions strict{.extra_compiler_flags = {"-Wall", "-Wextra", "-Werror", "-Wshadow",
                                                      "-Wconversion", "-Wold-style-cast"}};
    EXPECT_TRUE(scales(jit, jit.compile("scale", kScaleSource, strict)));
    EXPECT_THROW(value(jit, "__LINE__ == 1 ? int unused = 0 : 1", strict), CompileError);
}

TEST_P(HostOptionsTest, IncludeDirectoriesInOrder) {
    include_dirs_ = {dir_ / "first", dir_ / kOddName};
    write(dir_ / kOddName / "tracked/a.hpp", "#define A 1\n");
    write(dir_ / kOddName / "tracked/b.hpp", "#define B 10\n");
    write(dir_ / "first/tracked/b.hpp", "#define B 20\n");
    write(dir_ / kOddName / "other.hpp", "#define C 100\n");
    HostJit jit = make();
    const auto source =
        "#include <tracked/a.hpp>\n#include <tracked/b.hpp>\n#include <other.hpp>\n" +
        store("A + B + C");
    EXPECT_EQ(stored_by(jit, jit.compile("include", source)), 121);
    const HostOptions all{.debug_info = true, .dump_asm = true};
    EXPECT_EQ(stored_by(jit, jit.compile("include", source, all)), 121);
}

TEST_P(HostOptionsTest, Diagnostics) {
    {
        HostJit jit = make();
        value(jit, "1");
        EXPECT_EQ(log(), "");
    }
    {
        const ScopedEnv print("HOSTTEST_JIT_PRINT_COMPILER_COMMAND", "1");
        HostJit jit = make();
        value(jit, "2");
        EXPECT_EQ(count_of(log(), "Running command: "), 2u) << log();
        EXPECT_CONTAINS(log(), " -c kernel.entry.cpp");
        EXPECT_CONTAINS(log(), " -shared ");
        fs::remove(dir_ / "log");
    }
    {
        const ScopedEnv print("HOSTTEST_JIT_PRINT_LOAD_TIME", "1");
        HostJit jit = make();
        value(jit, "2");
        EXPECT_CONTAINS(log(), "Load time (value." + jit.cache_key(store("2")) + "): ");
        EXPECT_EQ(count_of(log(), "\n"), 1u);
    }
}

}  // namespace
