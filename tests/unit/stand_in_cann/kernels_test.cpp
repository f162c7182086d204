// Every test kernel gives right numbers.
#include <cmath>
#include <numeric>

#include "unit/stand_in_cann/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInKernels : public AclTest {
protected:
    void finish() { ACL_OK(aclrtSynchronizeStream(nullptr)); }

    /// x = 0, 1, 2, ..., y = 5, 7, 9, ... and room for their sums.
    void prepare(std::size_t count) {
        x = to_device(ramp(count));
        y = to_device(ramp(count, 2, 5));
        z = to_device(std::vector<float>(count + 1, -1));
    }
    void expect_sums(std::size_t count) {
        finish();
        std::vector<float> expected(count);
        for (std::size_t i = 0; i < count; ++i) expected[i] = static_cast<float>(3 * i + 5);
        expected.push_back(-1);
        EXPECT_EQ(to_host(z, count + 1), expected);
    }

    float *x = nullptr, *y = nullptr, *z = nullptr;
};

TEST_F(StandInKernels, PlainPointers) {
    prepare(1000);
    ACL_OK(launch(kernel("plain_add"), 7, nullptr, x, y, z, 1000));
    expect_sums(1000);
}

TEST_F(StandInKernels, Queues) {
    prepare(5 * 384);
    ACL_OK(launch(kernel("queue_add"), 5, nullptr, x, y, z, 384u));
    expect_sums(5 * 384);
}

TEST_F(StandInKernels, SimdRegisters) {
    prepare(3 * 256);
    ACL_OK(launch(kernel("vf_add"), 3, nullptr, x, y, z));
    expect_sums(3 * 256);
}

TEST_F(StandInKernels, SimtThreads) {
    prepare(1000);
    ACL_OK(launch(kernel("simt_add"), 2, nullptr, x, y, z, 1000u));
    expect_sums(1000);
}

TEST_F(StandInKernels, MoreBlocksThanCores) {
    prepare(1000);
    ACL_OK(launch(kernel("plain_add"), 500, nullptr, x, y, z, 1000));
    expect_sums(1000);
}

TEST_F(StandInKernels, ScalarsOfManyTypes) {
    auto* a = to_device(std::vector<std::int8_t>{0});
    auto* b = to_device(std::vector<float>{0});
    auto* c = to_device(std::vector<std::int64_t>{0});
    auto* d = to_device(std::vector<double>{0});
    ACL_OK(launch(kernel("scalars"), 1, nullptr, a, std::int8_t{-7}, b, 2.5f, c,
                  std::int64_t{-5'000'000'000}, d, 1e300));
    finish();
    EXPECT_EQ(to_host(a, 1)[0], -7);
    EXPECT_EQ(to_host(b, 1)[0], 2.5f);
    EXPECT_EQ(to_host(c, 1)[0], -5'000'000'000);
    EXPECT_EQ(to_host(d, 1)[0], 1e300);
}

TEST_F(StandInKernels, BlockIndexInATemplateInstance) {
    const std::vector<std::int64_t> zeros(20, -1);
    auto *indices = to_device(zeros), *numbers = to_device(zeros);
    auto function = load(kernel_object("block_index"), "_ZN4demo11block_indexIlEEvPT_S2_");
    ACL_OK(launch(function, 20, nullptr, indices, numbers));
    finish();
    std::vector<std::int64_t> expected(20);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(to_host(indices, 20), expected);
    EXPECT_EQ(to_host(numbers, 20), std::vector<std::int64_t>(20, 20));
}

TEST_F(StandInKernels, UnifiedBufferRoundTrip) {
    const auto values = ramp(1000, 0.5f);
    auto* in = to_device(values);
    auto* out = to_device(std::vector<float>(1000, 0));
    ACL_OK(launch(kernel("ub_round_trip"), 2, nullptr, in, out, 1000u));
    finish();
    EXPECT_EQ(to_host(out, 1000), values);
}

TEST_F(StandInKernels, BarrierOfThreadsAndDynamicBuffer) {
    constexpr std::size_t kPerBlock = 300, kBlocks = 4;
    const auto values = ramp(kPerBlock * kBlocks);
    auto* in = to_device(values);
    auto* out = to_device(std::vector<float>(values.size(), 0));
    ACL_OK(launch_with({dynamic_ub(kPerBlock * sizeof(float))}, kernel("simt_reverse"), kBlocks, in,
                       out, static_cast<unsigned>(kPerBlock)));
    finish();
    auto expected = values;
    for (std::size_t at = 0; at < expected.size(); at += kPerBlock)
        std::reverse(expected.begin() + static_cast<std::ptrdiff_t>(at),
                     expected.begin() + static_cast<std::ptrdiff_t>(at + kPerBlock));
    EXPECT_EQ(to_host(out, values.size()), expected);
}

TEST_F(StandInKernels, CubeAndVectorCoresOfAMixKernel) {
    constexpr std::size_t kPerCore = 8, kBlocks = 40;
    auto* data = to_device(std::vector<float>(2 * kPerCore * kBlocks, 10));
    auto* factors = to_device(std::vector<float>(kBlocks, 0));
    ACL_OK(launch(kernel("mix_scale"), kBlocks, nullptr, data, factors,
                  static_cast<unsigned>(kPerCore)));
    finish();
    std::vector<float> expected;
    for (std::size_t block = 0; block < kBlocks; ++block)
        expected.insert(expected.end(), 2 * kPerCore, 10 * static_cast<float>(block + 2));
    EXPECT_EQ(to_host(data, expected.size()), expected);
}

TEST_F(StandInKernels, BlocksThatWaitForEachOther) {
    auto* numbers = to_device(std::vector<std::int64_t>(30, 0));
    auto* sums = to_device(std::vector<std::int64_t>(30, 0));
    ACL_OK(launch(kernel("sync_sum"), 30, nullptr, numbers, sums));
    finish();
    EXPECT_EQ(to_host(sums, 30), std::vector<std::int64_t>(30, 30 * 31 / 2));
}

TEST_F(StandInKernels, AdvancedApi) {
    const auto values = ramp(64, 0.25f, -8);
    auto* in = to_device(values);
    auto* out = to_device(std::vector<float>(64, 0));
    ACL_OK(launch(kernel("sigmoid"), 1, nullptr, in, out));
    finish();
    const auto got = to_host(out, 64);
    for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(got[i], 1 / (1 + std::exp(-values[i])), 1e-6);
}

TEST_F(StandInKernels, NoArguments) {
    ACL_OK(launch(kernel("no_arguments"), 3, nullptr));
    finish();
    EXPECT_EQ(stand_in.last_launch().args_size, 8u);
}

TEST_F(StandInKernels, TwoOfOneNameAreApart) {
    const auto source = [](const char* value) {
        return "inline int counter = " + std::string(value) +
               ";\nextern \"C\" __global__ __aicore__ void count(__gm__ int* out) "
               "{ *out = counter++; }\n";
    };
    const auto first = load(build(source("10")), "count");
    const auto second = load(build(source("20")), "count");
    auto* out = to_device(std::vector<int>{0, 0});
    ACL_OK(launch(first, 1, nullptr, out));
    ACL_OK(launch(second, 1, nullptr, out + 1));
    finish();
    EXPECT_EQ(to_host(out, 2), (std::vector<int>{10, 20}));
}

}  // namespace
