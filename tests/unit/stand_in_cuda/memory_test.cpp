// Memory, streams and events: as much as tests of kernels need around them.
#include "unit/stand_in_cuda/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInMemory : public StandInTest {};

TEST_F(StandInMemory, CopiesAndFillsAreDone) {
    CUdeviceptr a = 0, b = 0;
    CU_OK(cuMemAlloc(&a, 4096));
    CU_OK(cuMemAlloc(&b, 4096));
    EXPECT_EQ(a % 256, 0U);
    std::vector<int> in(1024), out(1024, -1);
    for (int i = 0; i < 1024; ++i) in[static_cast<std::size_t>(i)] = i * 3;
    CU_OK(cuMemcpyHtoD(a, in.data(), 4096));
    CU_OK(cuMemcpyDtoD(b, a, 4096));
    CU_OK(cuMemsetD32(b + 8, 77, 2));
    CU_OK(cuMemsetD8(b + 4095, 0xff, 1));
    CU_OK(cuMemcpyDtoH(out.data(), b, 4096));
    in[2] = in[3] = 77;
    in[1023] = static_cast<int>((1023U * 3 & 0x00ffffffU) | 0xff000000U);
    EXPECT_EQ(out, in);
    EXPECT_CU_OK(cuMemFree(a));
    EXPECT_CU_OK(cuMemFree(b));
}

TEST_F(StandInMemory, WhatLeavesAnAllocationIsRefused) {
    NEEDS_STAND_IN();
    CUdeviceptr pointer = 0;
    CU_OK(cuMemAlloc(&pointer, 100));
    char bytes[200] = {};
    EXPECT_CU_OK(cuMemcpyHtoD(pointer + 50, bytes, 50));
    EXPECT_EQ(cuMemcpyHtoD(pointer + 51, bytes, 50), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemcpyDtoH(bytes, pointer, 101), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD8(pointer + 100, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemsetD32(pointer + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFree(pointer + 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU_OK(cuMemFree(pointer));
    EXPECT_EQ(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CU_OK(cuMemFree(0));
    EXPECT_EQ(stand_in().live_allocations(), 0U);
}

TEST_F(StandInMemory, StreamsHaveFlagsPrioritiesAndAContext) {
    CUstream stream = nullptr;
    CU_OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1));
    unsigned flags = 0;
    int priority = 0;
    CUcontext of = nullptr;
    EXPECT_CU_OK(cuStreamGetFlags(stream, &flags));
    EXPECT_CU_OK(cuStreamGetPriority(stream, &priority));
    EXPECT_CU_OK(cuStreamGetCtx(stream, &of));
    EXPECT_EQ(flags, CU_STREAM_NON_BLOCKING);
    EXPECT_EQ(priority, -1);
    EXPECT_EQ(of, context);
    EXPECT_CU_OK(cuStreamQuery(stream));
    EXPECT_CU_OK(cuStreamDestroy(stream));
    if (on_stand_in()) {
        EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
    }
}

TEST_F(StandInMemory, EventsTakeTime) {
    CUevent first = nullptr, last = nullptr;
    CU_OK(cuEventCreate(&first, CU_EVENT_DEFAULT));
    CU_OK(cuEventCreate(&last, CU_EVENT_DEFAULT));
    float milliseconds = -1;
    EXPECT_EQ(cuEventElapsedTime(&milliseconds, first, last), CUDA_ERROR_INVALID_HANDLE);
    CU_OK(cuEventRecord(first, nullptr));
    CU_OK(cuEventRecord(last, nullptr));
    CU_OK(cuEventSynchronize(last));
    EXPECT_CU_OK(cuEventQuery(last));
    CU_OK(cuEventElapsedTime(&milliseconds, first, last));
    EXPECT_GE(milliseconds, 0);
    EXPECT_CU_OK(cuEventDestroy(first));
    EXPECT_CU_OK(cuEventDestroy(last));
}

}  // namespace
