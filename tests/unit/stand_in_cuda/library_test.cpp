// Loading CUBINs: good ones, damaged ones, those of another architecture; what they tell.
#include <sys/mman.h>

#include <set>

#include "unit/stand_in_cuda/fixture.hpp"

namespace {

using namespace stand_in_test;

class StandInLibrary : public KernelsTest {
protected:
    static CUresult load(const void* bytes, CUlibrary* out) {
        return cuLibraryLoadData(out, bytes, nullptr, nullptr, 0, nullptr, nullptr, 0);
    }
    static std::vector<std::pair<std::size_t, std::size_t>> params_of(CUkernel kernel) {
        std::vector<std::pair<std::size_t, std::size_t>> out;
        std::size_t offset = 0, size = 0;
        CUresult code;
        while ((code = cuKernelGetParamInfo(kernel, out.size(), &offset, &size)) == CUDA_SUCCESS)
            out.emplace_back(offset, size);
        EXPECT_EQ(code, CUDA_ERROR_INVALID_VALUE);
        return out;
    }
    int attribute(CUfunction_attribute which, const char* name) {
        int value = -1;
        EXPECT_CU_OK(cuKernelGetAttribute(&value, which, kernel(name), 0));
        return value;
    }
};

/// Memory that ends where `bytes` end: reading on is a fault.
class AtTheEdge {
public:
    explicit AtTheEdge(std::string_view bytes) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        const auto pages = (bytes.size() + page - 1) / page * page;
        size_ = pages + page;
        start_ = static_cast<char*>(
            ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ::mprotect(start_ + pages, page, PROT_NONE);
        data_ = start_ + pages - bytes.size();
        std::copy(bytes.begin(), bytes.end(), data_);
    }
    ~AtTheEdge() { ::munmap(start_, size_); }
    AtTheEdge(const AtTheEdge&) = delete;
    AtTheEdge& operator=(const AtTheEdge&) = delete;

    const void* data() const { return data_; }

private:
    char* start_;
    char* data_;
    std::size_t size_;
};

TEST_F(StandInLibrary, EveryKernelIsEnumeratedByName) {
    const std::set<std::string> expected = {
        "plain",   "nothing",     "mixed",        "large",     "_Z9templatedIiEvPT_",
        "bounded", "static_smem", "dynamic_smem", "clustered", "greedy"};
    unsigned count = 0;
    CU_OK(cuLibraryGetKernelCount(&count, library));
    ASSERT_EQ(count, expected.size());
    std::vector<CUkernel> kernels(count);
    CU_OK(cuLibraryEnumerateKernels(kernels.data(), count, library));
    std::set<std::string> names;
    for (auto* one : kernels) {
        const char* name = nullptr;
        CU_OK(cuKernelGetName(&name, one));
        names.insert(name);
        EXPECT_EQ(kernel(name), one);
    }
    EXPECT_EQ(names, expected);
    CUkernel missing = nullptr;
    EXPECT_EQ(cuLibraryGetKernel(&missing, library, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(StandInLibrary, ParametersHaveTheOffsetsAndSizesOfTheAbi) {
    using Expected = std::vector<std::pair<std::size_t, std::size_t>>;
    // As in a struct; but what is aligned to more than 16 bytes is so in the constant bank, where
    // the parameters of sm_90 begin at 0x210: (0x210 + 48) % 64 == 0.
    EXPECT_EQ(params_of(kernel("mixed")),
              (Expected{{0, 1}, {8, sizeof(Point)}, {32, 2}, {48, sizeof(Descriptor)}, {176, 4}}));
    EXPECT_EQ(params_of(kernel("plain")), (Expected{{0, 8}, {8, 8}, {16, 4}}));
    EXPECT_EQ(params_of(kernel("large")), (Expected{{0, 4096}, {4096, 8}}));
    EXPECT_EQ(params_of(kernel("nothing")), Expected{});
    std::size_t offset = 99;
    EXPECT_CU_OK(cuKernelGetParamInfo(kernel("plain"), 1, &offset, nullptr));
    EXPECT_EQ(offset, 8U);
    std::size_t size = 0;
    EXPECT_EQ(cuKernelGetParamInfo(kernel("plain"), 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StandInLibrary, AttributesComeFromTheCode) {
    EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, "plain"), 1024);
    EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, "bounded"), 128);
    EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, "static_smem"), 32768);
    EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, "plain"), 0);
    EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION, "plain"), 90);
    EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, "plain"), 0);
    EXPECT_GT(attribute(CU_FUNC_ATTRIBUTE_NUM_REGS, "greedy"), 64);
    EXPECT_LT(attribute(CU_FUNC_ATTRIBUTE_NUM_REGS, "plain"), 64);
    EXPECT_LT(attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, "greedy"), 1024);
    EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, "clustered"), 2);
    EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, "plain"), 0);
    EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, "plain"), 49152);
    EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, "static_smem"), 16384);
    EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, "plain"), 0);
}

