// Start, devices, contexts, fork and exit of the driver.
#include <thread>

#include "unit/cuda/rerun.hpp"
#include "unit/stand_in_cuda/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInStart : public StandInTest {
protected:
    /// As a new process in which DJ_STAND_IN_CUDA_DEVICES has this value.
    void restart_with(const char* devices) {
        list.set(devices);
        stand_in().restart();
        context = nullptr;
    }
    static int attribute(CUdevice_attribute which, CUdevice device) {
        int value = -1;
        EXPECT_CU_OK(cuDeviceGetAttribute(&value, which, device));
        return value;
    }

    ScopedEnv list{"DJ_STAND_IN_CUDA_DEVICES"};
};

TEST_F(StandInStart, LittleWorksBeforeCuInit) {
    NEEDS_STAND_IN();
    restart_with("9.0");
    int number = 0;
    CUcontext current = nullptr;
    CUdeviceptr pointer = 0;
    EXPECT_EQ(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuMemAlloc(&pointer, 4), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_CU_OK(cuDriverGetVersion(&number));
    EXPECT_EQ(number, 13000);
    const char* text = nullptr;
    EXPECT_CU_OK(cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &text));
    EXPECT_STREQ(text, "CUDA_ERROR_NOT_INITIALIZED");
    EXPECT_CU_OK(cuInit(0));
    EXPECT_CU_OK(cuDeviceGetCount(&number));
    EXPECT_EQ(number, 1);
}

TEST_F(StandInStart, BadArgumentsAreRefused) {
    EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuDeviceGetCount(nullptr), CUDA_ERROR_INVALID_VALUE);
    CUdevice device = 0;
    EXPECT_EQ(cuDeviceGet(&device, 1000), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
    int value = 0;
    EXPECT_EQ(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(100000), 0),
              CUDA_ERROR_INVALID_VALUE);
    const char* text = "unchanged";
    EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(123456), &text), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(text, nullptr);
}

TEST_F(StandInStart, TheNumbersOfAHopperDevice) {
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), 132);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 0), 49152);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0), 232448);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0), 233472);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0), 1024);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0), 60 << 20);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0), 2048);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 0), 65536);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0), 1980000);
    EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0), 1);
}

TEST_F(StandInStart, DevicesComeFromTheEnvironment) {
    NEEDS_STAND_IN();
    restart_with("7.5,8.9,12.0");
    CU_OK(cuInit(0));
    int count = 0;
    EXPECT_CU_OK(cuDeviceGetCount(&count));
    ASSERT_EQ(count, 3);
    const int expected[][4] = {{7, 5, 64 << 10, 0}, {8, 9, 99 << 10, 0}, {12, 0, 99 << 10, 1}};
    for (int i = 0; i < count; ++i) {
        EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, i), expected[i][0]);
        EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, i), expected[i][1]);
        EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, i),
                  expected[i][2]);
        EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, i), expected[i][3]);
    }
    char name[8];
    EXPECT_CU_OK(cuDeviceGetName(name, sizeof(name), 1));
    EXPECT_STREQ(name, "Stand-i");  // cut, and ended
}

TEST_F(StandInStart, NoDeviceIsAnErrorOfCuInit) {
    NEEDS_STAND_IN();
    restart_with("none");
    int count = 0;
    EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
    EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
}

TEST_F(StandInStart, AMisspeltDeviceListEndsTheProgram) {
    NEEDS_STAND_IN();
    for (const char* bad : {"hopper", "9.0,", "9.0;10.0", "90", "9.0 "}) {
        const auto result = run_child([&] {
            ::close(2);
            restart_with(bad);
            return 0;
        });
        EXPECT_TRUE(WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGABRT) << bad;
    }
}

