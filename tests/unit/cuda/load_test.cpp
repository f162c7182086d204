// Loading: exactly one kernel, from a complete CUBIN, for a device of this machine.
#include <thread>

#include "unit/cuda/fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using cuda::Kernel;

class CudaLoad : public CudaStandIn {
protected:
    static std::string failure(const std::string& bytes) {
        try {
            Kernel::load(bytes, "some_tag.0123");
        } catch (const LoadError& error) {
            EXPECT_EQ(error.key(), "some_tag.0123");
            EXPECT_CONTAINS(error.what(), "some_tag.0123");
            return error.what();
        }
        ADD_FAILURE() << "nothing was thrown";
        return {};
    }
};

TEST_F(CudaLoad, AKernelKnowsItsNameParametersAndArchitecture) {
    const auto kernel = load(kScale);
    EXPECT_EQ(kernel->name(), "scale");
    EXPECT_EQ(kernel->param_sizes(), (std::vector<std::uint32_t>{8, 8, 4}));
    EXPECT_EQ(kernel->arch(), 90);
    EXPECT_NE(kernel->library_handle, nullptr);
    EXPECT_NE(kernel->kernel_handle, nullptr);
    EXPECT_TRUE(load(kNothing)->param_sizes().empty());
}

TEST_F(CudaLoad, TemplatesCountOncePerInstance) {
    const std::string source =
        "template <typename T> __global__ void fill(T* p) { *p = 1; }\n"
        "template __global__ void fill<float>(float*);\n";
    EXPECT_EQ(load(source)->name(), "_Z4fillIfEvPT_");
    const auto text =
        failure(cubin_of(source + "template __global__ void fill<double>(double*);\n"));
    EXPECT_CONTAINS(text, "expected exactly one kernel, but there are 2");
    EXPECT_CONTAINS(text, "void fill<float>(float*)");
    EXPECT_CONTAINS(text, "void fill<double>(double*)");
}

TEST_F(CudaLoad, ASourceWithoutKernelsIsRefused) {
    const auto text =
        failure(cubin_of("template <typename T> __global__ void fill(T* p) { *p = 1; }\n"
                         "__device__ int number = 3;\n"));
    EXPECT_CONTAINS(text, "expected exactly one kernel, but there are 0");
    EXPECT_CONTAINS(text, "__global__");
    EXPECT_EQ(stand_in->live_libraries(), 0U);
}

TEST_F(CudaLoad, TwoKernelsAreRefusedByName) {
    const auto text = failure(cubin_of(
        "extern \"C\" __global__ void first() {}\nextern \"C\" __global__ void second() {}\n"));
    EXPECT_CONTAINS(text, "expected exactly one kernel, but there are 2");
    EXPECT_CONTAINS(text, "first");
    EXPECT_CONTAINS(text, "second");
    EXPECT_EQ(stand_in->live_libraries(), 0U);
}

TEST_F(CudaLoad, DamagedFilesNeverReachTheDriver) {
    // It is given no length, and real ones read on until they crash.
    const auto cubin = cubin_of(kScale);
    for (const auto& bytes : {std::string(), std::string("not ELF"), cubin.substr(0, 100),
                              cubin.substr(0, cubin.size() / 2), cubin.substr(0, cubin.size() - 1),
                              slurp("/proc/self/exe")})
        EXPECT_CONTAINS(failure(bytes),
                        str::format("its {} bytes are no complete CUBIN", bytes.size()));
    EXPECT_EQ(stand_in->calls("cuLibraryLoadData"), 0U);
}

TEST_F(CudaLoad, FromTheDirectoryOfAnEntry) {
    write(temp / "tag.abcd" / "kernel.cubin", cubin_of(kScale));
    const Env env("CUDATEST");
    EXPECT_EQ(CUDA::load(temp / "tag.abcd", env)->name(), "scale");
    EXPECT_EQ(CUDA::load((temp / "tag.abcd").string() + "/", env)->name(), "scale");
    const auto text = message_of<LoadError>([&] { CUDA::load(temp / "tag.ffff", env); });
    EXPECT_CONTAINS(text, "missing CUDA CUBIN");
    EXPECT_CONTAINS(text, (temp / "tag.ffff" / "kernel.cubin").string());
    EXPECT_CONTAINS(text, "tag.ffff");
}

TEST_F(CudaLoad, AnotherArchitectureIsNamedBesideTheDevices) {
    restart("9.0,8.9");
    const auto cubin = cubin_of(kScale, "100a");
    for (const char* eager : {"0", "1"}) {  // refused when it is used, or at once
        const ScopedEnv variable("DJ_STAND_IN_CUDA_EAGER", eager);
        restart("9.0,8.9");
        const auto text = failure(cubin);
        EXPECT_CONTAINS(text, "CUDA_ERROR_NO_BINARY_FOR_GPU (209)");
        EXPECT_CONTAINS(text, "compiled for sm_100");
        EXPECT_CONTAINS(text, "device 0 (Stand-in GPU 9.0, sm_90)");
        EXPECT_CONTAINS(text, "device 1 (Stand-in GPU 8.9, sm_89)");
        EXPECT_EQ(text.find("exactly one"), std::string::npos);
        EXPECT_EQ(stand_in->live_libraries(), 0U);
    }
}

