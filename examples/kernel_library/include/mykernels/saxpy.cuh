#pragma once

#include <mykernels/pack.cuh>

namespace mykernels {

/// y = a * x + y, N elements a thread. `count` is a multiple of N.
template <typename T, int N>
__global__ void saxpy(T* y, const T* x, T a, int count) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index >= count / N)
        return;
    auto& out = reinterpret_cast<Pack<T, N>*>(y)[index];
    const auto in = reinterpret_cast<const Pack<T, N>*>(x)[index];
    for (int i = 0; i < N; ++i) out.values[i] += a * in.values[i];
}

}  // namespace mykernels
