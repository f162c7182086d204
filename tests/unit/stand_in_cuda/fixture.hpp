// What the tests of the stand-in driver share. They are written against the driver API, so that
// most of them also run on a real driver with a device of compute capability 9.0; those that ask
// the stand-in itself are skipped there.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>
#include <vector>

#include "stand_in/cuda/stand_in_cuda.hpp"
#include "unit/cuda/cubins.hpp"
#include "unit/stand_in_cuda/kernels.hpp"
#include "unit/support.hpp"

#define CU_OK(call) ASSERT_EQ(call, CUDA_SUCCESS)
#define EXPECT_CU_OK(call) EXPECT_EQ(call, CUDA_SUCCESS)

namespace stand_in_test {

using namespace deep_jit_test;

inline bool is_stand_in() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library != nullptr && ::dlsym(library, "dj_stand_in_cuda_launch_count") != nullptr;
}

/// A started driver with the primary context of device 0 current. On the stand-in: a fresh one,
/// with the devices that the test's environment names.
class StandInTest : public testing::Test {
protected:
    void SetUp() override {
        if (!have_nvcc())
            GTEST_SKIP() << "there is no NVCC";
        if (is_stand_in()) {
            stand_in_ = std::make_unique<stand_in::StandInCuda>();
            stand_in_->restart();
        }
        start();
    }
    void TearDown() override {
        if (context != nullptr)
            cuDevicePrimaryCtxRelease(0);
    }

    void start() {
        CU_OK(cuInit(0));
        int major = 0, minor = 0;
        cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
        cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
        if (!stand_in_ && (major != 9 || minor != 0))
            GTEST_SKIP() << "the device is not of compute capability 9.0";
        CU_OK(cuDevicePrimaryCtxRetain(&context, 0));
        CU_OK(cuCtxSetCurrent(context));
    }

    /// The stand-in's own functions. Call `needs_stand_in` first.
    stand_in::StandInCuda& stand_in() { return *stand_in_; }
    bool on_stand_in() const { return stand_in_ != nullptr; }

    CUcontext context = nullptr;

private:
    std::unique_ptr<stand_in::StandInCuda> stand_in_;
};

#define NEEDS_STAND_IN() \
    if (!on_stand_in())  \
    GTEST_SKIP() << "this is not the stand-in"

/// kKernels, loaded.
class KernelsTest : public StandInTest {
protected:
    void SetUp() override {
        StandInTest::SetUp();
        if (IsSkipped() || HasFatalFailure())
            return;
        const auto cubin = cubin_of(kKernels);
        CU_OK(cuLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
        CU_OK(cuMemAlloc(&memory, 1 << 20));
        CU_OK(cuMemsetD8(memory, 0, 1 << 20));
    }
    void TearDown() override {
        if (library != nullptr)
            cuLibraryUnload(library);
        if (memory != 0)
            cuMemFree(memory);
        StandInTest::TearDown();
    }

    CUkernel kernel(const char* name) const {
        CUkernel out = nullptr;
        EXPECT_EQ(cuLibraryGetKernel(&out, library, name), CUDA_SUCCESS) << name;
        return out;
    }

    /// A launch of one block of 32 threads.
    static CUlaunchConfig config() {
        CUlaunchConfig out{};
        out.gridDimX = out.gridDimY = out.gridDimZ = 1;
        out.blockDimX = 32;
        out.blockDimY = out.blockDimZ = 1;
        return out;
    }

    /// Launches a kernel whose parameter is one device pointer.
    CUresult launch(const char* name, CUlaunchConfig what,
                    std::vector<CUlaunchAttribute> attributes = {}) {
        what.attrs = attributes.data();
        what.numAttrs = static_cast<unsigned>(attributes.size());
        void* params[] = {&memory};
        return cuLaunchKernelEx(&what, reinterpret_cast<CUfunction>(kernel(name)), params, nullptr);
    }

    static CUlaunchAttribute cluster(unsigned x, unsigned y, unsigned z) {
        CUlaunchAttribute out{};
        out.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        out.value.clusterDim.x = x;
        out.value.clusterDim.y = y;
        out.value.clusterDim.z = z;
        return out;
    }
    static CUlaunchAttribute cooperative() {
        CUlaunchAttribute out{};
        out.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        out.value.cooperative = 1;
        return out;
    }

    /// As a new process, with what the environment says now; nothing is loaded.
    void restart() {
        library = nullptr;
        memory = 0;
        context = nullptr;
        stand_in().restart();
        start();
    }

    CUlibrary library = nullptr;
    CUdeviceptr memory = 0;
};

}  // namespace stand_in_test
