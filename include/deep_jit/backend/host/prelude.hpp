// What a kernel source of the Host backend sees before its first line: CUDA's spellings in C++.
#pragma once

#include <string>
#include <string_view>

#include <deep_jit/backend/host/abi.hpp>
#include <deep_jit/utils/str.hpp>

namespace deep_jit::host {

namespace detail {

// Kernels are told from other functions by their "protected" visibility, which nothing else
// uses; `used` keeps a template instance that only an address was taken of.
//
// One block runs on one CPU thread, so shared memory is that thread's own memory.
//
// A kernel may be compiled with `-DN=128`, `-DT=float` or `-Dnum_threads=256`: parameters are
// spelled as the compiler's own names are, and other names are no macros while the prelude uses
// them.
inline constexpr const char* kPreludeHead = R"(#pragma GCC system_header
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#define __global__ __attribute__((visibility("protected"), used))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__  // libstdc++ writes __attribute__((__noinline__)): nothing is right there too
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __constant__ static const
#define __shared__ thread_local
#define __align__(n) __attribute__((aligned(n)))
#define DEEP_JIT_HOST 1
namespace deep_jit::host::abi {
)";

inline constexpr const char* kPreludeTail = R"(
}
struct uint3 { unsigned int x, y, z; };
struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int __x = 1, unsigned int __y = 1, unsigned int __z = 1)
        : x(__x), y(__y), z(__z) {}
    constexpr dim3(uint3 __v) : x(__v.x), y(__v.y), z(__v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
#define DEEP_JIT_VECTOR(T, N)                                                                      \
    struct N##1 { T x; };                                                                          \
    struct __attribute__((aligned(2 * sizeof(T)))) N##2 { T x, y; };                               \
    struct __attribute__((aligned(sizeof(T) < 8 ? 4 * sizeof(T) : 16))) N##4 { T x, y, z, w; };    \
    static inline constexpr N##2 make_##N##2(T __x, T __y) { return {__x, __y}; }                  \
    static inline constexpr N##4 make_##N##4(T __x, T __y, T __z, T __w) {                         \
        return {__x, __y, __z, __w};                                                               \
    }
DEEP_JIT_VECTOR(int, int)
DEEP_JIT_VECTOR(unsigned int, uint)
DEEP_JIT_VECTOR(float, float)
DEEP_JIT_VECTOR(double, double)
#undef DEEP_JIT_VECTOR
struct float3 { float x, y, z; };
static inline constexpr float3 make_float3(float __x, float __y, float __z) {
    return {__x, __y, __z};
}

static thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace deep_jit::host {
static thread_local abi::RunningBlock* current_block;

template <typename __Type> struct identity { using type = __Type; };
template <unsigned... __Index> struct indices {};
template <unsigned __Count, unsigned... __Index>
struct make_indices : make_indices<__Count - 1, __Count - 1, __Index...> {};
template <unsigned... __Index>
struct make_indices<0, __Index...> { using type = indices<__Index...>; };
template <typename __Type> struct plain { using type = __Type; };
template <typename __Type> struct plain<const __Type> { using type = __Type; };

template <auto __Kernel, typename... __Params>
struct runner {
    static constexpr unsigned int sizes[sizeof...(__Params) + 1] = {sizeof(__Params)..., 0};
    static constexpr unsigned int aligns[sizeof...(__Params) + 1] = {alignof(__Params)..., 1};

    static void run_threads(abi::RunningBlock* __running, void* const* __arguments) {
        run(__running, __arguments, typename make_indices<sizeof...(__Params)>::type());
    }

private:
    template <unsigned... __Index>
    static void run(abi::RunningBlock* __running, [[maybe_unused]] void* const* __arguments,
                    indices<__Index...>) {
        current_block = __running;
        gridDim = {__running->grid_dim.x, __running->grid_dim.y, __running->grid_dim.z};
        blockDim = {__running->block_dim.x, __running->block_dim.y, __running->block_dim.z};
        blockIdx = {__running->block_idx.x, __running->block_idx.y, __running->block_idx.z};
        const unsigned int __nx = __running->block_dim.x, __ny = __running->block_dim.y;
        while (__running->next_thread < __running->num_threads) {
            const unsigned int __linear = __running->next_thread++;
            if (__nx == __running->num_threads)
                threadIdx = {__linear, 0, 0};
            else
                threadIdx = {__linear % __nx, __linear / __nx % __ny, __linear / __nx / __ny};
            __Kernel(*static_cast<__Params*>(__arguments[__Index])...);
        }
    }
};

template <auto __Kernel, typename... __Params>
constexpr abi::KernelEntry make_entry(identity<void (*)(__Params...)>) {
    using run = runner<__Kernel, typename plain<__Params>::type...>;
    return {DEEP_JIT_HOST_ABI_VERSION, sizeof...(__Params), run::sizes, run::aligns,
            run::run_threads};
}
template <auto __Kernel, typename... __Params>
constexpr abi::KernelEntry make_entry(identity<void (*)(__Params...) noexcept>) {
    return make_entry<__Kernel>(identity<void (*)(__Params...)>());
}
}

static inline void __syncthreads() {
    const uint3 __index = threadIdx;
    deep_jit::host::abi::RunningBlock* __running = deep_jit::host::current_block;
    __running->barrier(__running);
    threadIdx = __index;
}
#define DEEP_JIT_MATH(name)                                                                        \
    extern "C" double name(double) noexcept;                                                       \
    extern "C" float name##f(float) noexcept;
#define DEEP_JIT_MATH2(name)                                                                       \
    extern "C" double name(double, double) noexcept;                                               \
    extern "C" float name##f(float, float) noexcept;
