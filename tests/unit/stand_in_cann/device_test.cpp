// Start, devices, what they say of themselves, and messages.
#include <thread>

#include "unit/stand_in_cann/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInDevice : public AclTest {
protected:
    /// -1 when the attribute is unknown.
    std::int64_t attribute(int id) {
        std::int64_t out = -2;
        const auto status = aclrtGetDeviceInfo(0, static_cast<aclrtDevAttr>(id), &out);
        return status == ACL_SUCCESS ? out : status == ACL_ERROR_RT_PARAM_INVALID ? -1 : -2;
    }
};

TEST_F(StandInDevice, NothingWorksBeforeInit) {
    stand_in.restart();
    std::int32_t device = -1;
    std::uint32_t count = 0;
    void* memory = nullptr;
    EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_UNINITIALIZE);
    EXPECT_EQ(aclrtSetDevice(0), ACL_ERROR_UNINITIALIZE);
    EXPECT_EQ(aclrtGetDeviceCount(&count), ACL_ERROR_UNINITIALIZE);
    EXPECT_EQ(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_UNINITIALIZE);
    EXPECT_STREQ(aclrtGetSocName(), "Ascend950PR_9599");
}

TEST_F(StandInDevice, InitAndFinalizeOnce) {
    EXPECT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
    EXPECT_ACL_OK(aclFinalize());
    EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
    EXPECT_EQ(aclrtSetDevice(0), ACL_ERROR_UNINITIALIZE);
}

TEST_F(StandInDevice, EveryThreadSetsItsDevice) {
    std::int32_t device = -1;
    aclrtStream stream = nullptr;
    std::thread([&] {
        EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
        EXPECT_EQ(aclrtCreateStream(&stream), ACL_ERROR_RT_CONTEXT_NULL);
        EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL);
    }).join();
    EXPECT_ACL_OK(aclrtGetDevice(&device));
    EXPECT_EQ(device, 0);
    EXPECT_ACL_OK(aclrtResetDevice(0));
    EXPECT_EQ(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
}

TEST_F(StandInDevice, SeveralDevices) {
    const ScopedEnv devices("DJ_STAND_IN_CANN_DEVICES", "3");
    start();
    std::uint32_t count = 0;
    EXPECT_ACL_OK(aclrtGetDeviceCount(&count));
    EXPECT_EQ(count, 3u);
    EXPECT_ACL_OK(aclrtSetDevice(2));
    EXPECT_EQ(aclrtSetDevice(3), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_EQ(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
    std::int32_t device = -1;
    EXPECT_ACL_OK(aclrtGetDevice(&device));
    EXPECT_EQ(device, 2);
}

TEST_F(StandInDevice, Ascend950) {
    EXPECT_EQ(attribute(101), 36);
    EXPECT_EQ(attribute(102), 36);
    EXPECT_EQ(attribute(201), 72);
    EXPECT_EQ(attribute(202), 32);
    EXPECT_EQ(attribute(204), 221184);
    EXPECT_EQ(attribute(302), 134217728);
    EXPECT_EQ(attribute(601), 3510);
    EXPECT_EQ(attribute(999), -1);
}

TEST_F(StandInDevice, Ascend910B) {
    const ScopedEnv soc("DJ_STAND_IN_CANN_SOC", "Ascend910B3");
    start();
    EXPECT_STREQ(aclrtGetSocName(), "Ascend910B3");
    EXPECT_EQ(attribute(101), 20);
    EXPECT_EQ(attribute(201), 40);
    EXPECT_EQ(attribute(202), 0);
    EXPECT_EQ(attribute(204), 0);
    EXPECT_EQ(attribute(601), 2201);
}

TEST_F(StandInDevice, OlderVersionsKnowLess) {
    EXPECT_EQ(stand_in.version(), 90100);
    for (const auto* version : {"8.5.0", "9.0.0"}) {
        const ScopedEnv older("DJ_STAND_IN_CANN_VERSION", version);
        start();
        EXPECT_EQ(attribute(601), -1) << version;
        EXPECT_EQ(attribute(201), 72) << version;
    }
    const ScopedEnv missing("DJ_STAND_IN_CANN_NO_ATTRIBUTES", "601,204");
    start();
    EXPECT_EQ(attribute(601), -1);
    EXPECT_EQ(attribute(204), -1);
    EXPECT_EQ(attribute(201), 72);
}

TEST_F(StandInDevice, ALibraryOfVersion83LacksTheLaunch) {
    void* library = ::dlopen((toolkit() / "lib64-8.3/libascendcl.so").c_str(), RTLD_NOW);
    ASSERT_NE(library, nullptr) << ::dlerror();
    EXPECT_NE(::dlsym(library, "aclrtBinaryGetFunction"), nullptr);
    EXPECT_NE(::dlsym(library, "aclInit"), nullptr);
    EXPECT_NE(::dlsym(library, "aclGetRecentErrMsg"), nullptr);
    EXPECT_EQ(::dlsym(library, "aclrtLaunchKernelWithHostArgs"), nullptr);
    ::dlclose(library);
}

TEST_F(StandInDevice, ChecksArguments) {
    std::int64_t value = 0;
    EXPECT_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_NPU_ARCH, nullptr), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_NPU_ARCH, &value), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclrtGetDevice(nullptr), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtGetDeviceCount(nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(StandInDevice, MessagesAreOfTheThreadAndReadOnce) {
    EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
    EXPECT_EQ(aclrtSetDevice(17), ACL_ERROR_RT_INVALID_DEVICEID);
    std::thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr); }).join();
    const auto text = message();
    EXPECT_CONTAINS(text, "aclrtSetDevice");
    EXPECT_CONTAINS(text, "107001");
    EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

TEST_F(StandInDevice, AChildOfForkIsRefused) {
    EXPECT_TRUE(run_child([] {
                    std::int32_t device = 0;
                    return aclrtGetDevice(&device) == ACL_ERROR_RT_INTERNAL_ERROR ? 0 : 1;
                }).ok());
}

}  // namespace
