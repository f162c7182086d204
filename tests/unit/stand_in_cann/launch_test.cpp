// Launches are checked as strictly as ACL does, or more so, and are recorded.
#include "unit/stand_in_cann/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInLaunch : public AclTest {
protected:
    void SetUp() override {
        AclTest::SetUp();
        memory = to_device(std::vector<float>(16, 0));
        function = kernel("faults");
        arguments = pack(memory, 0);
    }

    aclError raw(aclrtFuncHandle what, std::uint32_t blocks, void* bytes, std::size_t size,
                 aclrtLaunchKernelCfg* config = nullptr, aclrtStream stream = nullptr) {
        return aclrtLaunchKernelWithHostArgs(what, blocks, stream, config, bytes, size, nullptr, 0);
    }
    aclError with_attributes(const std::vector<aclrtLaunchKernelAttr>& attributes) {
        return launch_with(attributes, function, 1, memory, 0);
    }
    static aclrtLaunchKernelAttr attribute(int id, std::uint32_t value) {
        aclrtLaunchKernelAttr out{};
        out.id = static_cast<aclrtLaunchKernelAttrId>(id);
        out.value.rsv[0] = value;
        return out;
    }

    float* memory = nullptr;
    aclrtFuncHandle function = nullptr;
    std::string arguments;
};

