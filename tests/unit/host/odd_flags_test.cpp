// Flags that get in the way: macros named like what the prelude declares, and flags with which a
// compiler succeeds and makes nothing.
#include <string>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class HostOddFlags : public HostTest, public testing::WithParamInterface<const char*> {
protected:
    void SetUp() override {
        if (host::detail::search_path(GetParam()).empty())
            GTEST_SKIP() << GetParam() << " is not installed";
        compiler_env_.set(GetParam());
    }
};

std::string compiler_name(const testing::TestParamInfo<const char*>& info) {
    return info.param == std::string("g++") ? "Gcc" : "Clang";
}
INSTANTIATE_TEST_SUITE_P(Host, HostOddFlags, testing::Values("g++", "clang++"), compiler_name);

TEST_P(HostOddFlags, MacrosOfAnyNameAreTheKernels) {
    HostOptions options;
    for (const char* name :
         {"N",         "T",          "num_threads", "grid_dim",     "block_dim",
          "barrier",   "type",       "host",        "abi",          "run",
          "sizes",     "plain",      "param_sizes", "runner",       "identity",
          "indices",   "w",          "z",           "min",          "deep_jit",
          "value",     "next",       "Index3",      "result",       "name",
          "block_idx", "make_entry", "expected",    "block_runner", "run_threads"})
        options.extra_compiler_flags.push_back(std::string("-D") + name + "=+5");
    options.extra_compiler_flags.emplace_back("-Dint_type=int");
    HostJit jit = make();
    const auto kernel = jit.compile("macros", R"(
template <typename U>
__global__ void k(U* out) {
    __shared__ int seen;
    if (threadIdx.x == 0)
        seen = N + num_threads + type;
    __syncthreads();
    atomicAdd(out, seen + host min);
}
static void __instantiate_kernel() { auto p = reinterpret_cast<void*>(&k<int_type>); }
)",
                                    options);
    int out = 0;
    const HostStream stream;
    jit.launch(kernel, {.stream = stream, .grid_dim = dim3(2), .block_dim = dim3(3)}, &out);
    stream.synchronize();
    EXPECT_EQ(out, 6 * 25);
}

TEST_P(HostOddFlags, ACompilerThatMakesNothingIsACompileError) {
    HostJit jit = make();
    for (const char* flag : {"-fsyntax-only", "--version", "-E", "-c"}) {
        const auto message = message_of<CompileError>(
            [&] { jit.compile("nothing", store_source(1), {.extra_compiler_flags = {flag}}); });
        EXPECT_CONTAINS(message, "did not produce");
        EXPECT_CONTAINS(message, std::string(" ") + flag);
        EXPECT_CONTAINS(message, "kernel.cpp");
    }
    EXPECT_TRUE(entries().empty());
    EXPECT_EQ(stored_by(jit, jit.compile("nothing", store_source(1))), 1);
}

TEST_F(HostTest, AProgramThatIsNoCompilerIsACompileError) {
    make_script(dir_ / "no compiler", "#!/bin/sh\necho I am not a compiler\n");
    compiler_env_.set((dir_ / "no compiler").string());
    HostJit jit = make();
    EXPECT_CONTAINS(message_of<CompileError>([&] { jit.compile("nothing", store_source(1)); }),
                    "did not produce an ELF object file");
}

}  // namespace
