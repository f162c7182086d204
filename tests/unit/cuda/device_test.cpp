// What a runtime's device tells, and what happens without one.
#include "unit/cuda/fixture.hpp"
#include "unit/cuda/rerun.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class CudaDevice : public CudaStandIn {};

TEST_F(CudaDevice, Queries) {
    const cuda::Device device;
    EXPECT_EQ(device.get_index(), 0);
    EXPECT_EQ(device.get_num_sms(), 132);
    EXPECT_EQ(device.get_num_l2_cache_bytes(), 62914560);
    EXPECT_EQ(device.get_num_smem_bytes(), 232448);
    EXPECT_EQ(device.get_clock_rate(), 1980000000);
    EXPECT_EQ(device.get_arch_pair(), std::pair(9, 0));
    EXPECT_EQ(device.get_arch_major(), 9);
    EXPECT_EQ(device.get_arch_minor(), 0);
}

TEST_F(CudaDevice, PropertiesUnderTheNamesOfTheRuntimeApi) {
    const cuda::Device device;
    const auto& prop = device.get_prop();
    EXPECT_STREQ(prop.name, "Stand-in GPU 9.0");
    EXPECT_EQ(prop.totalGlobalMem, std::size_t{140} << 30);
    EXPECT_EQ(prop.sharedMemPerBlock, 49152U);
    EXPECT_EQ(prop.sharedMemPerBlockOptin, 232448U);
    EXPECT_EQ(prop.sharedMemPerMultiprocessor, 233472U);
    EXPECT_EQ(prop.reservedSharedMemPerBlock, 1024U);
    EXPECT_EQ(prop.regsPerBlock, 65536);
    EXPECT_EQ(prop.warpSize, 32);
    EXPECT_EQ(prop.maxThreadsPerBlock, 1024);
    EXPECT_EQ(prop.maxThreadsPerMultiProcessor, 2048);
    EXPECT_EQ(prop.maxThreadsDim[2], 64);
    EXPECT_EQ(prop.maxGridSize[0], 2147483647);
    EXPECT_EQ(prop.maxGridSize[1], 65535);
    EXPECT_EQ(prop.clockRate, 1980000);
    EXPECT_EQ(prop.multiProcessorCount, 132);
    EXPECT_EQ(prop.clusterLaunch, 1);
    EXPECT_EQ(prop.cooperativeLaunch, 1);
}

TEST_F(CudaDevice, ArchitectureNames) {
    struct Case {
        const char* device;
        std::string family, concrete, number;
    };
    for (const Case& expected :
         {Case{"7.5", "75", "75", "75"}, Case{"8.9", "89", "89", "89"},
          Case{"9.0", "90a", "90a", "90"}, Case{"10.0", "100f", "100a", "100"},
          Case{"12.0", "120f", "120a", "120"}}) {
        restart(expected.device);
        const cuda::Device device;
        EXPECT_EQ(device.get_arch(), expected.family);
        EXPECT_EQ(device.get_arch(false), expected.concrete);
        EXPECT_EQ(device.get_arch(true, true), expected.number);
        EXPECT_EQ(device.get_arch(false, true), expected.number);
    }
}

TEST_F(CudaDevice, IsTheOneOfTheCurrentContextWhenFirstAsked) {
    restart("9.0,10.0");
    const cuda::Device asked_later, asked_now;
    EXPECT_EQ(asked_now.get_index(), 0);  // no context yet
    use_device(1);
    EXPECT_EQ(asked_now.get_index(), 0);
    EXPECT_EQ(asked_later.get_index(), 1);
    EXPECT_EQ(asked_later.get_arch(), "100f");
    use_device(0);
    EXPECT_EQ(asked_later.get_arch_major(), 10);
    EXPECT_EQ(cuda::Device().get_arch(), "90a");
}

TEST_F(CudaDevice, IsNotAskedBeforeItHasTo) {
    JIT jit(config());
    EXPECT_EQ(stand_in->calls(), 0U);
    EXPECT_EQ(jit.device.get_num_sms(), 132);
    const auto calls = stand_in->calls();
    EXPECT_GT(calls, 0U);
    jit.device.get_arch();
    jit.device.get_num_smem_bytes();
    EXPECT_EQ(stand_in->calls(), calls);
    // Making no context: that takes memory on the device.
    EXPECT_EQ(stand_in->calls("cuDevicePrimaryCtxRetain"), 0U);
}

