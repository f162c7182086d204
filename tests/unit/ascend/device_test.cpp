// Questions to the device, with what each CANN leaves open.
#include "unit/ascend/fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using ascend::Device;

using AscendDevice = AscendStandIn;

TEST_F(AscendDevice, Numbers) {
    const Device device;
    EXPECT_EQ(device.get_prop().soc_name, "Ascend910B2");
    EXPECT_EQ(device.get_npu_arch(), "2201");
    EXPECT_EQ(device.get_num_sms(), 24);
    EXPECT_EQ(device.get_num_aicore_cores(), 24);
    EXPECT_EQ(device.get_num_cube_cores(), 24);
    EXPECT_EQ(device.get_num_vec_cores(), 48);
    EXPECT_EQ(device.get_num_vec_cores_per_ai_core(), 2);
    EXPECT_EQ(device.get_num_ubuf_bytes_per_vec_core(), 196608);
    EXPECT_EQ(device.get_num_l2_cache_bytes(), 201326592);
}

TEST_F(AscendDevice, WhatEachCannSaysOfTheArchitecture) {
    struct Case {
        const char* soc;
        const char* arch;
        int ubuf;
    };
    for (const Case& one :
         {Case{"Ascend950PR_9599", "3510", 221184}, Case{"Ascend910B1", "2201", 196608},
          Case{"Ascend910_9362", "2201", 196608}, Case{"Ascend310P3", "2002", 262144},
          Case{"Ascend910B", "1001", 262144}})
        for (const char* cann : {"8.5.0", "9.0.0", "9.1.0"}) {
            restart(one.soc, 1, cann);
            EXPECT_EQ(Device().get_npu_arch(), one.arch) << one.soc << " " << cann;
            EXPECT_EQ(Device().get_num_ubuf_bytes_per_vec_core(), one.ubuf)
                << one.soc << " " << cann;
            // Nobody finds the message of the attribute that is not there.
            EXPECT_EQ(driver::lazy_aclGetRecentErrMsg(), nullptr);
        }
}

TEST_F(AscendDevice, UnknownAttributesAreFilledIn) {
    attributes.set("601,204,302");
    restart("Ascend950PR_9599");
    EXPECT_EQ(Device().get_npu_arch(), "3510");
    EXPECT_EQ(Device().get_num_ubuf_bytes_per_vec_core(), 221184);
    EXPECT_EQ(Device().get_num_l2_cache_bytes(), 0);
}

TEST_F(AscendDevice, NothingIsAskedBeforeItIsNeeded) {
    const Device device;
    const JIT jit(config());
    EXPECT_EQ(stand_in->calls(), 0U);
    EXPECT_EQ(device.get_num_sms(), 24);
    const auto calls = stand_in->calls();
    EXPECT_EQ(device.get_num_vec_cores(), 48);
    EXPECT_EQ(stand_in->calls(), calls);
}

TEST_F(AscendDevice, TheCurrentDeviceIsTheOneThatIsMeant) {
    restart("Ascend910B2", 3);
    EXPECT_EQ(Device().get_index(), 0);
    use_device(2);
    const Device device;
    EXPECT_EQ(device.get_index(), 2);
    use_device(1);
    EXPECT_EQ(device.get_index(), 2);
    EXPECT_EQ(Device().get_index(), 1);
}

TEST_F(AscendDevice, WhoeverInitialisedAclFirst) {
    ASSERT_EQ(driver::lazy_aclInit(nullptr), 0);
    EXPECT_EQ(Device().get_npu_arch(), "2201");
    EXPECT_EQ(driver::lazy_aclGetRecentErrMsg(), nullptr);
    EXPECT_EQ(stand_in->calls("aclInit"), 2U);
    Device().get_num_sms();
    EXPECT_EQ(stand_in->calls("aclInit"), 2U);
}

TEST_F(AscendDevice, WithoutDevices) {
    restart("Ascend910B2", 0);
    EXPECT_CONTAINS(message_of<ToolchainError>([] { Device().get_num_sms(); }),
                    "There is no NPU in this machine, or none is visible");
    JIT jit(config());
    const auto text =
        message_of<ToolchainError>([&] { jit.compile_without_load("scale", kScale); });
    EXPECT_CONTAINS(text, "There is no device to compile for");
    EXPECT_CONTAINS(text, "Set NPUTEST_JIT_ARCH or CompilerOptions::arch");
    // Compiling needs none.
    const auto entry = jit.compile_without_load("scale", kScale, {.arch = "dav-3510"});
    EXPECT_TRUE(fs::exists(entry / "kernel.o"));
    arch.set("2201");
    EXPECT_TRUE(fs::exists(JIT(config()).compile_without_load("scale", kScale) / "kernel.o"));
    EXPECT_EQ(stand_in->calls("aclrtSetDevice"), 0U);
}

TEST_F(AscendDevice, FailuresAreErrorsWithTheirCodeAndTheirMessage) {
    stand_in->fail("aclInit", 500000);
    EXPECT_CONTAINS(message_of<ToolchainError>([] { Device().get_num_sms(); }),
                    "ACL does not start (aclInit): ACL_ERROR_INTERNAL_ERROR (500000)");
    stand_in->fail("aclrtGetDeviceCount", 507000);
    EXPECT_CONTAINS(message_of<ToolchainError>([] { Device().get_num_sms(); }),
                    "aclrtGetDeviceCount: ACL_ERROR_RT_INTERNAL_ERROR (507000)");
    stand_in->fail("aclrtGetSocName", 500000);
    EXPECT_CONTAINS(message_of<ToolchainError>([] { Device().get_num_sms(); }), "aclrtGetSocName");
    // Nothing of it is remembered.
    EXPECT_EQ(Device().get_num_sms(), 24);
    EXPECT_CONTAINS(message_of<Error>([] { DJ_ACL_CHECK(driver::lazy_aclrtSetDevice(9)); }),
                    "driver::lazy_aclrtSetDevice(9): ACL_ERROR_RT_INVALID_DEVICEID (107001): "
                    "EE1001: ");
}

TEST_F(AscendDevice, AFunctionThatIsNotThere) {
    const driver::LazyFunction<acl::LaunchAttributeId(int)> missing("aclrtFromTheFuture");
    EXPECT_EQ(missing.try_get(), nullptr);
    const auto text = message_of<ToolchainError>([&] { missing(1); });
    EXPECT_CONTAINS(text, "its ACL has no aclrtFromTheFuture");
    EXPECT_CONTAINS(text, "CANN 8.5.0 or newer is needed");
}

}  // namespace
