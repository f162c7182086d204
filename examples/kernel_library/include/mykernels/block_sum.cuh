#pragma once

namespace mykernels {

/// sums[b] = the sum of the input elements of block b. Threads: a power of two.
template <typename T, int kThreads>
__global__ void block_sum(T* sums, const T* input, int count) {
    __shared__ T partial[kThreads];
    const int thread = static_cast<int>(threadIdx.x);
    const int index = static_cast<int>(blockIdx.x) * kThreads + thread;
    partial[thread] = index < count ? input[index] : T(0);
    __syncthreads();
    for (int step = kThreads / 2; step > 0; step /= 2) {
        if (thread < step)
            partial[thread] += partial[thread + step];
        __syncthreads();
    }
    if (thread == 0)
        sums[blockIdx.x] = partial[0];
}

}  // namespace mykernels
