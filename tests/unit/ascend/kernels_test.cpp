// Every kernel of the stand-in's collection, from source to numbers, through the runtime.
#include <cmath>
#include <numeric>

#include "unit/ascend/fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class AscendKernels : public AscendStandIn {
protected:
    void SetUp() override {
        AscendStandIn::SetUp();
        if (IsSkipped())
            return;
        restart("Ascend950PR_9599");
        use_device(0);
        jit = std::make_unique<JIT>(config());
    }

    static std::string source_of(const std::string& name) {
        return slurp(fs::path(DEEP_JIT_REPO_ROOT) / "tests/stand_in/cann/kernels" /
                     (name + ".asc"));
    }

    template <typename... Args>
    void run(const std::string& name, const ascend::LaunchOptions& options, const Args&... args) {
        const auto kernel = jit->compile(name, source_of(name));
        jit->launch(kernel, options, args...);
        synchronize();
    }

    template <typename T = float>
    static std::vector<T> counting(std::size_t count, T first = 0) {
        std::vector<T> out(count);
        std::iota(out.begin(), out.end(), first);
        return out;
    }

    /// x + y, where x counts from 0 and y from 1000.
    static std::vector<float> sums(std::size_t count) {
        std::vector<float> out(count);
        for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(1000 + 2 * i);
        return out;
    }

    std::unique_ptr<JIT> jit;
};

TEST_F(AscendKernels, PlainAdd) {
    const DeviceArray x(counting(1000)), y(counting(1000, 1000.0F)),
        z(std::vector<float>(1000, -1));
    run("plain_add", {.num_blocks = 7}, x.data(), y.data(), z.data(), 1000);
    EXPECT_EQ(z.values(), sums(1000));
    // The argument count is a number of elements, and is obeyed.
    const DeviceArray some(std::vector<float>(1000, -1));
    run("plain_add", {.num_blocks = 3}, x.data(), y.data(), some.data(), 10);
    EXPECT_EQ(some.values()[9], 1018);
    EXPECT_EQ(some.values()[10], -1);
}

TEST_F(AscendKernels, QueueAdd) {
    const DeviceArray x(counting(4 * 256)), y(counting(4 * 256, 1000.0F)),
        z(std::vector<float>(4 * 256));
    run("queue_add", {.num_blocks = 4}, x.data(), y.data(), z.data(), 256U);
    EXPECT_EQ(z.values(), sums(4 * 256));
}

TEST_F(AscendKernels, SimtAdd) {
    const DeviceArray x(counting(3000)), y(counting(3000, 1000.0F)), z(std::vector<float>(3000));
    run("simt_add", {.num_blocks = 2}, x.data(), y.data(), z.data(), 3000U);
    EXPECT_EQ(z.values(), sums(3000));
}

TEST_F(AscendKernels, VectorFunctionAdd) {
    const DeviceArray x(counting(3 * 256)), y(counting(3 * 256, 1000.0F)),
        z(std::vector<float>(3 * 256));
    run("vf_add", {.num_blocks = 3}, x.data(), y.data(), z.data());
    EXPECT_EQ(z.values(), sums(3 * 256));
}

TEST_F(AscendKernels, SimtReverseInDynamicUnifiedBuffer) {
    const DeviceArray in(counting(2 * 500)), out(std::vector<float>(2 * 500));
    run("simt_reverse", {.num_blocks = 2, .num_ubuf_bytes = 500 * sizeof(float)}, in.data(),
        out.data(), 500U);
    const auto values = out.values();
    for (std::size_t i = 0; i < 500; ++i) {
        EXPECT_EQ(values[i], static_cast<float>(499 - i));
        EXPECT_EQ(values[500 + i], static_cast<float>(999 - i));
    }
}

