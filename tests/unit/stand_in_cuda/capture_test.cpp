// Stream capture: launches become nodes, and what would disturb a capture is refused.
#include <functional>
#include <thread>

#include "unit/stand_in_cuda/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInCapture : public KernelsTest {
protected:
    void SetUp() override {
        KernelsTest::SetUp();
        if (IsSkipped() || HasFatalFailure())
            return;
        CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    }
    void TearDown() override {
        if (stream != nullptr)
            cuStreamDestroy(stream);
        KernelsTest::TearDown();
    }

    void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
        CU_OK(cuStreamBeginCapture(stream, mode));
    }
    CUresult end() { return cuStreamEndCapture(stream, &graph); }
    CUresult launch_in(CUstream where) {
        auto what = config();
        what.hStream = where;
        return launch("bounded", what);
    }
    static CUresult load(CUlibrary* out) {
        const auto cubin = cubin_of(kKernels);
        return cuLibraryLoadData(out, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    }
    CUstreamCaptureStatus status() const {
        CUstreamCaptureStatus out{};
        EXPECT_CU_OK(cuStreamIsCapturing(stream, &out));
        return out;
    }
    std::size_t nodes() const {
        std::size_t count = 0;
        EXPECT_CU_OK(cuGraphGetNodes(graph, nullptr, &count));
        return count;
    }

    CUstream stream = nullptr;
    CUgraph graph = nullptr;
};

TEST_F(StandInCapture, ALaunchBecomesANodeThatCanBeReplayed) {
    CU_OK(launch_in(stream));  // so that the code is on the device
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemsetD8(memory, 0, 128));
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_NONE);
    begin();
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_CU_OK(launch_in(stream));
    EXPECT_CU_OK(launch_in(stream));
    CU_OK(end());
    EXPECT_EQ(nodes(), 2U);
    CUgraphNode all[2] = {};
    std::size_t count = 2;
    CU_OK(cuGraphGetNodes(graph, all, &count));
    CUgraphNodeType type{};
    EXPECT_CU_OK(cuGraphNodeGetType(all[1], &type));
    EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);
    CUgraphExec exec = nullptr;
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    EXPECT_CU_OK(cuGraphDestroy(graph));
    EXPECT_CU_OK(cuGraphLaunch(exec, stream));
    EXPECT_CU_OK(cuStreamSynchronize(stream));
    EXPECT_CU_OK(cuGraphExecDestroy(exec));
    if (!on_stand_in())
        return;
    ASSERT_EQ(stand_in().launch_count(), 5U);
    const auto captured = stand_in().launch(1), replayed = stand_in().launch(3);
    EXPECT_EQ(captured.captured, 1);
    EXPECT_EQ(captured.replayed, 0);
    EXPECT_EQ(replayed.captured, 0);
    EXPECT_EQ(replayed.replayed, 1);
    EXPECT_EQ(replayed.argument<CUdeviceptr>(0), memory);
}

TEST_F(StandInCapture, CopiesAndFillsRunAtTheReplay) {
    int out = 1;
    CU_OK(cuMemsetD32(memory, 5, 4));
    begin();
    EXPECT_CU_OK(cuMemsetD32Async(memory, 9, 4, stream));
    EXPECT_CU_OK(cuMemcpyDtoDAsync(memory + 64, memory, 16, stream));
    CU_OK(end());
    CU_OK(cuMemcpyDtoH(&out, memory, 4));
    EXPECT_EQ(out, 5);
    CUgraphExec exec = nullptr;
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuStreamSynchronize(stream));
    CU_OK(cuMemcpyDtoH(&out, memory + 64, 4));
    EXPECT_EQ(out, 9);
    EXPECT_CU_OK(cuGraphExecDestroy(exec));
    EXPECT_CU_OK(cuGraphDestroy(graph));
}

