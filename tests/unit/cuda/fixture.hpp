// What the tests that run on the stand-in driver share.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <deep_jit/backend/cuda/backend.hpp>

#include "stand_in/cuda/stand_in_cuda.hpp"
#include "unit/cuda/cubins.hpp"
#include "unit/support.hpp"

namespace deep_jit_test {

using JIT = deep_jit::Runtime<deep_jit::CUDA>;
namespace driver = deep_jit::cuda::driver;

/// A started program, a cache of its own, and devices to choose. Skipped where libcuda.so.1 is
/// not the stand-in, or where there is no NVCC.
class CudaStandIn : public testing::Test {
protected:
    void SetUp() override {
        void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr || ::dlsym(library, "dj_stand_in_cuda_launch_count") == nullptr)
            GTEST_SKIP() << "libcuda.so.1 is not the stand-in";
        if (!have_nvcc())
            GTEST_SKIP() << "there is no NVCC";
        stand_in = std::make_unique<stand_in::StandInCuda>(library);
        cache.set((temp / "cache").string());
        log.set((temp / "log").string());
        restart("9.0");
    }

    /// As a new process that sees these devices.
    void restart(const char* list) const {
        devices.set(list);
        stand_in->restart();
        driver::detail::initialized.store(false);
        deep_jit::cuda::set_current_stream_provider(nullptr);
    }

    deep_jit::Config config() const { return deep_jit::Config(temp.path(), "CUDATEST"); }

    /// The kernel of `source`. Does not go through a runtime or its cache.
    static std::shared_ptr<deep_jit::cuda::Kernel> load(const std::string& source,
                                                        const std::string& arch = "90a") {
        return deep_jit::cuda::Kernel::load(cubin_of(source, arch), "test.key");
    }

    /// Makes the primary context of a device current, as a program that uses CUDA does.
    static CUcontext use_device(int device) {
        driver::initialize();
        CUcontext out = nullptr;
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuDevicePrimaryCtxRetain(&out, device));
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxSetCurrent(out));
        return out;
    }
    static CUcontext current_context() {
        CUcontext out = nullptr;
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxGetCurrent(&out));
        return out;
    }
    static CUstream make_stream() {
        CUstream out = nullptr;
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamCreate(&out, CU_STREAM_NON_BLOCKING));
        return out;
    }

    std::string logged() const { return fs::exists(temp / "log") ? slurp(temp / "log") : ""; }

    TempDir temp;
    std::unique_ptr<stand_in::StandInCuda> stand_in;
    mutable ScopedEnv devices{"DJ_STAND_IN_CUDA_DEVICES"};
    ScopedEnv cache{"CUDATEST_JIT_CACHE_DIR"}, log{"CUDATEST_JIT_LOG_FILE"};
    ScopedEnv arch{"CUDATEST_JIT_ARCH"};
};

/// An NVCC that copies a ready CUBIN and notes that it ran: it takes no time and can be watched.
class FakeNvcc {
public:
    explicit FakeNvcc(const std::string& cubin) { produce(cubin); }

    /// From now on, what it makes.
    void produce(const std::string& cubin) const {
        write(temp_ / "kernel.cubin", cubin);
        behave("cp '" + (temp_ / "kernel.cubin").string() + "' \"$4\"");
    }

    /// What it does when asked to compile; "$4" is the file to be made.
    void behave(const std::string& script) const {
        make_script(path(),
                    "#!/bin/sh\necho \"$2\" >>'" + (temp_ / "runs").string() +
                        "'\nif [ \"$1\" = --version ]; then\n"
                        "echo 'Cuda compilation tools, release 13.0, V13.0.88'; exit 0\nfi\n" +
                        script + "\n");
    }
    fs::path path() const { return temp_ / "nvcc"; }
    /// How often it was started, and how often to compile.
    std::size_t starts() const { return count_of(log(), "\n"); }
    std::size_t compilations() const { return count_of(log(), "--cubin\n"); }

private:
    std::string log() const { return fs::exists(temp_ / "runs") ? slurp(temp_ / "runs") : ""; }

    TempDir temp_{"fake nvcc"};
    ScopedEnv variable_{"CUDATEST_JIT_NVCC_COMPILER", path().string()};
};

/// Runs `body` in a forked child; what it expects is expected.
inline void in_child(const std::function<void()>& body) {
    const auto result = run_child([&] {
        body();
        std::fflush(stdout);
        return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_TRUE(result.ok()) << result;
}

/// {x, y, z} of a recorded dimension or of a dim3.
inline std::vector<unsigned> xyz(const unsigned (&dim)[3]) { return {dim[0], dim[1], dim[2]}; }

inline constexpr const char* kNothing = "extern \"C\" __global__ void nothing() {}\n";
inline constexpr const char* kScale = R"(
extern "C" __global__ void scale(float* output, const float* input, int count) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * 2.0f;
}
)";

}  // namespace deep_jit_test