TEST_F(StandInLaunch, RefusesNullAndZero) {
    auto* bytes = arguments.data();
    const auto size = arguments.size();
    EXPECT_EQ(raw(nullptr, 1, bytes, size), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(raw(function, 1, nullptr, size), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(raw(function, 1, bytes, 0), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_CONTAINS(message(), "argsSize is 0");
    EXPECT_EQ(raw(function, 0, bytes, size), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_CONTAINS(message(), "numBlocks is 0");
    EXPECT_EQ(raw(memory, 1, bytes, size), ACL_ERROR_RT_INVALID_HANDLE);
    EXPECT_EQ(raw(function, 1, bytes, size, nullptr, memory), ACL_ERROR_RT_INVALID_HANDLE);
    EXPECT_EQ(stand_in.launch_count(), 0u);
    EXPECT_ACL_OK(raw(function, 1, bytes, size));
    EXPECT_EQ(stand_in.launch_count(), 1u);
}

TEST_F(StandInLaunch, ArgumentsHaveTheSizeThatTheKernelExpects) {
    auto* bytes = arguments.data();
    EXPECT_EQ(raw(function, 1, bytes, 12), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(launch(function, 1, nullptr, memory, 0, memory), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_CONTAINS(message(), "argsSize");
}

TEST_F(StandInLaunch, ConfigurationsWithoutAttributes) {
    aclrtLaunchKernelCfg config{nullptr, 0};
    EXPECT_EQ(raw(function, 1, arguments.data(), arguments.size(), &config),
              ACL_ERROR_RT_PARAM_INVALID);
    aclrtLaunchKernelAttr unused{};
    config.attrs = &unused;
    EXPECT_ACL_OK(raw(function, 1, arguments.data(), arguments.size(), &config));
}

TEST_F(StandInLaunch, WrongAttributes) {
    EXPECT_EQ(with_attributes({timeout(1), timeout_us(1)}), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(with_attributes({attribute(1, 2)}), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(with_attributes({attribute(5, 2)}), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(with_attributes({attribute(6, 2)}), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(with_attributes({attribute(0, 0)}), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(with_attributes({attribute(99, 0)}), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_ACL_OK(with_attributes({attribute(1, 1), attribute(5, 1), timeout(1)}));
}

TEST_F(StandInLaunch, DynamicBufferIsForVectorFunctionsAndLimited) {
    EXPECT_EQ(with_attributes({dynamic_ub(1024)}), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_ACL_OK(with_attributes({dynamic_ub(0)}));
    auto* x = to_device(std::vector<float>(256, 0));
    const auto simd = kernel("vf_add");
    EXPECT_ACL_OK(launch_with({dynamic_ub(262144)}, simd, 1, x, x, x));
    EXPECT_EQ(launch_with({dynamic_ub(262145)}, simd, 1, x, x, x), ACL_ERROR_RT_PARAM_INVALID);
    const auto simt = kernel("simt_add");
    EXPECT_ACL_OK(launch_with({dynamic_ub(229376)}, simt, 1, x, x, x, 256u));
    EXPECT_EQ(launch_with({dynamic_ub(229377)}, simt, 1, x, x, x, 256u),
              ACL_ERROR_RT_PARAM_INVALID);
    ACL_OK(aclrtSynchronizeStream(nullptr));
}

TEST_F(StandInLaunch, DynamicBufferIsNotUsedElsewhere) {
    const ScopedEnv soc("DJ_STAND_IN_CANN_SOC", "Ascend910B1");
    start();
    memory = to_device(std::vector<float>(16, 0));
    function = load(build(kernel_source("faults"), "dav-2201"), "faults");
    EXPECT_ACL_OK(with_attributes({dynamic_ub(1 << 30)}));
    EXPECT_ACL_OK(aclrtSynchronizeStream(nullptr));
}

TEST_F(StandInLaunch, IsRecorded) {
    aclrtStream stream = nullptr;
    ACL_OK(aclrtCreateStream(&stream));
    ACL_OK(launch_with({timeout(9), attribute(1, 1)}, function, 3, memory, 0));
    auto record = stand_in.last_launch();
    EXPECT_EQ(record.name, "faults");
    EXPECT_EQ(record.num_blocks, 3u);
    EXPECT_EQ(record.timeout, 9);
    EXPECT_EQ(record.schem_mode, 1);
    EXPECT_EQ(record.dyn_ubuf_size, -1);
    EXPECT_EQ(record.stream, nullptr);
    EXPECT_EQ(record.has_config, 1);
    EXPECT_EQ(record.argument<float*>(0), memory);
    ACL_OK(launch(function, 1, stream, memory, 77));
    record = stand_in.last_launch();
    EXPECT_EQ(record.timeout, -1);
    EXPECT_EQ(record.has_config, 0);
    EXPECT_EQ(record.stream, stream);
    EXPECT_EQ(record.argument<int>(8), 77);
    EXPECT_EQ(record.args_size, 16u);
    EXPECT_EQ(stand_in.calls("aclrtLaunchKernelWithHostArgs"), 2u);
    stand_in.reset();
    EXPECT_EQ(stand_in.launch_count(), 0u);
    EXPECT_EQ(stand_in.calls(), 0u);
}

TEST_F(StandInLaunch, ATestCanAskForAFailure) {
    stand_in.fail("aclrtLaunchKernelWithHostArgs", 207001, 1);
    EXPECT_ACL_OK(launch(function, 1, nullptr, memory, 0));
    EXPECT_EQ(launch(function, 1, nullptr, memory, 0), 207001);
    EXPECT_CONTAINS(message(), "207001");
    EXPECT_ACL_OK(launch(function, 1, nullptr, memory, 0));
    EXPECT_EQ(stand_in.launch_count(), 2u);
}

TEST_F(StandInLaunch, AKernelBelongsToTheDeviceThatLookedItUp) {
    const ScopedEnv devices("DJ_STAND_IN_CANN_DEVICES", "2");
    SetUp();
    ACL_OK(aclrtSetDevice(1));
    EXPECT_EQ(launch(function, 1, nullptr, memory, 0), ACL_ERROR_RT_INVALID_HANDLE);
    aclrtStream stream = nullptr;
    ACL_OK(aclrtCreateStream(&stream));
    ACL_OK(aclrtSetDevice(0));
    EXPECT_EQ(launch(function, 1, stream, memory, 0), ACL_ERROR_RT_STREAM_CONTEXT);
    EXPECT_ACL_OK(launch(function, 1, nullptr, memory, 0));
}

TEST_F(StandInLaunch, Placeholders) {
    // The second argument's place is filled with the address of bytes behind the arguments.
    auto plain = kernel("plain_add");
    auto bytes = pack(memory, memory, memory, 0);
    aclrtPlaceHolderInfo outside{40, 0};
    EXPECT_EQ(aclrtLaunchKernelWithHostArgs(plain, 1, nullptr, nullptr, bytes.data(), bytes.size(),
                                            &outside, 1),
              ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclrtLaunchKernelWithHostArgs(plain, 1, nullptr, nullptr, bytes.data(), bytes.size(),
                                            nullptr, 1),
              ACL_ERROR_RT_PARAM_INVALID);
}

}  // namespace
