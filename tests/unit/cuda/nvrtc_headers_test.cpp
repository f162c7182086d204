// What sources include, or use without any include, under NVRTC.
#include "unit/cuda/nvrtc_fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

using CudaNvrtcHeaders = CudaNvrtc;

TEST_F(CudaNvrtcHeaders, TheStandardOnes) {
    if (!has_cccl())
        GTEST_SKIP() << "there are no CCCL headers";
    const auto ptx = ptx_of(R"(
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <initializer_list>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <version>
#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct Pair { int a; int b; };
static_assert(std::is_same_v<std::tuple_element_t<1, std::tuple<int, float>>, float>);
static_assert(std::integral<std::uint8_t> && sizeof(std::intptr_t) == 8);
static_assert(UINT32_MAX == 4294967295u && INT_MAX == 2147483647 && CHAR_BIT == 8);
static_assert(std::numeric_limits<short>::max() == 32767 && SIZE_MAX == ~std::size_t(0));
static_assert(std::clamp(7, 1, 5) + std::max(1, 2) + std::min(1, 2) == 8);
static_assert(offsetof(Pair, b) == 4);
static_assert(FLT_MAX > 3.4e38f && DBL_EPSILON < 3e-16 && M_PI > 3.14);

extern "C" __global__ void k(float* p, std::uint32_t n) {
    std::array<int, 4> numbers = {1, 2, 3, 4};
    auto [x, y] = std::tuple<int, float>(1, p[5]);
    const auto pair = std::make_pair(1, std::optional<int>(3));
    assert(n > 3);
    p[n] = std::plus<float>()(x + y, std::accumulate(numbers.begin(), numbers.end(), 0)) +
           std::sqrt(p[1]) + std::bit_cast<float>(n) + pair.first + *pair.second;
    std::memcpy(p, p + 4, 8);
    for (auto i : std::initializer_list<int>{1, 2}) new (p + i) float(std::exchange(y, 3.0f));
    std::atomic_ref<float>(p[7]).fetch_add(1.0f);
    if (n == 77) std::printf("%d\n", int(std::abs(-1)));
}
)");
    EXPECT_CONTAINS(ptx, ".visible .entry k(");
    EXPECT_CONTAINS(ptx, "__assertfail");
}

TEST_F(CudaNvrtcHeaders, AssertionsGoWithNdebug) {
    const char* const source =
        "#include <cassert>\nextern \"C\" __global__ void k(int* p) { assert(*p > 3); }\n";
    EXPECT_CONTAINS(ptx_of(source), "__assertfail");
    EXPECT_EQ(count_of(ptx_of(source, {.extra_nvcc_flags = {"-DNDEBUG"}}), "__assertfail"), 0U);
}

TEST_F(CudaNvrtcHeaders, ThoseOfCuda) {
    if (library.include_dirs.empty())
        GTEST_SKIP() << "there are no CUDA headers";
    const auto path = compile(R"(
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
__global__ void k(const __grid_constant__ CUtensorMap map, __nv_bfloat16* p, dim3 d, float4 f) {
    p[threadIdx.x] = __float2bfloat16(f.x + d.x);
}
)");
    EXPECT_TRUE(cuda::is_cubin(slurp(path / "kernel.cubin")));
}

TEST_F(CudaNvrtcHeaders, WhatNvccHasWithoutAnyInclude) {
    const auto ptx = ptx_of(R"(
constexpr int twice(int x) { return 2 * x; }
template <typename T>
__global__ void k(int64_t* p, std::size_t n, std::nullptr_t, T f) {
    cudaGridDependencySynchronize();
    __int128 wide = *p;
    auto last = [=](int x) { return twice(x) + int(n); };
    *p = int64_t(wide * wide >> 64) + f(last(3));
    if (n > 3) { assert(n < 100); printf("%d\n", int(n)); }
    cudaTriggerProgrammaticLaunchCompletion();
}
struct Function { __device__ int operator()(int x) const { return x; } };
static void __instantiate_kernel() {
    auto ptr = reinterpret_cast<void*>(&k<Function>);
}
)");
    EXPECT_CONTAINS(ptx, "griddepcontrol.wait");
    EXPECT_CONTAINS(ptx, "griddepcontrol.launch_dependents");
    EXPECT_EQ(count_of(ptx, ".entry"), 1U);
}

