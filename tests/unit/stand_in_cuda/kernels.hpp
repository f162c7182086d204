// The kernels that the stand-in is tried with, all in one CUBIN for sm_90a.
#pragma once

#include <array>
#include <cstdint>

namespace stand_in_test {

/// Parameters of `mixed`, as the host sees them.
struct Point {
    double x, y;
    std::int8_t tag;
};
struct alignas(64) Descriptor {
    std::array<unsigned char, 128> bytes;
};
struct Block4096 {
    std::array<unsigned char, 4096> bytes;
};

inline constexpr const char* kKernels = R"(
struct Point { double x, y; char tag; };
struct alignas(64) Descriptor { unsigned char bytes[128]; };
struct Block4096 { unsigned char bytes[4096]; };
using Int = int;

extern "C" __global__ void plain(float* out, const float* in, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[i] * 2.0f;
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void mixed(char a, Point p, short b, Descriptor d, int c) {
    if (a + p.x + b + d.bytes[3] + c == 12345.0) __trap();
}
extern "C" __global__ void large(const __grid_constant__ Block4096 block, int* out) {
    *out = block.bytes[*out & 4095];
}
template <typename T> __global__ void templated(T* out) { *out = 1; }
template __global__ void templated<Int>(Int*);
extern "C" __global__ void __launch_bounds__(128) bounded(int* out) { out[threadIdx.x] = 1; }
extern "C" __global__ void static_smem(int* out) {
    __shared__ int data[8192];  // 32 KiB
    data[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = data[8191 - threadIdx.x];
}
extern "C" __global__ void dynamic_smem(int* out) {
    extern __shared__ int data[];
    data[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = data[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int* out) { *out = 1; }
// A block of 1024 threads has 64 registers for each.
extern "C" __global__ void greedy(float* p) {
    float v[100];
    #pragma unroll
    for (int i = 0; i < 100; ++i) v[i] = p[i * 7 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 100; ++i) p[i * threadIdx.x] = v[i] * v[(i * 5 + 3) % 100];
}
)";

}  // namespace stand_in_test
