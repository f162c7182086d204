// CUDA graphs: launches of loaded kernels are captured; loading in the middle of a capture works
// or says what to do.
#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

constexpr int kSize = 16 * 128;

std::string add_source(int value) {
    return "extern \"C\" __global__ void add(int* data) {\n"
           "    data[blockIdx.x * blockDim.x + threadIdx.x] += " +
           std::to_string(value) + ";\n}\n";
}

/// A stream that is being captured, until the end of the test.
class Capture {
public:
    Capture() { begin(); }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    ~Capture() {
        end();
        if (runnable_ != nullptr)
            driver::lazy_cuGraphExecDestroy(runnable_);
        if (graph_ != nullptr)
            driver::lazy_cuGraphDestroy(graph_);
    }

    CUstream stream() const { return stream_.get(); }
    CUresult end() {
        if (!capturing_)
            return CUDA_SUCCESS;
        capturing_ = false;
        return driver::lazy_cuStreamEndCapture(stream(), &graph_);
    }
    void replay(int times) {
        DJ_CUDA_DRIVER_CHECK(end());
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuGraphInstantiate(&runnable_, graph_, 0));
        for (int i = 0; i < times; ++i)
            DJ_CUDA_DRIVER_CHECK(driver::lazy_cuGraphLaunch(runnable_, stream()));
        stream_.synchronize();
    }

private:
    void begin() {
        DJ_CUDA_DRIVER_CHECK(
            driver::lazy_cuStreamBeginCapture(stream(), CU_STREAM_CAPTURE_MODE_GLOBAL));
        capturing_ = true;
    }

    Stream stream_;
    bool capturing_ = false;
    CUgraph graph_ = nullptr;
    CUgraphExec runnable_ = nullptr;
};

class GpuGraph : public GpuTest {
protected:
    void launch(const std::shared_ptr<cuda::Kernel>& kernel, CUstream stream,
                const DeviceArray<int>& data, int smem = 0) {
        jit->launch(kernel,
                    {.stream = stream,
                     .num_smem_bytes = smem,
                     .grid_dim = dim3(16),
                     .block_dim = dim3(128)},
                    data.get());
    }
};

TEST_F(GpuGraph, LaunchesAreCapturedAndReplayed) {
    const auto one = jit->compile("add", add_source(1));
    const auto hundred = jit->compile("add", add_source(100));
    const DeviceArray<int> data(counting(kSize));
    Capture capture;
    launch(one, capture.stream(), data);
    launch(hundred, capture.stream(), data);
    // From memory, which is as good as holding it.
    launch(jit->compile("add", add_source(1)), capture.stream(), data);
    DJ_CUDA_DRIVER_CHECK(capture.end());
    EXPECT_TRUE(same(data.download(), counting(kSize)));
    capture.replay(5);
    EXPECT_TRUE(same(data.download(), counting(kSize, 5 * 102)));
}

CUstream captured = nullptr;

TEST_F(GpuGraph, TheCurrentStreamIsCaptured) {
    const auto kernel = jit->compile("add", add_source(7));
    const DeviceArray<int> data(counting(kSize));
    Capture capture;
    captured = capture.stream();
    cuda::set_current_stream_provider([] { return captured; });
    jit->launch(kernel, {.grid_dim = dim3(16), .block_dim = dim3(128)}, data.get());
    cuda::set_current_stream_provider(nullptr);
    capture.replay(3);
    EXPECT_TRUE(same(data.download(), counting(kSize, 21)));
}

TEST_F(GpuGraph, TheFirstLaunchWithMuchSharedMemoryIsCaptured) {
    const auto kernel = jit->compile("add", add_source(3));
    const DeviceArray<int> data(counting(kSize));
    Capture capture;
    launch(kernel, capture.stream(), data, 100 * 1024);
    capture.replay(2);
    EXPECT_TRUE(same(data.download(), counting(kSize, 6)));
}

TEST_F(GpuGraph, ClustersAndCooperativeLaunchesAreCaptured) {
    const auto kernel = jit->compile("add", add_source(2));
    const DeviceArray<int> data(counting(kSize));
    Capture capture;
    jit->launch(kernel,
                {.stream = capture.stream(),
                 .grid_dim = dim3(16),
                 .block_dim = dim3(128),
                 .cluster_dim = dim3(4)},
                data.get());
    jit->launch(kernel,
                {.stream = capture.stream(),
                 .grid_dim = dim3(16),
                 .block_dim = dim3(128),
                 .cooperative = true},
                data.get());
    capture.replay(4);
    EXPECT_TRUE(same(data.download(), counting(kSize, 16)));
}

TEST_F(GpuGraph, LoadingDuringACaptureWorksOrSaysWhatToDo) {
    // In the disk cache, so that only the loading falls into the capture.
    const auto source = add_source(11);
    make()->compile_without_load("add", source);
    const DeviceArray<int> data(counting(kSize));
    Capture capture;
    std::string refusal;
    try {
        launch(jit->compile("add", source), capture.stream(), data);
    } catch (const LoadError& error) {
        refusal = error.what();
    }
    RecordProperty("loading_during_capture", refusal.empty() ? "works" : refusal);
    if (refusal.empty()) {
        capture.replay(2);
        EXPECT_TRUE(same(data.download(), counting(kSize, 22)));
        return;
    }
    EXPECT_CONTAINS(refusal, "add." + jit->cache_key(source));
    EXPECT_CONTAINS(refusal, "before the capture begins");
    capture.end();
    // Nothing is spoilt for later.
    launch(jit->compile("add", source), nullptr, data);
    EXPECT_TRUE(same(data.download(), counting(kSize, 11)));
}

}  // namespace