TEST_F(StandInCapture, UnsafeCallsAreRefusedAndSpoilTheCapture) {
    CUdeviceptr pointer = 0;
    begin();
    EXPECT_EQ(cuMemAlloc(&pointer, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(launch_in(stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_CU_OK(launch_in(stream));
}

TEST_F(StandInCapture, RelaxedCapturesAllowThem) {
    CUdeviceptr pointer = 0;
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_CU_OK(cuMemAlloc(&pointer, 16));
    EXPECT_CU_OK(cuMemFree(pointer));
    CU_OK(end());
    EXPECT_CU_OK(cuGraphDestroy(graph));
    // A thread can exempt itself.
    auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    begin();
    CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_CU_OK(cuMemAlloc(&pointer, 16));
    EXPECT_CU_OK(cuMemFree(pointer));
    CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
    CU_OK(end());
    EXPECT_CU_OK(cuGraphDestroy(graph));
}

TEST_F(StandInCapture, OtherThreadsAreHeldToGlobalCapturesOnly) {
    const auto in_other_thread = [&] {
        CUresult code = CUDA_SUCCESS;
        std::thread([&] {
            CUdeviceptr pointer = 0;
            cuCtxSetCurrent(context);
            code = cuMemAlloc(&pointer, 16);
            if (code == CUDA_SUCCESS)
                cuMemFree(pointer);
        }).join();
        return code;
    };
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    EXPECT_CU_OK(in_other_thread());
    CU_OK(end());
    EXPECT_CU_OK(cuGraphDestroy(graph));
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_EQ(in_other_thread(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(StandInCapture, LibrariesCanBeLoadedAndUsedButNotUnloaded) {
    CUlibrary more = nullptr;
    begin();
    CU_OK(load(&more));
    std::swap(library, more);
    EXPECT_CU_OK(launch_in(stream));
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_EQ(cuLibraryUnload(more), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // A thread that says it knows what it does may.
    auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    begin();
    CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_CU_OK(cuLibraryUnload(more));
    CU_OK(cuThreadExchangeStreamCaptureMode(&mode));
    CU_OK(end());
    EXPECT_CU_OK(cuGraphDestroy(graph));
}

TEST_F(StandInCapture, OlderDriversRefuseToLoad) {
    NEEDS_STAND_IN();
    const ScopedEnv strict("DJ_STAND_IN_CUDA_STRICT_CAPTURE", "1");
    restart();
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUlibrary more = nullptr;
    begin();
    EXPECT_EQ(load(&more), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(more, nullptr);
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_CU_OK(load(&more));
    CU_OK(end());
}

TEST_F(StandInCapture, AttributesCanBeSetInACapture) {
    begin();
    EXPECT_CU_OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536,
                                      kernel("dynamic_smem"), 0));
    auto what = config();
    what.hStream = stream;
    what.sharedMemBytes = 65536;
    EXPECT_CU_OK(launch("dynamic_smem", what));
    CU_OK(end());
    EXPECT_EQ(nodes(), 1U);
    EXPECT_CU_OK(cuGraphDestroy(graph));
}

TEST_F(StandInCapture, TheLegacyStreamWouldWaitForABlockingStream) {
    CUstream blocking = nullptr;
    CU_OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    std::swap(stream, blocking);
    begin();
    EXPECT_EQ(launch_in(nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin();
    EXPECT_EQ(cuMemsetD8(memory, 0, 4), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    std::swap(stream, blocking);
    EXPECT_CU_OK(cuStreamDestroy(blocking));
    begin();
    int out = 0;
    EXPECT_CU_OK(launch_in(nullptr));  // not for a non-blocking one
    EXPECT_CU_OK(cuMemcpyDtoH(&out, memory, 4));
    CU_OK(end());
    EXPECT_CU_OK(cuGraphDestroy(graph));
    EXPECT_EQ(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_F(StandInCapture, OtherStreamsJoinByEvents) {
    CUstream side = nullptr;
    CUevent event = nullptr;
    CU_OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    const auto fork = [&] {
        begin();
        CU_OK(cuEventRecord(event, stream));
        CU_OK(cuStreamWaitEvent(side, event, 0));
        CU_OK(launch_in(side));
    };
    fork();
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    fork();
    CU_OK(cuEventRecord(event, side));
    CU_OK(cuStreamWaitEvent(stream, event, 0));
    CU_OK(end());
    EXPECT_EQ(nodes(), 1U);
    EXPECT_CU_OK(cuGraphDestroy(graph));
    EXPECT_CU_OK(cuEventDestroy(event));
    EXPECT_CU_OK(cuStreamDestroy(side));
}

TEST_F(StandInCapture, IsEndedByTheThreadThatBeganIt) {
    begin();
    CUresult code = CUDA_SUCCESS;
    std::thread([&] {
        cuCtxSetCurrent(context);
        code = end();
    }).join();
    EXPECT_EQ(code, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(status(), CU_STREAM_CAPTURE_STATUS_NONE);  // over nevertheless
    EXPECT_EQ(end(), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(StandInCapture, NothingIsWaitedForInACapture) {
    CUstream other = nullptr;
    CUevent event = nullptr;
    CU_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
    CU_OK(cuEventRecord(event, other));
    const std::pair<const char*, std::function<CUresult()>> calls[] = {
        {"the stream", [&] { return cuStreamSynchronize(stream); }},
        {"another stream", [&] { return cuStreamSynchronize(other); }},
        {"its state", [&] { return cuStreamQuery(other); }},
        {"the default stream", [&] { return cuStreamSynchronize(nullptr); }},
        {"an event", [&] { return cuEventSynchronize(event); }},
        {"its state", [&] { return cuEventQuery(event); }},
        {"the context", [&] { return cuCtxSynchronize(); }},
    };
    for (const auto& [what, call] : calls) {
        begin();
        EXPECT_EQ(call(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << what;
        EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) << what;
    }
    EXPECT_CU_OK(cuEventDestroy(event));
    EXPECT_CU_OK(cuStreamDestroy(other));
}

TEST_F(StandInCapture, AGraphOfAnUnloadedLibraryIsRefused) {
    NEEDS_STAND_IN();  // the real driver would run what is no longer there
    begin();
    CU_OK(launch_in(stream));
    CU_OK(end());
    CUgraphExec exec = nullptr;
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
    CU_OK(cuLibraryUnload(library));
    library = nullptr;
    EXPECT_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