TEST_F(CudaDevice, WithoutAnyTheErrorSaysWhatToDo) {
    restart("none");
    EXPECT_CONTAINS(message_of<ToolchainError>([] { cuda::Device().get_num_sms(); }),
                    "CUDA_ERROR_NO_DEVICE");
    JIT jit(config());
    const auto text = message_of<ToolchainError>([&] { jit.compile("nothing", kNothing); });
    EXPECT_CONTAINS(text, "There is no device to compile for");
    EXPECT_CONTAINS(text, "CUDA_ERROR_NO_DEVICE");
    EXPECT_CONTAINS(text, "CUDATEST_JIT_ARCH");
    EXPECT_CONTAINS(text, "90a");
}

TEST_F(CudaDevice, AFailureIsNotRemembered) {
    restart("none");
    const cuda::Device device;
    EXPECT_THROW(device.get_num_sms(), ToolchainError);
    restart("8.9");
    EXPECT_EQ(device.get_arch(), "89");
}

TEST_F(CudaDevice, DriverErrorsAreNamed) {
    stand_in->fail("cuDeviceGetCount", CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
    const auto text = message_of<ToolchainError>([] { cuda::Device().get_num_sms(); });
    EXPECT_CONTAINS(text, "cuDeviceGetCount");
    EXPECT_CONTAINS(text, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)");
}

TEST_F(CudaDevice, CheckMacroThrowsWithTheCall) {
    driver::initialize();
    int count = 0;
    EXPECT_NO_THROW(DJ_CUDA_DRIVER_CHECK(driver::lazy_cuDeviceGetCount(&count)));
    EXPECT_EQ(count, 1);
    const auto text =
        message_of<Error>([] { DJ_CUDA_DRIVER_CHECK(driver::lazy_cuDeviceGetCount(nullptr)); });
    EXPECT_CONTAINS(text, "driver::lazy_cuDeviceGetCount(nullptr): CUDA_ERROR_INVALID_VALUE (1): ");
}

// --- Other libraries in the place of libcuda.so.1 ----------------------------------------------

/// Runs in a process of its own, whose LD_LIBRARY_PATH leads to what the test prepared.
TEST(CudaDriverLibrary, DISABLED_Missing) {
    const auto text = message_of<ToolchainError>([] { cuda::Device().get_num_sms(); });
    EXPECT_CONTAINS(text, "libcuda.so.1 cannot be opened");
    EXPECT_CONTAINS(text, "It comes with the NVIDIA driver");
    const TempDir temp("plain");
    const ScopedEnv cache("CUDATEST_JIT_CACHE_DIR", (temp / "cache").string());
    const ScopedEnv arch("CUDATEST_JIT_ARCH", "90a");
    JIT jit(Config(temp.path(), "CUDATEST"));
    EXPECT_TRUE(fs::exists(jit.compile_without_load("nothing", kNothing) / "kernel.cubin"));
    EXPECT_THROW(jit.compile("nothing", kNothing), ToolchainError);
}

TEST(CudaDriverLibrary, DISABLED_TooOld) {
    const auto text = message_of<ToolchainError>([] { cuda::Device().get_num_sms(); });
    EXPECT_CONTAINS(text, "too old");
    EXPECT_CONTAINS(text, "no cuDeviceGetCount");
    EXPECT_CONTAINS(text, "550 or newer");
}

TEST_F(CudaDevice, NoDriverLibrary) {
    const ScopedEnv path("LD_LIBRARY_PATH");
    if (call_external_command({"/sbin/ldconfig", "-p"}).output.find("libcuda.so.1") !=
        std::string::npos)
        GTEST_SKIP() << "a driver is installed";
    EXPECT_RERUN("CudaDriverLibrary.DISABLED_Missing");
}

TEST_F(CudaDevice, ADriverWithoutAFunction) {
    const TempDir old("old");
    write(old / "cuda.c", "int cuInit(unsigned flags) { return (int)flags; }\n");
    const auto built =
        call_external_command({"cc", "-shared", "-fPIC", "-o", (old / "libcuda.so.1").string(),
                               (old / "cuda.c").string()});
    ASSERT_TRUE(built.ok()) << built.output;
    const ScopedEnv path("LD_LIBRARY_PATH", old.path().string());
    EXPECT_RERUN("CudaDriverLibrary.DISABLED_TooOld");
}

}  // namespace