TEST_F(CudaNvrtcHeaders, CudasOwnDeclarationsDoNotClash) {
    if (library.include_dirs.empty())
        GTEST_SKIP() << "there are no CUDA headers";
    EXPECT_CONTAINS(
        ptx_of("#include <cuda_device_runtime_api.h>\n"
               "#include <cuda/std/cstdint>\n"
               "extern \"C\" __global__ void k(uint64_t* p) {\n"
               "    cudaGridDependencySynchronize();\n    *p = sizeof(uintptr_t);\n}\n"),
        "griddepcontrol.wait");
}

TEST_F(CudaNvrtcHeaders, IncludeDirectoriesAndTrackedHeaders) {
    write(temp / "first" / "my" / "value.cuh", "#pragma once\n#define VALUE 111\n");
    write(temp / "second" / "my" / "value.cuh", "#define VALUE 222\n");
    write(temp / "second" / "my" / "outer.cuh", "#include \"value.cuh\"\n#include <cstdint>\n");
    const std::string source =
        "#include <my/value.cuh>\nextern \"C\" __global__ void k(int* p) { *p = VALUE; }\n";
    auto jit = make({temp / "first", temp / "second"}, {"my/"});
    const auto first = jit.compile_without_load("kernel", source, {.dump_ptx = true});
    EXPECT_CONTAINS(slurp(first / "kernel.ptx"), ", 111;");
    write(temp / "first" / "my" / "value.cuh", "#pragma once\n#define VALUE 333\n");
    auto again = make({temp / "first", temp / "second"}, {"my/"});
    const auto second = again.compile_without_load("kernel", source, {.dump_ptx = true});
    EXPECT_CONTAINS(slurp(second / "kernel.ptx"), ", 333;");
    // A quoted include is of the directory of the file that it is in.
    const std::string outer =
        "#include <my/outer.cuh>\nextern \"C\" __global__ void k(int32_t* p) { *p = VALUE; }\n";
    const auto third = make({temp / "first", temp / "second"})
                           .compile_without_load("kernel", outer, {.dump_ptx = true});
    EXPECT_CONTAINS(slurp(third / "kernel.ptx"), ", 222;");
}

TEST_F(CudaNvrtcHeaders, WithoutAnyHeadersOfCuda) {
    const auto& api = cuda::nvrtc::Api::open(library.path);
    const auto run = [&](const std::string& source) {
        cuda::nvrtc::Compilation compilation(api);
        const int result =
            compilation.run(source, "kernel.cu", cuda::nvrtc::headers_for({}),
                            // NVRTC's own cache asks the driver for what the stand-in has not.
                            {"--gpu-architecture=sm_90", "--std=c++20", "--no-cache",
                             std::string("--pre-include=") + cuda::nvrtc::kPreludeName});
        return std::pair(result, compilation.log());
    };
    const auto [result, log] = run(
        "#include <cuda_runtime.h>\n#include <cstdint>\n#include <cstddef>\n#include <climits>\n"
        "#include <cstring>\n#include <cstdlib>\n#include <cassert>\n#include <cstdio>\n"
        "#include <stdint.h>\n#include <math.h>\n#include <cfloat>\n"
        "struct S { int a, b; };\n"
        "extern \"C\" __global__ void k(std::uint32_t* p) {\n"
        "    *p = UINT8_MAX + INT_MIN + offsetof(S, b) + unsigned(FLT_MAX > 1);\n"
        "    std::memcpy(p, p + 4, 8);\n}\n");
    EXPECT_EQ(result, 0) << log;
    EXPECT_CONTAINS(run("#include <tuple>\n").second, "nvidia-cuda-cccl");
}

}  // namespace
