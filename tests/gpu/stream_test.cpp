// Which stream a launch goes to: the one it names, the one of the provider, the default one.
#include <chrono>
#include <optional>
#include <thread>

#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

constexpr const char* kSet = R"(
extern "C" __global__ void set(int* data, int value) { *data = value; }
)";

/// Holds a stream back until it is opened.
class Gate {
public:
    explicit Gate(CUstream stream) : stream_(stream), flag_(std::vector<int>{0}) {
        DJ_CUDA_DRIVER_CHECK(
            driver::lazy_cuStreamWaitValue32(stream, flag_.address(), 1, CU_STREAM_WAIT_VALUE_EQ));
    }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;
    ~Gate() { open(); }

    void open() {
        driver::lazy_cuMemsetD32Async(flag_.address(), 1, 1, opener_.get());
        driver::lazy_cuStreamSynchronize(opener_.get());
        driver::lazy_cuStreamSynchronize(stream_);
    }

private:
    CUstream stream_;
    Stream opener_;
    DeviceArray<int> flag_;
};

CUstream provided = nullptr;

/// While it lives, launches that name no stream go to `stream`.
class ScopedProvider {
public:
    explicit ScopedProvider(CUstream stream) {
        provided = stream;
        cuda::set_current_stream_provider([] { return provided; });
    }
    ScopedProvider(const ScopedProvider&) = delete;
    ScopedProvider& operator=(const ScopedProvider&) = delete;
    ~ScopedProvider() { cuda::set_current_stream_provider(nullptr); }
};

class GpuStream : public GpuTest {
protected:
    void SetUp() override {
        GpuTest::SetUp();
        if (IsSkipped())
            return;
        if (!kernels_run())
            GTEST_SKIP() << "the stand-in cannot hold a stream back";
        data.emplace(1);
        a.emplace();
        b.emplace();
        reader.emplace();
    }

    int read_now() const {
        int out = 0;
        DJ_CUDA_DRIVER_CHECK(
            driver::lazy_cuMemcpyDtoHAsync(&out, data->address(), sizeof(out), reader->get()));
        reader->synchronize();
        return out;
    }

    /// True when a launch with these options waits for what is in `stream`.
    bool goes_to(CUstream stream, cuda::LaunchOptions options = {}) {
        options.grid_dim = options.block_dim = dim3(1);
        const auto kernel = jit->compile("set", kSet);
        const int before = ++value, after = ++value;
        // The kernel is on the device before anything has to wait.
        jit->launch(kernel, options, data->get(), before);
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxSynchronize());
        EXPECT_EQ(read_now(), before);

        Gate gate(stream);
        jit->launch(kernel, options, data->get(), after);
        // In another stream it would be done by then.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const bool waited = read_now() == before;
        gate.open();
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxSynchronize());
        EXPECT_EQ(read_now(), after);
        return waited;
    }

    std::optional<DeviceArray<int>> data;
    std::optional<Stream> a, b, reader;
    int value = 0;
};

TEST_F(GpuStream, TheOneThatIsNamed) {
    EXPECT_TRUE(goes_to(a->get(), {.stream = a->get()}));
    EXPECT_TRUE(goes_to(b->get(), {.stream = b->get()}));
    EXPECT_FALSE(goes_to(a->get(), {.stream = b->get()}));
}

TEST_F(GpuStream, WithoutAnyTheDefaultStream) {
    EXPECT_TRUE(goes_to(nullptr));
    EXPECT_FALSE(goes_to(a->get()));
}

TEST_F(GpuStream, TheProvidersAndANamedOneBeforeThat) {
    const ScopedProvider provider(a->get());
    EXPECT_TRUE(goes_to(a->get()));
    EXPECT_TRUE(goes_to(b->get(), {.stream = b->get()}));
    // Null is a stream as well: the default one.
    EXPECT_TRUE(goes_to(nullptr, {.stream = nullptr}));
    EXPECT_FALSE(goes_to(a->get(), {.stream = nullptr}));
}

TEST_F(GpuStream, TheLibrarysDefaultBeforeTheProviders) {
    const ScopedProvider provider(a->get());
    jit->default_launch_options.stream = b->get();
    EXPECT_TRUE(goes_to(b->get()));
    EXPECT_FALSE(goes_to(a->get()));
}

}  // namespace
