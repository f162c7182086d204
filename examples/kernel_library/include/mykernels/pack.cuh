// N values that are read and written together.
#pragma once

namespace mykernels {

template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
    T values[N];
};

}  // namespace mykernels