TEST_F(StandInStart, WorkNeedsACurrentContext) {
    CU_OK(cuCtxSetCurrent(nullptr));
    CUcontext current = context;
    EXPECT_CU_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
    CUdevice device = 0;
    CUdeviceptr pointer = 0;
    CUstream stream = nullptr;
    EXPECT_EQ(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuMemAlloc(&pointer, 4), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuCtxPopCurrent(&current), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(StandInStart, ContextsAreStackedAndOfOneThread) {
    CUcontext again = nullptr, current = nullptr;
    CU_OK(cuDevicePrimaryCtxRetain(&again, 0));
    EXPECT_EQ(again, context);
    EXPECT_CU_OK(cuDevicePrimaryCtxRelease(0));
    std::thread([&] {
        EXPECT_CU_OK(cuCtxGetCurrent(&current));
        EXPECT_EQ(current, nullptr);
        EXPECT_CU_OK(cuCtxPushCurrent(context));
        EXPECT_CU_OK(cuCtxGetCurrent(&current));
        EXPECT_EQ(current, context);
        EXPECT_CU_OK(cuCtxPopCurrent(&current));
        EXPECT_EQ(current, context);
        EXPECT_EQ(cuCtxPopCurrent(&current), CUDA_ERROR_INVALID_CONTEXT);
    }).join();
    EXPECT_CU_OK(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, context);
}

TEST_F(StandInStart, WhatIsInAPrimaryContextGoesWithIt) {
    NEEDS_STAND_IN();
    CUdeviceptr pointer = 0;
    CUstream stream = nullptr;
    CU_OK(cuMemAlloc(&pointer, 64));
    CU_OK(cuStreamCreate(&stream, 0));
    EXPECT_EQ(stand_in().live_allocations(), 1U);
    EXPECT_EQ(stand_in().live_streams(), 1U);
    CU_OK(cuDevicePrimaryCtxRelease(0));
    EXPECT_EQ(stand_in().live_allocations(), 0U);
    EXPECT_EQ(stand_in().live_streams(), 0U);
    EXPECT_EQ(cuMemAlloc(&pointer, 64), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CU_OK(cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT_CU_OK(cuMemAlloc(&pointer, 64));
}

TEST_F(StandInStart, AForkedChildCannotUseADriverThatItsParentHasStarted) {
    const auto result = run_child([] {
        CUcontext current = nullptr;
        return cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                       cuCtxGetCurrent(&current) == CUDA_ERROR_NOT_INITIALIZED
                   ? 0
                   : 1;
    });
    EXPECT_TRUE(result.ok()) << result;
    CUdevice device = 0;
    EXPECT_CU_OK(cuCtxGetDevice(&device));  // the parent goes on
}

TEST_F(StandInStart, AForkedChildCanStartTheDriverItself) {
    NEEDS_STAND_IN();
    restart_with("9.0");
    const auto result = run_child([] { return cuInit(0) == CUDA_SUCCESS ? 0 : 1; });
    EXPECT_TRUE(result.ok()) << result;
}

TEST_F(StandInStart, FunctionsComeInTheVersionThatIsAskedFor) {
    const auto ask = [](const char* name, int version, CUdriverProcAddressQueryResult* status) {
        void* out = reinterpret_cast<void*>(1);
        EXPECT_CU_OK(cuGetProcAddress(name, &out, version, 0, status));
        return out;
    };
    CUdriverProcAddressQueryResult status{};
    const auto symbol = [](const char* name) {
        return ::dlsym(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name);
    };
    EXPECT_NE(symbol("cuMemAlloc_v2"), nullptr);
    EXPECT_EQ(ask("cuMemAlloc", 12040, &status), symbol("cuMemAlloc_v2"));
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
    EXPECT_EQ(ask("cuEventElapsedTime", 12040, &status), symbol("cuEventElapsedTime"));
    EXPECT_EQ(ask("cuEventElapsedTime", 13000, &status), symbol("cuEventElapsedTime_v2"));
    EXPECT_EQ(ask("cuLibraryLoadData", 11080, &status), nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT_EQ(ask("cuNoSuchFunction", 12040, &status), nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_F(StandInStart, AnOlderDriverLacksNewerFunctions) {
    NEEDS_STAND_IN();
    const ScopedEnv version("DJ_STAND_IN_CUDA_DRIVER_VERSION", "12020");
    restart_with("9.0");
    CU_OK(cuInit(0));
    unsigned count = 0;
    EXPECT_EQ(cuLibraryGetKernelCount(&count, nullptr), CUDA_ERROR_NOT_SUPPORTED);
    int number = 0;
    EXPECT_CU_OK(cuDriverGetVersion(&number));
    EXPECT_EQ(number, 12020);
}

/// Runs in a process of its own: calls before and after the driver's end.
TEST(StandInExit, DISABLED_CallsAtExit) {
    static const auto call = [] {
        int number = 0;
        cuDriverGetVersion(&number);
    };
    std::atexit([] { call(); });  // runs after what is registered later: the driver's own
    EXPECT_CU_OK(cuInit(0));
    std::atexit([] {
        int count = 0;
        cuDeviceGetCount(&count);
    });
}

TEST_F(StandInStart, CallsAfterTheDriversEndAreLogged) {
    NEEDS_STAND_IN();
    const TempDir temp;
    const ScopedEnv log("DJ_STAND_IN_CUDA_EXIT_LOG", (temp / "log").string());
    EXPECT_RERUN("StandInExit.DISABLED_CallsAtExit");
    EXPECT_EQ(slurp(temp / "log"), "cuDriverGetVersion\n");
}

}  // namespace
