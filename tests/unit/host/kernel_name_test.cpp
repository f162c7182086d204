// The guess of a kernel's name from its source, and the names of symbols taken apart.
#include <string>

#include <deep_jit/backend/host/kernel_name.hpp>

#include <gtest/gtest.h>

namespace {

using deep_jit::host::base_name;
using deep_jit::host::demangle;
using deep_jit::host::expression_of;
using deep_jit::host::guess_kernel_name;
using deep_jit::host::overload_of;

constexpr auto kNone = std::nullopt;

TEST(HostKernelName, GuessedFromTheText) {
    EXPECT_EQ(guess_kernel_name("extern \"C\" __global__ void k(int* p) {}"), "k");
    EXPECT_EQ(guess_kernel_name("namespace a::b { inline namespace c {\n"
                                "__global__ void __launch_bounds__(256, 2) k() {} } }"),
              "a::b::c::k");
    EXPECT_EQ(guess_kernel_name("template <int N> __global__ void k() {}\n"
                                "static void __instantiate_kernel() {\n"
                                "  auto p = reinterpret_cast<void*>(&ns::k<(3 > 2), 4>);\n}"),
              "ns::k<(3>2),4>");
}

TEST(HostKernelName, NoGuessWithoutExactlyOne) {
    EXPECT_EQ(guess_kernel_name(""), kNone);
    EXPECT_EQ(guess_kernel_name("int f();"), kNone);
    EXPECT_EQ(guess_kernel_name("__global__"), kNone);
    EXPECT_EQ(guess_kernel_name("__global__ void a() {} __global__ void b() {}"), kNone);
    // An address of nothing is not a kernel without a name.
    EXPECT_EQ(guess_kernel_name("void __instantiate_kernel() { f(&); }"), kNone);
    EXPECT_EQ(guess_kernel_name("void __instantiate_kernel() { f(&; }"), kNone);
}

TEST(HostKernelName, CommentsAndLiteralsDoNotCount) {
    const std::string kernel = "\n__global__ void k() {}\n";
    for (const char* before :
         {"// __global__ void no() {}", "/* { __global__ void no() {} */",
          "const char* s = \"{ \\\" __global__ void no() {}\";", "#define X { __global__ \\\n {",
          "const char* s = R\"x(\" __global__ void no() { )x\";", "char c = '{', d = '\"';",
          "int n = 1'000'000;", "// goes on \\\n__global__ void no() {}"})
        EXPECT_EQ(guess_kernel_name(before + kernel), "k") << before;
}

TEST(HostKernelName, TextsThatEndInTheMiddle) {
    for (const char* text :
         {"\"", "'", "\"\\", "R\"", "R\"x(", "/*", "//", "#", "\\", "namespace", "namespace a {",
          "__global__ void k", "__global__ __attribute__", "__global__ __attribute__((",
          "__instantiate_kernel", "__instantiate_kernel {", "__instantiate_kernel { = &"})
        EXPECT_EQ(guess_kernel_name(text), kNone) << text;
}

TEST(HostKernelName, SymbolsTakenApart) {
    EXPECT_EQ(demangle("_ZN2ns5scaleIfLi4EEEvPT_"), "void ns::scale<float, 4>(float*)");
    EXPECT_EQ(demangle("plain"), "plain");
    EXPECT_EQ(expression_of("void ns::scale<float, 4>(float*)"), "ns::scale<float, 4>");
    EXPECT_EQ(expression_of("f(int (*)(int))"), "f");
    EXPECT_EQ(expression_of("f"), "f");
    EXPECT_EQ(expression_of(""), "");
    EXPECT_EQ(expression_of(")"), "");
    EXPECT_EQ(overload_of("ns::f(int*, char)"), "*static_cast<void (*)(int*, char)>(&ns::f)");
    EXPECT_EQ(base_name("ns::scale<float, ns::four>"), "scale");
    EXPECT_EQ(base_name("f(int)"), "f");
    EXPECT_EQ(base_name(""), "");
}

}  // namespace
