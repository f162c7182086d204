// Vector instructions on the first `count` elements.
#pragma once
#pragma GCC system_header

#include "kernel_tensor.h"

namespace AscendC {

#define DJ_STAND_IN_BINARY(name, result)                                                         \
    template <typename T>                                                                        \
    void name(const LocalTensor<T>& to, const LocalTensor<T>& left, const LocalTensor<T>& right, \
              int32_t count) {                                                                   \
        T* out = to.place(0, count);                                                             \
        const T* a = left.place(0, count);                                                       \
        const T* b = right.place(0, count);                                                      \
        for (int32_t i = 0; i < count; ++i) out[i] = result;                                     \
    }
#define DJ_STAND_IN_UNARY(name, result)                                              \
    template <typename T>                                                            \
    void name(const LocalTensor<T>& to, const LocalTensor<T>& from, int32_t count) { \
        T* out = to.place(0, count);                                                 \
        const T* a = from.place(0, count);                                           \
        for (int32_t i = 0; i < count; ++i) out[i] = result;                         \
    }
#define DJ_STAND_IN_SCALAR(name, result)                                                         \
    template <typename T>                                                                        \
    void name(const LocalTensor<T>& to, const LocalTensor<T>& from, const T& s, int32_t count) { \
        T* out = to.place(0, count);                                                             \
        const T* a = from.place(0, count);                                                       \
        for (int32_t i = 0; i < count; ++i) out[i] = result;                                     \
    }

DJ_STAND_IN_BINARY(Add, a[i] + b[i])
DJ_STAND_IN_BINARY(Sub, a[i] - b[i])
DJ_STAND_IN_BINARY(Mul, a[i] * b[i])
DJ_STAND_IN_BINARY(Div, a[i] / b[i])
DJ_STAND_IN_BINARY(Max, a[i] < b[i] ? b[i] : a[i])
DJ_STAND_IN_BINARY(Min, b[i] < a[i] ? b[i] : a[i])
DJ_STAND_IN_UNARY(Abs, a[i] < 0 ? -a[i] : a[i])
DJ_STAND_IN_UNARY(Relu, a[i] < 0 ? T(0) : a[i])
DJ_STAND_IN_UNARY(Exp, T(__builtin_exp(a[i])))
DJ_STAND_IN_UNARY(Sqrt, T(__builtin_sqrt(a[i])))
DJ_STAND_IN_SCALAR(Adds, a[i] + s)
DJ_STAND_IN_SCALAR(Muls, a[i] * s)
DJ_STAND_IN_SCALAR(Maxs, a[i] < s ? s : a[i])

#undef DJ_STAND_IN_BINARY
#undef DJ_STAND_IN_UNARY
#undef DJ_STAND_IN_SCALAR

template <typename T>
void Duplicate(const LocalTensor<T>& to, const T& value, int32_t count) {
    T* out = to.place(0, count);
    for (int32_t i = 0; i < count; ++i) out[i] = value;
}

}  // namespace AscendC
