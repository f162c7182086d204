// What a kernel source of the Host backend sees before its first line: CUDA's spellings in C++.
#pragma once

#include <string>

#include <deep_jit/backend/host/abi.hpp>

namespace deep_jit::host {

namespace detail {

// Kernels are told from other functions by their "protected" visibility, which nothing else
// uses; `used` keeps a template instance that only an address was taken of.
//
// One block runs on one CPU thread, so shared memory is that thread's own memory.
inline constexpr const char* kPreludeHead = R"(#pragma GCC system_header
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#define __global__ __attribute__((visibility("protected"), used))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
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
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
        : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
#define DEEP_JIT_VECTOR(T, N)                                                                      \
    struct N##1 { T x; };                                                                          \
    struct __attribute__((aligned(2 * sizeof(T)))) N##2 { T x, y; };                               \
    struct __attribute__((aligned(sizeof(T) < 8 ? 4 * sizeof(T) : 16))) N##4 { T x, y, z, w; };    \
    static inline constexpr N##2 make_##N##2(T x, T y) { return {x, y}; }                          \
    static inline constexpr N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
DEEP_JIT_VECTOR(int, int)
DEEP_JIT_VECTOR(unsigned int, uint)
DEEP_JIT_VECTOR(float, float)
DEEP_JIT_VECTOR(double, double)
#undef DEEP_JIT_VECTOR
struct float3 { float x, y, z; };
static inline constexpr float3 make_float3(float x, float y, float z) { return {x, y, z}; }

static thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace deep_jit::host {
static thread_local abi::Block* current_block;

template <typename T> struct identity { using type = T; };
template <unsigned... I> struct indices {};
template <unsigned N, unsigned... I> struct make_indices : make_indices<N - 1, N - 1, I...> {};
template <unsigned... I> struct make_indices<0, I...> { using type = indices<I...>; };
template <typename T> struct plain { using type = T; };
template <typename T> struct plain<const T> { using type = T; };

template <auto Kernel, typename... P>
struct runner {
    static constexpr unsigned int sizes[sizeof...(P) + 1] = {sizeof(P)..., 0};

    static void run(abi::Block* block, void* const* arguments) {
        run(block, arguments, typename make_indices<sizeof...(P)>::type());
    }

private:
    template <unsigned... I>
    static void run(abi::Block* block, [[maybe_unused]] void* const* arguments, indices<I...>) {
        current_block = block;
        gridDim = {block->grid_dim.x, block->grid_dim.y, block->grid_dim.z};
        blockDim = {block->block_dim.x, block->block_dim.y, block->block_dim.z};
        blockIdx = {block->block_idx.x, block->block_idx.y, block->block_idx.z};
        const unsigned int nx = block->block_dim.x, ny = block->block_dim.y;
        while (block->next < block->count) {
            const unsigned int t = block->next++;
            if (nx == block->count)
                threadIdx = {t, 0, 0};
            else
                threadIdx = {t % nx, t / nx % ny, t / nx / ny};
            Kernel(*static_cast<P*>(arguments[I])...);
        }
    }
};

template <auto Kernel, typename... P>
constexpr abi::Entry make_entry(identity<void (*)(P...)>) {
    return {DEEP_JIT_HOST_ABI_VERSION, sizeof...(P), runner<Kernel, typename plain<P>::type...>::sizes,
            runner<Kernel, typename plain<P>::type...>::run};
}
template <auto Kernel, typename... P>
constexpr abi::Entry make_entry(identity<void (*)(P...) noexcept>) {
    return make_entry<Kernel>(identity<void (*)(P...)>());
}
}

static inline void __syncthreads() {
    const uint3 thread = threadIdx;
    deep_jit::host::abi::Block* block = deep_jit::host::current_block;
    block->barrier(block);
    threadIdx = thread;
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
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline constexpr int min(int a, int b) { return b < a ? b : a; }
static inline constexpr int max(int a, int b) { return a < b ? b : a; }
static inline constexpr unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
static inline constexpr unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }

static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }

template <typename T>
static inline T atomicExch(T* p, typename deep_jit::host::identity<T>::type v) {
    T old;
    __atomic_exchange(p, &v, &old, __ATOMIC_RELAXED);
    return old;
}
template <typename T>
static inline T atomicCAS(T* p, typename deep_jit::host::identity<T>::type expected,
                          typename deep_jit::host::identity<T>::type v) {
    __atomic_compare_exchange(p, &expected, &v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
#define DEEP_JIT_ATOMIC(name, result)                                                              \
    template <typename T>                                                                          \
    static inline T name(T* p, typename deep_jit::host::identity<T>::type v) {                     \
        T old, made;                                                                               \
        __atomic_load(p, &old, __ATOMIC_RELAXED);                                                  \
        do {                                                                                       \
            made = (result);                                                                       \
        } while (!__atomic_compare_exchange(p, &old, &made, true, __ATOMIC_RELAXED,                \
                                            __ATOMIC_RELAXED));                                    \
        return old;                                                                                \
    }
DEEP_JIT_ATOMIC(atomicAdd, old + v)
DEEP_JIT_ATOMIC(atomicSub, old - v)
DEEP_JIT_ATOMIC(atomicMin, v < old ? v : old)
DEEP_JIT_ATOMIC(atomicMax, old < v ? v : old)
DEEP_JIT_ATOMIC(atomicAnd, old & v)
DEEP_JIT_ATOMIC(atomicOr, old | v)
DEEP_JIT_ATOMIC(atomicXor, old ^ v)
#undef DEEP_JIT_ATOMIC
)";

}  // namespace detail

/// The prelude's text. It is part of every kernel's key.
inline std::string prelude_text() {
    std::string out = "#define DEEP_JIT_HOST_ABI_VERSION " + std::to_string(abi::kVersion) + "\n";
    return out + detail::kPreludeHead + abi::kSourceText + detail::kPreludeTail;
}

/// What follows the source: the table through which the kernel is called that `kernel` names, a
/// C++ expression such as `my::scale<float>`.
inline std::string entry_text(const std::string& kernel) {
    return "\n#line 1 \"deep_jit: entry of the kernel\"\n"
           "extern \"C\" __attribute__((visibility(\"default\"), used))\n"
           "const deep_jit::host::abi::Entry " +
           std::string(abi::kEntryName) + " = deep_jit::host::make_entry<(&" + kernel +
           ")>(deep_jit::host::identity<decltype(&" + kernel + ")>());\n";
}

}  // namespace deep_jit::host
