// Streams do their work later and in order, and tell of errors when they are waited for.
#include "unit/stand_in_cann/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInStream : public AclTest {
protected:
    void SetUp() override {
        AclTest::SetUp();
        ACL_OK(aclrtCreateStream(&stream));
        memory = to_device(std::vector<float>(64, 0));
        faults = kernel("faults");
    }
    float first() { return to_host(memory, 1)[0]; }

    aclrtStream stream = nullptr;
    float* memory = nullptr;
    aclrtFuncHandle faults = nullptr;
};

TEST_F(StandInStream, ALaunchReturnsBeforeTheKernelRuns) {
    stand_in.hold();
    {
        auto bytes = pack(memory, 0);  // copied at the call
        ACL_OK(aclrtLaunchKernelWithHostArgs(faults, 1, stream, nullptr, bytes.data(), bytes.size(),
                                             nullptr, 0));
        std::fill(bytes.begin(), bytes.end(), '\xff');
    }
    EXPECT_EQ(first(), 0);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 1), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, -2), ACL_ERROR_RT_PARAM_INVALID);
    stand_in.release();
    ACL_OK(aclrtSynchronizeStream(stream));
    EXPECT_EQ(first(), 42);
}

TEST_F(StandInStream, WorkIsDoneInOrder) {
    auto add = kernel("plain_add");
    auto* ones = to_device(std::vector<float>(64, 1));
    std::vector<float> result(64);
    ACL_OK(aclrtMemsetAsync(memory, 256, 0, 256, stream));
    for (int i = 0; i < 50; ++i) ACL_OK(launch(add, 3, stream, memory, ones, memory, 64));
    ACL_OK(aclrtMemcpyAsync(result.data(), 256, memory, 256, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    ACL_OK(aclrtMemsetAsync(memory, 256, 0, 256, stream));
    ACL_OK(aclrtSynchronizeStream(stream));
    EXPECT_EQ(result, std::vector<float>(64, 50));
    EXPECT_EQ(first(), 0);
}

TEST_F(StandInStream, EventsTieStreamsTogether) {
    aclrtStream other = nullptr;
    aclrtEvent event = nullptr;
    ACL_OK(aclrtCreateStream(&other));
    ACL_OK(aclrtCreateEvent(&event));
    stand_in.hold();
    ACL_OK(launch(faults, 1, stream, memory, 0));
    ACL_OK(aclrtRecordEvent(event, stream));
    ACL_OK(aclrtStreamWaitEvent(other, event));
    float result = 0;
    ACL_OK(aclrtMemcpyAsync(&result, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST, other));
    aclrtEventRecordedStatus status{};
    ACL_OK(aclrtQueryEventStatus(event, &status));
    EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
    stand_in.release();
    ACL_OK(aclrtSynchronizeStream(other));
    EXPECT_EQ(result, 42);
    ACL_OK(aclrtSynchronizeEvent(event));
    ACL_OK(aclrtQueryEventStatus(event, &status));
    EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
    ACL_OK(aclrtDestroyEvent(event));
    EXPECT_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(StandInStream, ATrapIsReportedOnceWhenTheStreamIsWaitedFor) {
    ACL_OK(launch(faults, 4, stream, memory, 1));
    ACL_OK(launch(faults, 1, stream, memory, 0));
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
    const auto text = message();
    EXPECT_CONTAINS(text, "faults");
    EXPECT_CONTAINS(text, "trap");
    EXPECT_EQ(first(), 42) << "what follows runs all the same";
    EXPECT_ACL_OK(aclrtSynchronizeStream(stream));
}

TEST_F(StandInStream, WaitingForTheDeviceTellsAStreamsError) {
    ACL_OK(launch(faults, 1, stream, memory, 2));
    EXPECT_ACL_OK(aclrtSynchronizeStream(nullptr));
    EXPECT_EQ(aclrtSynchronizeDevice(), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
    EXPECT_CONTAINS(message(), "out of range");
    EXPECT_ACL_OK(aclrtSynchronizeDevice());
}

TEST_F(StandInStream, WrongUseOfQueuesIsAnError) {
    ACL_OK(launch(faults, 1, stream, memory, 3));
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
    EXPECT_CONTAINS(message(), "the queue is empty");
}

TEST_F(StandInStream, AnEndlessKernelEndsAtItsTimeout) {
    ACL_OK(launch_with({timeout_us(20'000)}, faults, 3, memory, 4));
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_VECTOR_CORE_TIMEOUT);
    EXPECT_CONTAINS(message(), "timeout");
    ACL_OK(launch_with({timeout_us(20'000)}, faults, 1, memory, 0));
    EXPECT_ACL_OK(aclrtSynchronizeStream(nullptr));
}

TEST_F(StandInStream, AFunctionThatIsNoKernelFails) {
    auto helper = load(build("void helper(int* p) { ++*p; }\n"
                             "extern \"C\" __global__ __aicore__ void k(__gm__ int* p) "
                             "{ helper(p); }\n"),
                       "_Z6helperPi");
    ACL_OK(launch(helper, 1, stream, memory));
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICORE_EXCEPTION);
    EXPECT_CONTAINS(message(), "not a kernel");
}

TEST_F(StandInStream, DynamicBufferThatNobodyGave) {
    ACL_OK(launch(kernel("simt_reverse"), 1, stream, memory, memory, 8u));
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_VECTOR_CORE_EXCEPTION);
    EXPECT_CONTAINS(message(), "dynamic UB");
}

TEST_F(StandInStream, ADestroyedStreamHasDoneItsWork) {
    ACL_OK(launch(faults, 1, stream, memory, 0));
    EXPECT_EQ(stand_in.live_streams(), 1u);
    ACL_OK(aclrtDestroyStream(stream));
    EXPECT_EQ(stand_in.live_streams(), 0u);
    EXPECT_EQ(first(), 42);
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
    EXPECT_EQ(aclrtDestroyStream(nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(StandInStream, UnloadingDoesNotTakeTheCodeOfARunningKernel) {
    stand_in.hold();
    ACL_OK(launch(faults, 1, stream, memory, 0));
    ACL_OK(aclrtBinaryUnLoad(binary));
    stand_in.release();
    ACL_OK(aclrtSynchronizeStream(stream));
    EXPECT_EQ(first(), 42);
}

}  // namespace
