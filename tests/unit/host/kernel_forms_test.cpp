// Every way in which a source can spell its one kernel, by both compilers.
#include <filesystem>
#include <string>
#include <vector>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

/// A source whose kernel writes 7.
struct Form {
    const char* name;
    const char* source;
    unsigned compiles;  ///< by how many compiler runs its kernel is found
};

const Form kForms[] = {
    {"Plain", "__global__ void k(int* out) { *out = 7; }", 1},
    {"ExternC", "extern \"C\" __global__ void k(int* out) { *out = 7; }", 1},
    {"ExternCBlock", "extern \"C\" {\n__global__ void k(int* out) { *out = 7; }\n}", 1},
    {"Namespaces",
     "namespace a::b { namespace c { __global__ void k(int* out) { *out = 7; } } int x; }", 1},
    {"InlineNamespace",
     "namespace a { inline namespace v1 { __global__ void k(int* out) { *out = 7; } } }", 1},
    {"AnonymousNamespace", "namespace { __global__ void k(int* out) { *out = 7; } }", 1},
    {"Static", "static __global__ void k(int* out) { *out = 7; }", 1},
    {"DeclaredFirst", "__global__ void k(int* out);\n__global__ void k(int* out) { *out = 7; }", 1},
    {"Attributes",
     "__global__ __launch_bounds__(128, (1 + 1)) __attribute__((cold)) void "
     "__cluster_dims__(1, 1, 1) k(int* out) { *out = 7; }",
     1},
    {"Noexcept", "__global__ void k(int* out) noexcept { *out = 7; }", 1},
    {"ConstParameters", "__global__ void k(int* const out, const int) { *out = 7; }", 1},
    {"Template",
     "namespace a { template <typename T, int N>\n"
     "__global__ void k(T* out) { *out = T(N); } }\n"
     "static void __instantiate_kernel() {\n"
     "    auto ptr = reinterpret_cast<void*>(&a::k<int, 3 + 4>);\n}",
     1},
    {"TemplateFunctionPointer",
     "template <int N> __global__ void k(int* out) { *out = N; }\n"
     "static void __instantiate_kernel() { void (*p)(int*) = &k<(7 > 3 ? 7 : 0)>; (void)p; }",
     1},
    {"TemplateWithoutTheUsualWords",
     "template <int N> __global__ void k(int* out) { *out = N; }\n"
     "static void __instantiate_kernel() { auto f = k<7>; (void)f; }",
     2},
    {"ExplicitInstance",
     "enum class Mode { off, on };\n"
     "template <Mode M> __global__ void k(int* out) { *out = M == Mode::on ? 7 : 0; }\n"
     "template __global__ void k<Mode::on>(int*);",
     2},
    {"StaticMember",
     "struct S { static __global__ void k(int* out); };\nvoid S::k(int* out) { *out = 7; }", 3},
    {"MacroMade", "#define KERNEL(name) __global__ void name(int* out)\nKERNEL(k) { *out = 7; }",
     2},
    {"BehindAnotherOneThatIsOff",
     "#if 0\n__global__ void other(int* out) {}\n#endif\n__global__ void k(int* out) { *out = 7; }",
     2},
    {"BehindComments",
     "// __global__ void a(int*);\n/* __global__ void b(int*); */\n"
     "__device__ const char* text = \"__global__ void c(int*) {\";\n"
     "__device__ const char* raw = R\"x(__global__ void d(int*) { \" )x\";\n"
     "__device__ char quote = '\"'; __device__ int big = 1'000'000;\n"
     "__global__ void k(int* out) { *out = 7; }",
     1},
    // The text names a function that is none of the kernels.
    {"BehindADecoy",
     "#if 0\n__global__ void decoy(int* out);\n#endif\n"
     "void decoy(int* out) { *out = 3; }\n#define HIDDEN __global__\n"
     "HIDDEN void k(int* out) { decoy(out); *out += 4; }",
     3},
    {"OverloadedByAnOrdinaryFunction",
     "namespace a { __device__ void k(float* out) { *out = 3; }\n"
     "__global__ void k(int* out) { float x; k(&x); *out = 4 + int(x); } }",
     4},
};

