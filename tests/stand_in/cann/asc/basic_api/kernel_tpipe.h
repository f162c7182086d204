// Queues of buffers. Using them in the wrong order hangs a device; here it is a fault.
#pragma once
#pragma GCC system_header

#include "kernel_tensor.h"

namespace AscendC {

template <TPosition Position, int32_t Depth>
class TQue {
public:
    template <typename T>
    LocalTensor<T> AllocTensor() {
        for (uint32_t i = 0; i < count_; ++i)
            if (state_[i] == State::free) {
                state_[i] = State::taken;
                return LocalTensor<T>(start_ + i * bytes_, bytes_);
            }
        misuse("AllocTensor: the queue has no free buffer");
    }
    template <typename T>
    bool EnQue(const LocalTensor<T>& tensor) {
        const uint32_t buffer = find(tensor, State::taken, "EnQue: the tensor was not allocated");
        if (length_ == (Depth > 0 ? Depth : 1))
            misuse("EnQue: the queue is full");
        state_[buffer] = State::queued;
        queue_[length_++] = buffer;
        return true;
    }
    template <typename T>
    LocalTensor<T> DeQue() {
        if (length_ == 0)
            misuse("DeQue: the queue is empty");
        const uint32_t buffer = queue_[0];
        for (uint32_t i = 1; i < length_; ++i) queue_[i - 1] = queue_[i];
        --length_;
        state_[buffer] = State::taken;
        return LocalTensor<T>(start_ + buffer * bytes_, bytes_);
    }
    template <typename T>
    void FreeTensor(const LocalTensor<T>& tensor) {
        state_[find(tensor, State::taken, "FreeTensor: the tensor was not allocated")] =
            State::free;
    }

private:
    friend class TPipe;
    enum class State { free, taken, queued };
    static constexpr uint32_t kMaxBuffers = 16;

    [[noreturn]] static void misuse(const char* what) {
        dj_stand_in::fault(dj_stand_in::Fault::misuse, what);
    }
    template <typename T>
    uint32_t find(const LocalTensor<T>& tensor, State state, const char* problem) const {
        for (uint32_t i = 0; i < count_; ++i)
            if (state_[i] == state &&
                start_ + i * bytes_ == reinterpret_cast<char*>(tensor.GetPhyAddr()))
                return i;
        misuse(problem);
    }

    char* start_ = nullptr;
    uint32_t bytes_ = 0, count_ = 0, length_ = 0;
    State state_[kMaxBuffers]{};
    uint32_t queue_[kMaxBuffers]{};
};

template <TPosition Position = TPosition::VECCALC>
class TBuf {
public:
    template <typename T>
    LocalTensor<T> Get() const {
        return LocalTensor<T>(start_, bytes_);
    }

private:
    friend class TPipe;
    char* start_ = nullptr;
    uint32_t bytes_ = 0;
};

class TPipe {
public:
    template <TPosition Position, int32_t Depth>
    bool InitBuffer(TQue<Position, Depth>& queue, uint8_t count, uint32_t bytes) {
        if (count > TQue<Position, Depth>::kMaxBuffers)
            dj_stand_in::fault(dj_stand_in::Fault::misuse, "InitBuffer: too many buffers");
        queue.bytes_ = (bytes + 31) / 32 * 32;
        queue.count_ = count;
        queue.start_ = take(uint64_t{count} * queue.bytes_);
        return true;
    }
    template <TPosition Position>
    bool InitBuffer(TBuf<Position>& buffer, uint32_t bytes) {
        buffer.bytes_ = (bytes + 31) / 32 * 32;
        buffer.start_ = take(buffer.bytes_);
        return true;
    }

private:
    static char* take(uint64_t bytes) {
        auto* core = dj_stand_in::core;
        if (bytes > core->ub_bytes - core->ub_used)
            dj_stand_in::fault(dj_stand_in::Fault::misuse,
                               "InitBuffer: the unified buffer is too small");
        char* out = core->ub + core->ub_used;
        core->ub_used += bytes;
        return out;
    }
};

}  // namespace AscendC
