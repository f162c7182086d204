// What ACL loads, and what it finds in it.
#include "unit/stand_in_cann/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInLoad : public AclTest {
protected:
    aclError try_load(const std::string& bytes) {
        return aclrtBinaryLoadFromData(bytes.data(), bytes.size(), nullptr, &binary);
    }
    aclError look_up(const char* name) {
        aclrtFuncHandle function = nullptr;
        return aclrtBinaryGetFunction(binary, name, &function);
    }
};

TEST_F(StandInLoad, RefusesWhatIsNoDeviceObject) {
    EXPECT_EQ(try_load("not an object"), ACL_ERROR_RT_PARAM_INVALID);
    auto of_the_host = kernel_object("plain_add");
    of_the_host[18] = 62;
    of_the_host[19] = 0;
    EXPECT_EQ(try_load(of_the_host), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_CONTAINS(message(), "AI Core");
    auto cut = kernel_object("plain_add");
    cut.resize(cut.size() / 2);
    EXPECT_EQ(try_load(cut), ACL_ERROR_RT_PARAM_INVALID);
    auto not_linked = kernel_object("plain_add");
    not_linked[16] = 1;  // ET_REL
    EXPECT_EQ(try_load(not_linked), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclrtBinaryLoadFromData(nullptr, 8, nullptr, &binary), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(stand_in.live_binaries(), 0u);
}

TEST_F(StandInLoad, NeedsAKernel) {
    EXPECT_EQ(try_load(build("constexpr int nothing = 0;\n")), ACL_ERROR_RT_INTERNAL_ERROR);
    EXPECT_CONTAINS(message(), "no kernel");
}

TEST_F(StandInLoad, RefusesAnotherArchitecture) {
    EXPECT_EQ(try_load(build(kernel_source("plain_add"), "dav-2201")), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_CONTAINS(message(), "compiled for dav-2201, the device is a dav-3510");
}

TEST_F(StandInLoad, FindsByName) {
    ACL_OK(try_load(kernel_object("mix_scale")));
    EXPECT_ACL_OK(look_up("mix_scale"));
    EXPECT_EQ(look_up("mix_scale_mix_aic"), ACL_ERROR_RT_INTERNAL_ERROR);
    EXPECT_EQ(look_up("mix"), ACL_ERROR_RT_INTERNAL_ERROR);
    EXPECT_CONTAINS(message(), "no kernel mix");
    EXPECT_EQ(look_up(nullptr), ACL_ERROR_INVALID_PARAM);
    aclrtFuncHandle function = nullptr;
    EXPECT_EQ(aclrtBinaryGetFunction(nullptr, "mix_scale", &function), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtBinaryGetFunction(&function, "mix_scale", &function),
              ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(StandInLoad, TellsAFunctionsName) {
    auto function = kernel("mix_scale");
    char name[16] = {};
    EXPECT_ACL_OK(aclrtGetFunctionName(function, sizeof(name), name));
    EXPECT_STREQ(name, "mix_scale");
    EXPECT_EQ(aclrtGetFunctionName(function, 4, name), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(StandInLoad, LookUpNeedsADevice) {
    ACL_OK(try_load(kernel_object("plain_add")));
    ACL_OK(aclrtResetDevice(0));
    EXPECT_EQ(look_up("plain_add"), ACL_ERROR_RT_CONTEXT_NULL);
}

TEST_F(StandInLoad, FromAFile) {
    const TempDir directory;
    write(directory / "kernel.o", kernel_object("plain_add"));
    EXPECT_ACL_OK(aclrtBinaryLoadFromFile((directory / "kernel.o").c_str(), nullptr, &binary));
    EXPECT_ACL_OK(look_up("plain_add"));
    EXPECT_EQ(aclrtBinaryLoadFromFile((directory / "none.o").c_str(), nullptr, &binary),
              ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(StandInLoad, NothingIsLeftOfAnUnloadedBinary) {
    auto function = kernel("plain_add");
    EXPECT_EQ(stand_in.live_binaries(), 1u);
    EXPECT_ACL_OK(aclrtBinaryUnLoad(binary));
    EXPECT_EQ(stand_in.live_binaries(), 0u);
    EXPECT_EQ(stand_in.binary_loads(), 1u);
    EXPECT_EQ(aclrtBinaryUnLoad(binary), ACL_ERROR_RT_INVALID_HANDLE);
    EXPECT_EQ(look_up("plain_add"), ACL_ERROR_RT_INVALID_HANDLE);
    float* none = nullptr;
    EXPECT_EQ(launch(function, 1, nullptr, none, none, none, 0), ACL_ERROR_RT_INVALID_HANDLE);
}

}  // namespace
