// An advanced API: found only with <toolkit>/asc/include/adv_api among the include folders.
#pragma once
#pragma GCC system_header

#include "kernel_operator.h"

namespace AscendC {

template <typename T>
void Sigmoid(const LocalTensor<T>& to, const LocalTensor<T>& from, uint32_t count) {
    T* out = to.place(0, count);
    const T* in = from.place(0, count);
    for (uint32_t i = 0; i < count; ++i) out[i] = T(1) / (T(1) + T(__builtin_exp(-in[i])));
}

}  // namespace AscendC
