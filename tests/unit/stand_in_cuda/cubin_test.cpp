// The reader of CUBINs alone: every architecture, and damage of every kind.
#include <cstring>

#include "stand_in/cuda/cubin.hpp"
#include "unit/stand_in_cuda/fixture.hpp"

namespace {

using namespace stand_in_test;
using stand_in::Cubin;

class StandInCubin : public testing::Test {
protected:
    void SetUp() override {
        if (!have_nvcc())
            GTEST_SKIP() << "there is no NVCC";
    }
};

TEST_F(StandInCubin, ArchitecturesAndWhatRunsThem) {
    struct Case {
        const char* arch;
        int sm;
        bool accelerated;
        std::vector<std::pair<int, int>> runs, does_not_run;
    };
    for (const Case& expected :
         std::vector<Case>{{"75", 75, false, {{7, 5}}, {{7, 0}, {8, 0}}},
                           {"80", 80, false, {{8, 0}, {8, 6}, {8, 9}}, {{7, 5}, {9, 0}}},
                           {"89", 89, false, {{8, 9}}, {{8, 6}, {9, 0}}},
                           {"90", 90, false, {{9, 0}}, {{8, 9}, {10, 0}}},
                           {"90a", 90, true, {{9, 0}}, {{8, 9}, {10, 0}}},
                           {"100", 100, false, {{10, 0}, {10, 3}}, {{9, 0}, {12, 0}}},
                           {"100a", 100, true, {{10, 0}}, {{10, 3}, {12, 0}}},
                           {"100f", 100, false, {{10, 0}, {10, 3}}, {{9, 0}, {12, 0}}},
                           {"120a", 120, true, {{12, 0}}, {{12, 1}, {10, 0}}}}) {
        std::string why;
        const auto cubin =
            Cubin::parse(cubin_of("extern \"C\" __global__ void f() {}", expected.arch), &why);
        ASSERT_TRUE(cubin.has_value()) << expected.arch << ": " << why;
        EXPECT_EQ(cubin->arch.sm, expected.sm);
        EXPECT_EQ(cubin->arch.accelerated, expected.accelerated) << expected.arch;
        for (const auto& [major, minor] : expected.runs)
            EXPECT_TRUE(cubin->arch.runs_on(major, minor)) << expected.arch << major << minor;
        for (const auto& [major, minor] : expected.does_not_run)
            EXPECT_FALSE(cubin->arch.runs_on(major, minor)) << expected.arch << major << minor;
        ASSERT_EQ(cubin->kernels.size(), 1U);
        EXPECT_EQ(cubin->kernels[0].name, "f");
    }
}

TEST_F(StandInCubin, ParametersAreTheSameOnEveryArchitecture) {
    for (const char* arch : {"75", "89", "90a", "100f", "120a"}) {
        const auto cubin = Cubin::parse(
            cubin_of("struct S { char bytes[300]; };\n"
                     "extern \"C\" __global__ void f(char a, double b, S s, int* p) { *p = a + b + "
                     "s.bytes[*p]; }",
                     arch));
        ASSERT_TRUE(cubin.has_value()) << arch;
        const auto& params = cubin->kernels.at(0).params;
        std::vector<std::pair<unsigned, unsigned>> found;
        for (const auto& param : params) found.emplace_back(param.offset, param.size);
        EXPECT_EQ(found,
                  (std::vector<std::pair<unsigned, unsigned>>{{0, 1}, {8, 8}, {16, 300}, {320, 8}}))
            << arch;
    }
}

TEST_F(StandInCubin, OtherFilesAreToldApart) {
    std::string why;
    EXPECT_FALSE(Cubin::parse(slurp("/proc/self/exe"), &why).has_value());
    EXPECT_CONTAINS(why, "no cubin");
    EXPECT_FALSE(Cubin::parse("", &why).has_value());
    EXPECT_FALSE(Cubin::parse(std::string(64, 'x'), &why).has_value());
    EXPECT_CONTAINS(why, "not an ELF file");
}

TEST_F(StandInCubin, NoPrefixIsACubin) {
    const auto bytes = cubin_of(kKernels);
    for (std::size_t length = 0; length < bytes.size(); length += length < 256 ? 1 : 97) {
        const std::string exact(bytes, 0, length);  // for AddressSanitizer
        EXPECT_FALSE(Cubin::parse(exact).has_value()) << length;
    }
}

TEST_F(StandInCubin, DamageIsRefusedOrHarmless) {
    const auto bytes = cubin_of(kKernels);
    std::size_t refused = 0, tried = 0;
    for (std::size_t at = 0; at < bytes.size(); at += 5)
        for (const char value : {'\0', '\x7f', '\xff'}) {
            auto damaged = bytes;
            damaged[at] = value;
            ++tried;
            refused += Cubin::parse(damaged).has_value() ? 0 : 1;
        }
    // Most bytes are code, which is not looked at; the tables are.
    EXPECT_GT(refused, 100U);
    EXPECT_LT(refused, tried);
}

}  // namespace
