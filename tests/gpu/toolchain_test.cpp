// What a build leaves beside the binary, and what of the toolchain a later process still needs.
#include <thread>

#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

constexpr const char* kScale = R"(
extern "C" __global__ void scale(float* data, float factor) {
    data[threadIdx.x] *= factor * 12345.0f;
}
)";

/// A cache of its own, so that everything is compiled.
class GpuToolchain : public GpuTest {
protected:
    void SetUp() override {
        GpuTest::SetUp();
        cache.set((temp / "cache").string());
        if (!IsSkipped())
            jit = std::make_unique<JIT>(Config(temp.path(), "GPUTEST"));
    }

    fs::path entry(const cuda::CompilerOptions& options = {}) {
        return temp / "cache/cache" / ("scale." + jit->cache_key(kScale, options));
    }

    /// Compiles, and runs it on a few numbers: each becomes `times` as much.
    void scales_by(float times, const cuda::CompilerOptions& options = {}) {
        std::vector<float> input, expected;
        for (int i = 0; i < 64; ++i) {
            input.push_back(static_cast<float>(i));
            expected.push_back(static_cast<float>(i) * times);
        }
        const DeviceArray<float> data(input);
        jit->launch(jit->compile("scale", kScale, options),
                    {.grid_dim = dim3(1), .block_dim = dim3(64)}, data.get(), 1.0f);
        EXPECT_TRUE(same(data.download(), expected));
    }

    TempDir temp{"plain"};
    ScopedEnv cache{"GPUTEST_JIT_CACHE_DIR", (temp / "cache").string()};
};

TEST_F(GpuToolchain, DumpsOfPtxAndSass) {
    const bool has_cuobjdump = jit->backend.toolkit.cuobjdump.get().has_value();
    const cuda::CompilerOptions options{.dump_ptx = true, .dump_sass = has_cuobjdump};
    scales_by(12345.0f, options);
    EXPECT_CONTAINS(slurp(entry(options) / "kernel.ptx"), ".visible .entry scale(");
    if (!has_cuobjdump)
        GTEST_SKIP() << "SASS was not dumped: there is no cuobjdump";
    const auto sass = slurp(entry(options) / "kernel.sass");
    EXPECT_CONTAINS(sass, "Function : scale");
    EXPECT_CONTAINS(sass, "FMUL");
    EXPECT_CONTAINS(sass, "12345");
}

TEST_F(GpuToolchain, TheHooksBinaryIsWhatRuns) {
    // The constant is part of the instruction that multiplies by it.
    write(temp / "hooks/times_two.py", R"(
import pathlib, struct, sys
path = pathlib.Path(sys.argv[1])
code = path.read_bytes()
old, new = struct.pack("<f", 12345.0), struct.pack("<f", 2.0)
assert code.count(old) == 1, code.count(old)
path.write_bytes(code.replace(old, new))
)");
    scales_by(2.0f, {.post_hook = "hooks/times_two.py"});
    scales_by(12345.0f);
}

TEST_F(GpuToolchain, LineInformationNamesThePublishedSource) {
    const cuda::CompilerOptions options{.with_line_info = true};
    scales_by(12345.0f, options);
    const auto cubin = slurp(entry(options) / "kernel.cubin");
    EXPECT_TRUE(contains(cubin, entry(options).string()));
    EXPECT_TRUE(contains(cubin, "kernel.cu"));
    EXPECT_EQ(slurp(entry(options) / "kernel.cu"), kScale);
}

TEST_F(GpuToolchain, AnOddCacheDirectory) {
    const auto odd = temp / kOddName;
    cache.set(odd.string());
    jit = std::make_unique<JIT>(Config(temp.path(), "GPUTEST"));
    scales_by(12345.0f);
    EXPECT_FALSE(names_in(odd / "cache").empty());
}

TEST_F(GpuToolchain, AHitStartsNoProgram) {
    const auto nvcc = jit->backend.toolkit.nvcc.get();
    make_script(temp / "bin/nvcc", "#!/bin/sh\necho \"$*\" >>'" + (temp / "calls").string() +
                                       "'\nexec '" + nvcc.string() + "' \"$@\"\n");
    const ScopedEnv compiler("GPUTEST_JIT_NVCC_COMPILER", (temp / "bin/nvcc").string());
    jit = std::make_unique<JIT>(Config(temp.path(), "GPUTEST"));
    scales_by(12345.0f);
    const auto calls = slurp(temp / "calls");
    EXPECT_EQ(count_of(calls, "--version"), 1U);
    EXPECT_EQ(count_of(calls, "--cubin"), 1U);

    jit = std::make_unique<JIT>(Config(temp.path(), "GPUTEST"));
    scales_by(12345.0f);
    EXPECT_EQ(slurp(temp / "calls"), calls);
}

TEST_F(GpuToolchain, ThreadsThatWantTheSameKernelCompileItOnce) {
    const auto nvcc = jit->backend.toolkit.nvcc.get();
    make_script(temp / "bin/nvcc", "#!/bin/sh\necho \"$*\" >>'" + (temp / "calls").string() +
                                       "'\nexec '" + nvcc.string() + "' \"$@\"\n");
    const ScopedEnv compiler("GPUTEST_JIT_NVCC_COMPILER", (temp / "bin/nvcc").string());
    jit = std::make_unique<JIT>(Config(temp.path(), "GPUTEST"));
    std::vector<std::shared_ptr<cuda::Kernel>> kernels(6);
    std::vector<std::thread> threads;
    for (auto& kernel : kernels)
        threads.emplace_back([&] { kernel = jit->compile("scale", kScale); });
    for (auto& thread : threads) thread.join();
    for (const auto& kernel : kernels) EXPECT_EQ(kernel, kernels[0]);
    EXPECT_EQ(count_of(slurp(temp / "calls"), "--cubin"), 1U);
}

}  // namespace