DEEP_JIT_MATH(sqrt) DEEP_JIT_MATH(exp) DEEP_JIT_MATH(exp2) DEEP_JIT_MATH(expm1) DEEP_JIT_MATH(log)
DEEP_JIT_MATH(log2) DEEP_JIT_MATH(log10) DEEP_JIT_MATH(log1p) DEEP_JIT_MATH(sin) DEEP_JIT_MATH(cos)
DEEP_JIT_MATH(tan) DEEP_JIT_MATH(tanh) DEEP_JIT_MATH(erf) DEEP_JIT_MATH(fabs) DEEP_JIT_MATH(floor)
DEEP_JIT_MATH(ceil) DEEP_JIT_MATH(round) DEEP_JIT_MATH(rint) DEEP_JIT_MATH(trunc)
DEEP_JIT_MATH2(pow) DEEP_JIT_MATH2(fmax) DEEP_JIT_MATH2(fmin) DEEP_JIT_MATH2(fmod)
DEEP_JIT_MATH2(atan2)
#undef DEEP_JIT_MATH
#undef DEEP_JIT_MATH2
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
static inline float rsqrtf(float __x) { return 1.0f / sqrtf(__x); }
static inline double rsqrt(double __x) { return 1.0 / sqrt(__x); }
static inline constexpr int min(int __a, int __b) { return __b < __a ? __b : __a; }
static inline constexpr int max(int __a, int __b) { return __a < __b ? __b : __a; }
static inline constexpr unsigned min(unsigned __a, unsigned __b) { return __b < __a ? __b : __a; }
static inline constexpr unsigned max(unsigned __a, unsigned __b) { return __a < __b ? __b : __a; }
static inline float min(float __a, float __b) { return fminf(__a, __b); }
static inline float max(float __a, float __b) { return fmaxf(__a, __b); }
static inline double min(double __a, double __b) { return fmin(__a, __b); }
static inline double max(double __a, double __b) { return fmax(__a, __b); }

static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }

template <typename __Type>
static inline __Type atomicExch(__Type* __p, typename deep_jit::host::identity<__Type>::type __v) {
    __Type __old;
    __atomic_exchange(__p, &__v, &__old, __ATOMIC_RELAXED);
    return __old;
}
template <typename __Type>
static inline __Type atomicCAS(__Type* __p,
                               typename deep_jit::host::identity<__Type>::type __expected,
                               typename deep_jit::host::identity<__Type>::type __v) {
    __atomic_compare_exchange(__p, &__expected, &__v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return __expected;
}
#define DEEP_JIT_ATOMIC(name, result)                                                              \
    template <typename __Type>                                                                     \
    static inline __Type name(__Type* __p, typename deep_jit::host::identity<__Type>::type __v) {  \
        __Type __old, __made;                                                                      \
        __atomic_load(__p, &__old, __ATOMIC_RELAXED);                                              \
        do {                                                                                       \
            __made = (result);                                                                     \
        } while (!__atomic_compare_exchange(__p, &__old, &__made, true, __ATOMIC_RELAXED,          \
                                            __ATOMIC_RELAXED));                                    \
        return __old;                                                                              \
    }
DEEP_JIT_ATOMIC(atomicAdd, __old + __v)
DEEP_JIT_ATOMIC(atomicSub, __old - __v)
DEEP_JIT_ATOMIC(atomicMin, __v < __old ? __v : __old)
DEEP_JIT_ATOMIC(atomicMax, __old < __v ? __v : __old)
DEEP_JIT_ATOMIC(atomicAnd, __old & __v)
DEEP_JIT_ATOMIC(atomicOr, __old | __v)
DEEP_JIT_ATOMIC(atomicXor, __old ^ __v)
#undef DEEP_JIT_ATOMIC

using __deep_jit_entry = deep_jit::host::abi::KernelEntry;
template <auto __Kernel, typename __Type>
static constexpr __deep_jit_entry __deep_jit_make_entry() {
    return deep_jit::host::make_entry<__Kernel>(deep_jit::host::identity<__Type>());
}
)";

/// Names of the prelude that are not spelled as the compiler's own.
inline constexpr std::string_view kPreludeNames =
    "deep_jit host abi Index3 RunningBlock KernelEntry grid_dim block_dim block_idx next_thread "
    "num_threads barrier block_runner abi_version num_params param_sizes param_aligns run_threads "
    "current_block identity type indices make_indices plain runner sizes aligns run make_entry "
    "x y z w min max";

/// A line of preprocessing for each of them.
inline std::string for_each_prelude_name(const std::string& before, const std::string& after) {
    std::string out;
    for (const auto& name : str::split(kPreludeNames, ' ')) out += before + name + after + "\n";
    return out;
}

}  // namespace detail

/// The prelude's text. It is part of every kernel's key.
inline std::string prelude_text() {
    std::string out = "#define DEEP_JIT_HOST_ABI_VERSION " + std::to_string(abi::kVersion) + "\n";
    out += detail::for_each_prelude_name("#pragma push_macro(\"", "\")");
    out += detail::for_each_prelude_name("#undef ", "");
    out = out + detail::kPreludeHead + abi::kSourceText + detail::kPreludeTail;
    return out + detail::for_each_prelude_name("#pragma pop_macro(\"", "\")");
}

/// What follows the source: the table through which the kernel is called that `kernel` names, a
/// C++ expression such as `my::scale<float>`.
inline std::string entry_text(const std::string& kernel) {
    return "\n#line 1 \"deep_jit: entry of the kernel\"\n"
           "extern \"C\" __attribute__((visibility(\"default\"), used))\n"
           "const __deep_jit_entry " +
           std::string(abi::kEntryName) + " = __deep_jit_make_entry<(&" + kernel + "), decltype(&" +
           kernel + ")>();\n";
}

}  // namespace deep_jit::host