class KernelForms : public HostTest,
                    public testing::WithParamInterface<std::tuple<const char*, Form>> {};

TEST_P(KernelForms, IsFoundAndRuns) {
    const auto& [compiler, form] = GetParam();
    if (host::detail::search_path(compiler).empty())
        GTEST_SKIP() << compiler << " is not installed";
    const CountingCompiler counting(dir_ / "counting", "", compiler);
    const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", counting.path());
    HostJit jit = make();
    const auto kernel = jit.compile("form", form.source);
    int out = -1;
    if (kernel->num_params() == 2)
        run_once(jit, kernel, &out, 0);
    else
        run_once(jit, kernel, &out);
    EXPECT_EQ(out, 7);
    EXPECT_LE(counting.compiles(), form.compiles);
    EXPECT_EQ(counting.links(), 1u);
}

INSTANTIATE_TEST_SUITE_P(
    Host, KernelForms,
    testing::Combine(testing::Values("g++", "clang++"), testing::ValuesIn(kForms)),
    [](const auto& info) {
        return std::string(std::get<0>(info.param) == std::string("g++") ? "Gcc" : "Clang") +
               std::get<1>(info.param).name;
    });

class KernelCount : public HostTest {};

TEST_F(KernelCount, NoneIsAnError) {
    HostJit jit = make();
    for (const std::string source :
         {"", "\n", "int x;", "__device__ void f(int* out) { *out = 1; }",
          "template <int N> __global__ void k(int* out) { *out = N; }"}) {
        const auto message = message_of<CompileError>([&] { jit.compile("none", source); });
        EXPECT_CONTAINS(message, "expected exactly one kernel");
        EXPECT_CONTAINS(message, "has 0");
        EXPECT_CONTAINS(message, "none." + jit.cache_key(source));
        EXPECT_CONTAINS(message, "__instantiate_kernel");
    }
    EXPECT_TRUE(entries().empty());
}

TEST_F(KernelCount, TwoAreAnErrorThatNamesThem) {
    HostJit jit = make();
    const std::string sources[] = {
        "__global__ void first(int*) {}\nnamespace a { __global__ void second(float) {} }",
        "template <typename T> __global__ void k(T) {}\n"
        "static void __instantiate_kernel() { auto a = &k<int>; auto b = &k<float>; }",
        "__global__ void k(int) {}\n__global__ void k(float) {}",
    };
    const std::vector<std::string> names[] = {{"first(int*)", "a::second(float)"},
                                              {"k<int>(int)", "k<float>(float)"},
                                              {"k(int)", "k(float)"}};
    for (int i = 0; i < 3; ++i) {
        const auto message = message_of<CompileError>([&] { jit.compile("two", sources[i]); });
        EXPECT_CONTAINS(message, "expected exactly one kernel");
        EXPECT_CONTAINS(message, "has 2");
        for (const auto& name : names[i]) EXPECT_CONTAINS(message, name);
    }
    EXPECT_TRUE(entries().empty());
}

TEST_F(KernelCount, OneInATrackedHeaderAndOneInTheSourceAreTwo) {
    include_dirs_ = {dir_ / "include"};
    write(dir_ / "include/tracked/k.hpp",
          "#pragma once\n__global__ void k(int* out) { *out = 7; }\n");
    HostJit jit = make();
    const auto kernel = jit.compile("header", "#include <tracked/k.hpp>\n");
    EXPECT_EQ(stored_by(jit, kernel), 7);
    EXPECT_CONTAINS(message_of<CompileError>([&] {
                        jit.compile("header", "#include <tracked/k.hpp>\n" + store_source(1));
                    }),
                    "expected exactly one kernel");
}

}  // namespace
