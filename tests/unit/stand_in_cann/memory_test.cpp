// Device memory has borders, and copies have kinds.
#include "unit/stand_in_cann/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInMemory : public AclTest {
protected:
    void SetUp() override {
        AclTest::SetUp();
        ACL_OK(aclrtMalloc(&device, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    }
    void* device = nullptr;
    char host[128] = {};
};

TEST_F(StandInMemory, CopiesThereAndBack) {
    for (std::size_t i = 0; i < 64; ++i) host[i] = static_cast<char>(i);
    ACL_OK(aclrtMemcpy(device, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE));
    void* other = nullptr;
    ACL_OK(aclrtMalloc(&other, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
    ACL_OK(aclrtMemcpy(other, 64, device, 64, ACL_MEMCPY_DEVICE_TO_DEVICE));
    ACL_OK(aclrtMemset(device, 64, 0, 64));
    ACL_OK(aclrtMemcpy(host + 64, 64, other, 64, ACL_MEMCPY_DEFAULT));
    EXPECT_EQ(std::string(host, 64), std::string(host + 64, 64));
    EXPECT_EQ(stand_in.live_allocations(), 2u);
}

TEST_F(StandInMemory, CopiesAreChecked) {
    const auto copy = [](void* to, std::size_t room, const void* from, std::size_t count,
                         aclrtMemcpyKind kind) { return aclrtMemcpy(to, room, from, count, kind); };
    EXPECT_EQ(copy(device, 64, nullptr, 64, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(copy(device, 63, host, 64, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(copy(device, 64, host, 0, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(copy(device, 65, host, 65, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_CONTAINS(message(), "leaves the memory");
    EXPECT_EQ(copy(device, 64, host, 64, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_CONTAINS(message(), "kind of copy");
    EXPECT_EQ(copy(host, 64, device, 64, ACL_MEMCPY_HOST_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(copy(host, 64, host + 64, 64, static_cast<aclrtMemcpyKind>(9)),
              ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(aclrtMemset(device, 64, 0, 65), ACL_ERROR_RT_PARAM_INVALID);
}

TEST_F(StandInMemory, AllocationsAreChecked) {
    void* out = nullptr;
    EXPECT_EQ(aclrtMalloc(&out, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtFree(nullptr), ACL_ERROR_INVALID_PARAM);
    EXPECT_EQ(aclrtFree(host), ACL_ERROR_RT_PARAM_INVALID);
    ACL_OK(aclrtFree(device));
    EXPECT_EQ(aclrtFree(device), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_EQ(stand_in.live_allocations(), 0u);
    ACL_OK(aclrtMallocHost(&out, 8));
    EXPECT_EQ(aclrtFree(out), ACL_ERROR_RT_PARAM_INVALID);
    ACL_OK(aclrtFreeHost(out));
    EXPECT_EQ(aclrtFreeHost(out), ACL_ERROR_RT_PARAM_INVALID);
}

}  // namespace