TEST_F(CudaLoad, WorksInACapture) {
    use_device(0);
    auto* stream = make_stream();
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    const auto kernel = load(kNothing);
    CUgraph graph = nullptr;
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamEndCapture(stream, &graph));
    EXPECT_EQ(kernel->name(), "nothing");
}

TEST_F(CudaLoad, WhereADriverRefusesItTheErrorNamesTheKernelAndTheCure) {
    const ScopedEnv strict("DJ_STAND_IN_CUDA_STRICT_CAPTURE", "1");
    restart("9.0");
    use_device(0);
    auto* stream = make_stream();
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    const auto text = failure(cubin_of(kNothing));
    EXPECT_CONTAINS(text, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
    EXPECT_CONTAINS(text, "A CUDA graph is being captured");
    EXPECT_CONTAINS(text, "compile and load this kernel before the capture");
}

TEST_F(CudaLoad, UnloadingSpoilsNoCapture) {
    use_device(0);
    auto* stream = make_stream();
    auto kernel = load(kNothing);
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    kernel.reset();
    CUgraph graph = nullptr;
    EXPECT_EQ(driver::lazy_cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    EXPECT_EQ(stand_in->live_libraries(), 0U);
    // The thread is held to the rules again.
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_EQ(driver::lazy_cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_F(CudaLoad, UnloadIsIdempotent) {
    auto kernel = load(kNothing);
    EXPECT_EQ(stand_in->live_libraries(), 1U);
    kernel->unload();
    EXPECT_EQ(kernel->kernel_handle, nullptr);
    EXPECT_EQ(kernel->library_handle, nullptr);
    kernel->unload();
    kernel.reset();
    EXPECT_EQ(stand_in->library_unloads(), 1U);
    EXPECT_EQ(stand_in->live_libraries(), 0U);
}

TEST_F(CudaLoad, DriverErrorsAreNamedAndLeaveNothingBehind) {
    use_device(0);
    for (const char* call :
         {"cuLibraryLoadData", "cuLibraryGetKernelCount", "cuLibraryEnumerateKernels",
          "cuKernelGetName", "cuKernelGetParamInfo"}) {
        stand_in->fail(call, CUDA_ERROR_OUT_OF_MEMORY);
        const auto text = message_of<LoadError>([] { load(kScale); });
        EXPECT_CONTAINS(text, call);
        EXPECT_CONTAINS(text, "CUDA_ERROR_OUT_OF_MEMORY");
        EXPECT_EQ(stand_in->live_libraries(), 0U) << call;
    }
    EXPECT_NO_THROW(load(kScale));
}

TEST_F(CudaLoad, NeedsNoContextAndMakesNone) {
    const auto kernel = load(kScale);
    EXPECT_EQ(current_context(), nullptr);
    EXPECT_EQ(stand_in->calls("cuDevicePrimaryCtxRetain"), 0U);
    // The parameters are told with one only, so they are asked for when they are needed.
    EXPECT_EQ(kernel->param_sizes(), (std::vector<std::uint32_t>{8, 8, 4}));
    EXPECT_EQ(stand_in->calls("cuDevicePrimaryCtxRetain"), 1U);
    EXPECT_EQ(stand_in->calls("cuDevicePrimaryCtxRelease"), 1U);
    EXPECT_EQ(current_context(), nullptr);
    stand_in->reset();
    kernel->param_sizes();
    EXPECT_EQ(stand_in->calls(), 0U);
}

TEST_F(CudaLoad, UnknownParametersAreLearntOnceByManyThreads) {
    const auto kernel = load(kScale);
    stand_in->reset();
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            EXPECT_EQ(kernel->param_sizes(), (std::vector<std::uint32_t>{8, 8, 4}));
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(stand_in->calls("cuDevicePrimaryCtxRetain"), 1U);
}

TEST_F(CudaLoad, TheTimeIsPrintedWhenAskedFor) {
    write(temp / "tag.abcd" / "kernel.cubin", cubin_of(kNothing));
    const Env env("CUDATEST");
    CUDA::load(temp / "tag.abcd", env);
    EXPECT_EQ(logged(), "");
    const ScopedEnv print("CUDATEST_JIT_PRINT_LOAD_TIME", "1");
    CUDA::load(temp / "tag.abcd", env);
    EXPECT_CONTAINS(logged(), "Load time (tag.abcd): ");
}

}  // namespace