TEST_F(StandInLibrary, ParametersAreToldOnlyWhereThereIsAContext) {
    auto* plain = kernel("plain");
    std::size_t offset = 0, size = 0;
    CU_OK(cuCtxSetCurrent(nullptr));
    EXPECT_EQ(cuKernelGetParamInfo(plain, 0, &offset, &size), CUDA_ERROR_INVALID_CONTEXT);
    // Unlike everything else.
    const char* name = nullptr;
    int value = 0;
    EXPECT_CU_OK(cuKernelGetName(&name, plain));
    EXPECT_CU_OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, plain, 0));
    EXPECT_CU_OK(
        cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, plain, 0));
    CU_OK(cuCtxSetCurrent(context));
    EXPECT_CU_OK(cuKernelGetParamInfo(plain, 0, &offset, &size));
}

TEST_F(StandInLibrary, WhatIsNoCubinHasNoKernels) {
    CUlibrary out = nullptr;
    EXPECT_EQ(load(nullptr, &out), CUDA_ERROR_INVALID_VALUE);
    const std::string text = "hello world, this is no CUBIN, and a driver takes it all the same\n";
    for (const auto& bytes : {std::string(4096, '\0'), text, slurp("/proc/self/exe")}) {
        CU_OK(load(bytes.data(), &out));
        unsigned count = 99;
        EXPECT_CU_OK(cuLibraryGetKernelCount(&count, out));
        EXPECT_EQ(count, 0U);
        CUkernel found = nullptr;
        EXPECT_EQ(cuLibraryGetKernel(&found, out, "main"), CUDA_ERROR_INVALID_IMAGE);
        CUmodule module = nullptr;
        EXPECT_EQ(cuModuleLoadData(&module, bytes.data()), CUDA_ERROR_INVALID_IMAGE);
        EXPECT_CU_OK(cuLibraryUnload(out));
    }
}

TEST_F(StandInLibrary, NoTruncatedCubinIsLoadedOrReadBeyondItsEnd) {
    NEEDS_STAND_IN();
    const auto cubin = cubin_of(kKernels);
    std::vector<std::size_t> lengths = {1, 4, 16, 63, 64, 65, cubin.size() - 1};
    for (std::size_t i = 1; i < 64; ++i) lengths.push_back(cubin.size() * i / 64);
    for (const auto length : lengths) {
        const AtTheEdge bytes(std::string_view(cubin).substr(0, length));
        CUlibrary out = nullptr;
        EXPECT_EQ(load(bytes.data(), &out), CUDA_ERROR_INVALID_IMAGE) << length;
    }
    const AtTheEdge whole(cubin);
    CUlibrary out = nullptr;
    EXPECT_CU_OK(load(whole.data(), &out));
    EXPECT_EQ(stand_in().live_libraries(), 2U);
}

