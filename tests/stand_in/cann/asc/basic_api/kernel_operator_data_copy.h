// Copies between global memory and the unified buffer, with the checks that the hardware makes.
#pragma once
#pragma GCC system_header

#include "kernel_tensor.h"

namespace AscendC {

struct DataCopyExtParams {
    uint16_t blockCount = 1;
    uint32_t blockLen = 0;  ///< bytes
    uint32_t srcStride = 0;
    uint32_t dstStride = 0;
    uint32_t rsv = 0;
};
template <typename T>
struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    T paddingValue{};
};

namespace detail {

template <typename T>
void check_blocks(uint32_t count) {
    if (count * sizeof(T) % 32 != 0)
        dj_stand_in::fault(dj_stand_in::Fault::misuse,
                           "DataCopy: the size is not a multiple of 32 bytes");
}
template <typename T>
T* global_place(const GlobalTensor<T>& tensor, uint32_t count) {
    dj_stand_in::core->check_global(dj_stand_in::core, tensor.GetPhyAddr(), count * sizeof(T));
    return tensor.GetPhyAddr();
}
inline uint32_t elements(const DataCopyExtParams& params, size_t size) {
    if (params.blockCount != 1 || params.blockLen % size != 0)
        dj_stand_in::fault(dj_stand_in::Fault::misuse, "DataCopyPad: one block of elements only");
    return params.blockLen / size;
}

}  // namespace detail

template <typename T>
void DataCopy(const LocalTensor<T>& to, const GlobalTensor<T>& from, uint32_t count) {
    detail::check_blocks<T>(count);
    memcpy(to.place(0, count), detail::global_place(from, count), count * sizeof(T));
}
template <typename T>
void DataCopy(const GlobalTensor<T>& to, const LocalTensor<T>& from, uint32_t count) {
    detail::check_blocks<T>(count);
    memcpy(detail::global_place(to, count), from.place(0, count), count * sizeof(T));
}
template <typename T>
void DataCopyPad(const LocalTensor<T>& to, const GlobalTensor<T>& from,
                 const DataCopyExtParams& params, const DataCopyPadExtParams<T>&) {
    const uint32_t count = detail::elements(params, sizeof(T));
    memcpy(to.place(0, count), detail::global_place(from, count), count * sizeof(T));
}
template <typename T>
void DataCopyPad(const GlobalTensor<T>& to, const LocalTensor<T>& from,
                 const DataCopyExtParams& params) {
    const uint32_t count = detail::elements(params, sizeof(T));
    memcpy(detail::global_place(to, count), from.place(0, count), count * sizeof(T));
}

}  // namespace AscendC
