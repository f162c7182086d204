// What the stand-in tells of the launches it was given, and the failures it can be told to have.
#include <cstring>

#include "unit/stand_in_cuda/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInRecord : public KernelsTest {
protected:
    void SetUp() override {
        KernelsTest::SetUp();
        if (!on_stand_in())
            GTEST_SKIP() << "this is not the stand-in";
    }
};

TEST_F(StandInRecord, EveryFieldOfALaunch) {
    CUstream stream = nullptr;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536,
                               kernel("dynamic_smem"), 0));
    CU_OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1,
                               kernel("dynamic_smem"), 0));
    CUlaunchConfig what{4, 3, 2, 64, 2, 1, 50000, stream, nullptr, 0};
    CUlaunchAttribute pdl{};
    pdl.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    pdl.value.programmaticStreamSerializationAllowed = 1;
    CU_OK(launch("dynamic_smem", what, {cluster(2, 1, 2), cooperative(), pdl}));
    ASSERT_EQ(stand_in().launch_count(), 1U);
    const auto record = stand_in().last_launch();
    EXPECT_EQ(record.name, "dynamic_smem");
    const auto is = [](const unsigned(&dim)[3], unsigned x, unsigned y, unsigned z) {
        return dim[0] == x && dim[1] == y && dim[2] == z;
    };
    EXPECT_TRUE(is(record.grid, 4, 3, 2));
    EXPECT_TRUE(is(record.block, 64, 2, 1));
    EXPECT_TRUE(is(record.cluster, 2, 1, 2));
    EXPECT_EQ(record.smem, 50000U);
    EXPECT_EQ(record.stream, stream);
    EXPECT_EQ(record.context, context);
    EXPECT_EQ(record.device, 0);
    EXPECT_EQ(record.cooperative, 1);
    EXPECT_EQ(record.pdl, 1);
    EXPECT_EQ(record.nonportable, 1);
    EXPECT_EQ(record.max_dynamic_smem, 65536);
    EXPECT_EQ(record.captured, 0);
    EXPECT_EQ(record.replayed, 0);
    EXPECT_EQ(record.through_kernel, 1);
    ASSERT_EQ(record.arguments.size(), 1U);
    EXPECT_EQ(record.argument<CUdeviceptr>(0), memory);
    EXPECT_THROW(record.argument<int>(0), std::logic_error);
    EXPECT_THROW(record.argument<int>(1), std::out_of_range);
    EXPECT_THROW(stand_in().launch(1), std::out_of_range);
}

TEST_F(StandInRecord, ArgumentsAreCopiedAtTheLaunch) {
    char a = 7;
    Point p{1.5, -2.5, 3};
    short b = -4;
    Descriptor d{};
    d.bytes[127] = 200;
    int c = 1234567;
    void* params[] = {&a, &p, &b, &d, &c};
    auto what = config();
    CU_OK(cuLaunchKernelEx(&what, reinterpret_cast<CUfunction>(kernel("mixed")), params, nullptr));
    a = 0;
    p.x = c = 0;
    d = {};
    const auto record = stand_in().last_launch();
    ASSERT_EQ(record.num_arguments, 5U);
    EXPECT_EQ(record.argument<char>(0), 7);
    EXPECT_EQ(record.argument<Point>(1).x, 1.5);
    EXPECT_EQ(record.argument<Point>(1).tag, 3);
    EXPECT_EQ(record.argument<short>(2), -4);
    EXPECT_EQ(record.argument<Descriptor>(3).bytes[127], 200);
    EXPECT_EQ(record.argument<int>(4), 1234567);
}

TEST_F(StandInRecord, PackedArgumentsAreTakenApart) {
    struct {
        CUdeviceptr out, in;
        int count;
    } packed{memory, memory + 64, 5};
    std::size_t size = 20;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CUfunction function = nullptr;
    CU_OK(cuKernelGetFunction(&function, kernel("plain")));
    CU_OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra));
    const auto record = stand_in().last_launch();
    EXPECT_EQ(record.argument<CUdeviceptr>(1), memory + 64);
    EXPECT_EQ(record.argument<int>(2), 5);
    EXPECT_EQ(record.through_kernel, 0);
    EXPECT_EQ(record.cooperative, 0);
}

TEST_F(StandInRecord, DeclaredClustersAreRecorded) {
    auto what = config();
    what.gridDimX = 2;
    CU_OK(launch("clustered", what));
    EXPECT_EQ(stand_in().last_launch().cluster[0], 2U);
    CU_OK(launch("bounded", what));
    EXPECT_EQ(stand_in().last_launch().cluster[0], 0U);
}

TEST_F(StandInRecord, RecordingCanBeTurnedOffAndForgotten) {
    stand_in().record(false);
    CU_OK(launch("bounded", config()));
    EXPECT_EQ(stand_in().launch_count(), 1U);
    EXPECT_THROW(stand_in().launch(0), std::out_of_range);
    stand_in().record(true);
    stand_in().reset();
    EXPECT_EQ(stand_in().launch_count(), 0U);
    EXPECT_EQ(stand_in().calls(), 0U);
    EXPECT_EQ(stand_in().live_libraries(), 1U);
    CU_OK(launch("bounded", config()));
    EXPECT_EQ(stand_in().launches().size(), 1U);
}

TEST_F(StandInRecord, CallsAreCountedByNameWithoutVersion) {
    stand_in().reset();
    CUdeviceptr pointer = 0;
    EXPECT_CU_OK(cuMemAlloc(&pointer, 16));
    EXPECT_CU_OK(cuMemFree(pointer));
    EXPECT_EQ(cuMemAlloc(nullptr, 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(stand_in().calls("cuMemAlloc"), 2U);
    EXPECT_EQ(stand_in().calls("cuMemAlloc_v2"), 2U);
    EXPECT_EQ(stand_in().calls("cuMemFree"), 1U);
    EXPECT_EQ(stand_in().calls("cuInit"), 0U);
    EXPECT_EQ(stand_in().calls(), 3U);
}

TEST_F(StandInRecord, FailuresComeWhenTheyAreDue) {
    stand_in().fail("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY, 1);
    stand_in().fail("cuMemAlloc_v2", CUDA_ERROR_ECC_UNCORRECTABLE);
    CUdeviceptr pointer = 0;
    EXPECT_CU_OK(cuMemAlloc(&pointer, 16));
    EXPECT_CU_OK(cuMemFree(pointer));
    pointer = 0;
    EXPECT_EQ(cuMemAlloc(&pointer, 16), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(pointer, 0U);
    EXPECT_EQ(cuMemAlloc(&pointer, 16), CUDA_ERROR_ECC_UNCORRECTABLE);
    EXPECT_CU_OK(cuMemAlloc(&pointer, 16));
    stand_in().fail("cuLaunchKernelEx", CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(launch("bounded", config()), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(stand_in().launch_count(), 0U);
    stand_in().fail("cuLaunchKernelEx", CUDA_ERROR_LAUNCH_FAILED);
    stand_in().reset();
    EXPECT_CU_OK(launch("bounded", config()));
}

}  // namespace