TEST_F(StandInLibrary, CodeForAnotherArchitectureIsLoadedButHasNoKernels) {
    const auto cubin = cubin_of("extern \"C\" __global__ void f() {}", "100a");
    CUlibrary out = nullptr;
    CU_OK(load(cubin.data(), &out));
    unsigned count = 99;
    EXPECT_CU_OK(cuLibraryGetKernelCount(&count, out));
    EXPECT_EQ(count, 0U);
    CUkernel foreign = nullptr;
    EXPECT_EQ(cuLibraryGetKernel(&foreign, out, "f"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_EQ(cuLibraryGetKernel(&foreign, out, "g"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_EQ(foreign, nullptr);
    CUmodule module = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, cubin.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_CU_OK(cuLibraryUnload(out));
}

TEST_F(StandInLibrary, WithTwoKindsOfDeviceItFailsOnTheWrongOne) {
    NEEDS_STAND_IN();
    const ScopedEnv devices("DJ_STAND_IN_CUDA_DEVICES", "9.0,10.0");
    restart();
    const auto cubin = cubin_of("extern \"C\" __global__ void f() {}", "100a");
    CU_OK(load(cubin.data(), &library));
    auto what = config();
    const auto function = reinterpret_cast<CUfunction>(kernel("f"));
    CUfunction of_context = nullptr;
    EXPECT_EQ(cuLaunchKernelEx(&what, function, nullptr, nullptr), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_EQ(cuKernelGetFunction(&of_context, kernel("f")), CUDA_ERROR_NO_BINARY_FOR_GPU);
    CUcontext second = nullptr;
    CU_OK(cuDevicePrimaryCtxRetain(&second, 1));
    CU_OK(cuCtxSetCurrent(second));
    EXPECT_CU_OK(cuLaunchKernelEx(&what, function, nullptr, nullptr));
    EXPECT_EQ(stand_in().last_launch().device, 1);
}

TEST_F(StandInLibrary, EagerDriversRefuseAtOnce) {
    NEEDS_STAND_IN();
    const auto cubin = cubin_of("extern \"C\" __global__ void f() {}", "100a");
    const ScopedEnv eager("DJ_STAND_IN_CUDA_EAGER", "1");
    restart();
    CUlibrary out = nullptr;
    EXPECT_EQ(load(cubin.data(), &out), CUDA_ERROR_NO_BINARY_FOR_GPU);
    EXPECT_EQ(load(std::string(4096, '\0').data(), &out), CUDA_ERROR_INVALID_IMAGE);
    EXPECT_EQ(out, nullptr);
}

TEST_F(StandInLibrary, PlainCodeRunsOnLaterMinorVersionsOnly) {
    NEEDS_STAND_IN();
    const auto cubin = cubin_of("extern \"C\" __global__ void f() {}", "86");
    const ScopedEnv eager("DJ_STAND_IN_CUDA_EAGER", "1");
    for (const auto& [device, code] :
         {std::pair("8.0", CUDA_ERROR_NO_BINARY_FOR_GPU), std::pair("8.6", CUDA_SUCCESS),
          std::pair("8.9", CUDA_SUCCESS), std::pair("9.0", CUDA_ERROR_NO_BINARY_FOR_GPU)}) {
        const ScopedEnv devices("DJ_STAND_IN_CUDA_DEVICES", device);
        restart();
        CUlibrary out = nullptr;
        EXPECT_EQ(load(cubin.data(), &out), code) << device;
    }
}

TEST_F(StandInLibrary, RelocatableCodeIsLinked) {
    const auto cubin = cubin_of("extern \"C\" __global__ void f() {}", "90a", {"-rdc=true"});
    CUlibrary out = nullptr;
    CU_OK(load(cubin.data(), &out));
    CUkernel found = nullptr;
    CU_OK(cuLibraryGetKernel(&found, out, "f"));
    auto what = config();
    EXPECT_CU_OK(cuLaunchKernelEx(&what, reinterpret_cast<CUfunction>(found), nullptr, nullptr));
    EXPECT_CU_OK(cuCtxSynchronize());
    EXPECT_CU_OK(cuLibraryUnload(out));
}

TEST_F(StandInLibrary, HandlesEndWithTheirLibrary) {
    NEEDS_STAND_IN();
    auto* plain = kernel("plain");
    CUfunction function = nullptr;
    CU_OK(cuKernelGetFunction(&function, plain));
    EXPECT_EQ(stand_in().library_loads(), 1U);
    EXPECT_EQ(stand_in().live_libraries(), 1U);
    CU_OK(cuLibraryUnload(library));
    EXPECT_EQ(stand_in().library_unloads(), 1U);
    EXPECT_EQ(stand_in().live_libraries(), 0U);
    const char* name = nullptr;
    EXPECT_EQ(cuKernelGetName(&name, plain), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuFuncGetName(&name, function), CUDA_ERROR_INVALID_HANDLE);
    auto what = config();
    EXPECT_EQ(cuLaunchKernelEx(&what, function, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
    library = nullptr;
}

TEST_F(StandInLibrary, ModulesBelongToTheCurrentContext) {
    const auto cubin = cubin_of(kKernels);
    CUmodule module = nullptr;
    CU_OK(cuModuleLoadData(&module, cubin.data()));
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&function, module, "none"), CUDA_ERROR_NOT_FOUND);
    CU_OK(cuModuleGetFunction(&function, module, "bounded"));
    int threads = 0;
    EXPECT_CU_OK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    EXPECT_EQ(threads, 128);
    auto what = config();
    void* params[] = {&memory};
    EXPECT_CU_OK(cuLaunchKernelEx(&what, function, params, nullptr));
    EXPECT_CU_OK(cuCtxSynchronize());
    EXPECT_CU_OK(cuModuleUnload(module));
}

}  // namespace