TEST_F(AscendKernels, ScalarsOfManyTypes) {
    const DeviceArray<std::int8_t> a({0});
    const DeviceArray<float> b({0});
    const DeviceArray<std::int64_t> c({0});
    const DeviceArray<double> d({0});
    run("scalars", {.num_blocks = 1}, a.data(), std::int8_t{-7}, b.data(), 0.5F, c.data(),
        std::int64_t{-1234567890123}, d.data(), 3.25);
    EXPECT_EQ(a.values(), std::vector<std::int8_t>{-7});
    EXPECT_EQ(b.values(), std::vector<float>{0.5F});
    EXPECT_EQ(c.values(), std::vector<std::int64_t>{-1234567890123});
    EXPECT_EQ(d.values(), std::vector<double>{3.25});
}

TEST_F(AscendKernels, BlockIndexOfATemplateInANamespace) {
    const DeviceArray indices(std::vector<std::int64_t>(5, -1)),
        numbers(std::vector<std::int64_t>(5, -1));
    run("block_index", {.num_blocks = 5}, indices.data(), numbers.data());
    EXPECT_EQ(indices.values(), counting<std::int64_t>(5));
    EXPECT_EQ(numbers.values(), std::vector<std::int64_t>(5, 5));
}

TEST_F(AscendKernels, MixOfCubeAndVectorCores) {
    const DeviceArray data(std::vector<float>(3 * 2 * 10, 1)), factors(std::vector<float>(3));
    run("mix_scale", {.num_blocks = 3}, data.data(), factors.data(), 10U);
    EXPECT_EQ(stand_in->last_launch().name, "mix_scale");
    EXPECT_EQ(factors.values(), (std::vector<float>{2, 3, 4}));
    const auto values = data.values();
    for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(values[i], static_cast<float>(2 + i / 20)) << i;
}

TEST_F(AscendKernels, UnifiedBufferRoundTrip) {
    const DeviceArray in(counting(1111)), out(std::vector<float>(1111));
    run("ub_round_trip", {.num_blocks = 2}, in.data(), out.data(), 1111U);
    EXPECT_EQ(out.values(), counting(1111));
}

TEST_F(AscendKernels, BlocksThatWaitForEachOther) {
    const DeviceArray numbers(std::vector<std::int64_t>(6)), sums(std::vector<std::int64_t>(6));
    run("sync_sum", {.num_blocks = 6}, numbers.data(), sums.data());
    EXPECT_EQ(sums.values(), std::vector<std::int64_t>(6, 21));
}

TEST_F(AscendKernels, AnAdvancedApi) {
    const DeviceArray in(counting(64, -32.0F)), out(std::vector<float>(64));
    run("sigmoid", {.num_blocks = 1}, in.data(), out.data());
    const auto values = out.values();
    for (int i = 0; i < 64; ++i)
        EXPECT_NEAR(values[static_cast<std::size_t>(i)], 1 / (1 + std::exp(32.0 - i)), 1e-6);
}

TEST_F(AscendKernels, WhatGoesWrongOnADevice) {
    const DeviceArray memory(std::vector<float>(16));
    const auto kernel = jit->compile("faults", source_of("faults"));
    blocking.set("1");
    const JIT waiting(config());
    const auto failure = [&](int what) {
        return message_of<LaunchError>([&] {
            waiting.launch(kernel, {.num_blocks = 2, .num_launch_timeout_secs = 1}, memory.data(),
                           what);
        });
    };
    EXPECT_CONTAINS(failure(1), "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION (507035)");
    EXPECT_CONTAINS(failure(2), "out of range");
    EXPECT_CONTAINS(failure(3), "Kernel faults failed");
    EXPECT_CONTAINS(failure(4), "ACL_ERROR_RT_VECTOR_CORE_TIMEOUT (507034)");
    waiting.launch(kernel, {.num_blocks = 2}, memory.data(), 0);
    EXPECT_EQ(memory.values()[0], 42);
}

TEST_F(AscendKernels, NoArguments) {
    run("no_arguments", {.num_blocks = 2});
    EXPECT_EQ(stand_in->last_launch().arguments, std::string(8, '\0'));
}

}  // namespace
