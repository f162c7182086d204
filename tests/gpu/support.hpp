// What the tests on a GPU share: the device, its memory, streams, and a runtime.
//
// They also run on the stand-in driver, where kernels are compiled, loaded and launched but not
// executed: then results are not compared. DEEP_JIT_REQUIRE_GPU=1 makes that, and a machine
// without a device, a failure.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>
#include <vector>

#include <deep_jit/backend/cuda/backend.hpp>

#include "unit/support.hpp"

namespace deep_jit_gpu_test {

using namespace deep_jit;
using namespace deep_jit_test;
namespace driver = deep_jit::cuda::driver;
using JIT = Runtime<CUDA>;

/// False on the stand-in driver.
inline bool kernels_run() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library == nullptr || ::dlsym(library, "dj_stand_in_cuda_launch_count") == nullptr;
}

/// Why there is nothing to test with; empty when there is.
inline std::string what_is_missing() {
    try {
        cuda::Device().get_index();
        CUDA::find_cuda_toolkit(Env("GPUTEST"));
    } catch (const ToolchainError& error) {
        return error.what();
    }
    return {};
}

/// One cache for the whole program and the processes that it starts: DEEP_JIT_GPU_TEST_CACHE,
/// or a temporary directory.
class Environment : public testing::Environment {
public:
    void SetUp() override {
        // CUDA is not touched here: some tests need a process that has not used it.
        for (const char* name : {"DJ_JIT_ARCH", "DJ_JIT_DEBUG", "DJ_JIT_CACHE_DIR"})
            ::unsetenv(name);
        if (std::getenv("DEEP_JIT_GPU_TEST_CACHE") == nullptr) {
            own_cache_ = std::make_unique<TempDir>("plain");
            ::setenv("DEEP_JIT_GPU_TEST_CACHE", own_cache_->path().c_str(), 1);
        }
        ::setenv("GPUTEST_JIT_CACHE_DIR", std::getenv("DEEP_JIT_GPU_TEST_CACHE"), 1);
    }
    void TearDown() override { own_cache_.reset(); }

private:
    std::unique_ptr<TempDir> own_cache_;
};

inline testing::Environment* const environment = testing::AddGlobalTestEnvironment(new Environment);

/// A runtime, with the primary context of device 0 current.
class GpuTest : public testing::Test {
protected:
    void SetUp() override {
        static const std::string missing = what_is_missing();
        if (get_env<bool>("DEEP_JIT_REQUIRE_GPU", false)) {
            ASSERT_EQ(missing, "");
            ASSERT_TRUE(kernels_run()) << "this is the stand-in driver";
        }
        if (!missing.empty())
            GTEST_SKIP() << missing;
        CUcontext context = nullptr;
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuDevicePrimaryCtxRetain(&context, 0));
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxSetCurrent(context));
        jit = make();
    }

    static std::unique_ptr<JIT> make(std::vector<fs::path> include_dirs = {}) {
        return std::make_unique<JIT>(Config("/", "GPUTEST", "", std::move(include_dirs)));
    }

    std::unique_ptr<JIT> jit;
};

/// Device memory. What was not written since it was made holds 0xab in every byte.
template <typename T>
class DeviceArray {
public:
    explicit DeviceArray(std::size_t count) : count_(count) {
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuMemAlloc(&address_, count * sizeof(T)));
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuMemsetD8(address_, 0xab, count * sizeof(T)));
        // A memset of the default stream returns before it is done, and streams that do not
        // block on it would not wait.
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxSynchronize());
    }
    explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
        DJ_CUDA_DRIVER_CHECK(
            driver::lazy_cuMemcpyHtoD(address_, values.data(), values.size() * sizeof(T)));
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxSynchronize());
    }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    ~DeviceArray() { driver::lazy_cuMemFree(address_); }

    T* get() const { return reinterpret_cast<T*>(address_); }
    const T* cget() const { return get(); }
    CUdeviceptr address() const { return address_; }
    /// Waits for the default stream and those that block on it.
    std::vector<T> download() const {
        std::vector<T> out(count_);
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuMemcpyDtoH(out.data(), address_, count_ * sizeof(T)));
        return out;
    }

private:
    CUdeviceptr address_ = 0;
    std::size_t count_;
};

/// A stream that does not wait for the default stream.
class Stream {
public:
    Stream() {
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { driver::lazy_cuStreamDestroy(stream_); }

    CUstream get() const { return stream_; }
    void synchronize() const { DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamSynchronize(stream_)); }

private:
    CUstream stream_ = nullptr;
};

/// Compares a result with what it should be.
template <typename T>
testing::AssertionResult same(const std::vector<T>& actual, const std::vector<T>& expected) {
    if (actual.size() != expected.size())
        return testing::AssertionFailure()
               << actual.size() << " elements, expected " << expected.size();
    for (std::size_t i = 0; kernels_run() && i < actual.size(); ++i)
        if (!(actual[i] == expected[i]))
            return testing::AssertionFailure()
                   << "element " << i << " is " << actual[i] << ", expected " << expected[i];
    return testing::AssertionSuccess();
}

inline std::vector<int> counting(std::size_t count, int first = 0) {
    std::vector<int> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = first + static_cast<int>(i);
    return out;
}

/// Runs a test of this program in a process of its own, also a disabled one, at most a minute.
inline CommandResult run_alone(const std::string& test) {
    return call_external_command({"timeout", "60", fs::read_symlink("/proc/self/exe").string(),
                                  "--gtest_filter=" + test, "--gtest_also_run_disabled_tests"});
}

}  // namespace deep_jit_gpu_test
