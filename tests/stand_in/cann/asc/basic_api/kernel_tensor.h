// Tensors: a place in global memory or in the unified buffer, with its size.
#pragma once
#pragma GCC system_header

namespace AscendC {

enum class TPosition { GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC };
using QuePosition = TPosition;

template <typename T>
class GlobalTensor {
public:
    using PrimType = T;

    void SetGlobalBuffer(__gm__ T* buffer, uint64_t count = ~uint64_t{0}) {
        buffer_ = buffer;
        count_ = count;
    }
    GlobalTensor operator[](uint64_t offset) const {
        GlobalTensor out;
        out.SetGlobalBuffer(buffer_ + offset, count_ == ~uint64_t{0} ? count_ : count_ - offset);
        return out;
    }
    T GetValue(uint64_t index) const { return *place(index); }
    T& operator()(uint64_t index) const { return *place(index); }
    void SetValue(uint64_t index, T value) { *place(index) = value; }
    uint64_t GetSize() const { return count_; }
    __gm__ T* GetPhyAddr(uint64_t offset = 0) const { return buffer_ + offset; }

private:
    T* place(uint64_t index) const {
        if (index >= count_)
            dj_stand_in::fault(dj_stand_in::Fault::misuse, "an index outside a GlobalTensor");
        ::dj_stand_in::core->check_global(::dj_stand_in::core, buffer_ + index, sizeof(T));
        return buffer_ + index;
    }

    T* buffer_ = nullptr;
    uint64_t count_ = 0;
};

template <typename T>
class LocalTensor {
public:
    using PrimType = T;

    LocalTensor() = default;
    LocalTensor(void* start, uint32_t bytes)
        : start_(static_cast<T*>(start)), count_(bytes / sizeof(T)) {}

    LocalTensor operator[](uint32_t offset) const {
        if (offset > count_)
            dj_stand_in::fault(dj_stand_in::Fault::misuse, "an offset outside a LocalTensor");
        return LocalTensor(start_ + offset, (count_ - offset) * sizeof(T));
    }
    T GetValue(uint32_t index) const { return *place(index, 1); }
    T& operator()(uint32_t index) const { return *place(index, 1); }
    void SetValue(uint32_t index, T value) const { *place(index, 1) = value; }
    uint32_t GetSize() const { return count_; }
    template <typename U>
    LocalTensor<U> ReinterpretCast() const {
        return LocalTensor<U>(start_, count_ * sizeof(T));
    }
    __ubuf__ T* GetPhyAddr(uint32_t offset = 0) const { return start_ + offset; }

    /// Where `count` elements lie; faults when they do not fit.
    T* place(uint32_t index, uint32_t count) const {
        if (start_ == nullptr || index > count_ || count > count_ - index)
            dj_stand_in::fault(dj_stand_in::Fault::misuse, "an index outside a LocalTensor");
        return start_ + index;
    }

private:
    T* start_ = nullptr;
    uint32_t count_ = 0;
};

}  // namespace AscendC
