// Indices, synchronisation and calls of SIMD vector functions.
#pragma once
#pragma GCC system_header

#include <utility>

#define GM_ADDR __gm__ uint8_t*

/// Calls a SIMD vector function.
template <auto Function, typename... Arguments>
static inline void asc_vf_call(Arguments&&... arguments) {
    ::dj_stand_in::core->poll(::dj_stand_in::core);
    Function(std::forward<Arguments>(arguments)...);
}

namespace AscendC {

enum class HardEvent { MTE2_V, V_MTE2, V_MTE3, MTE3_V, MTE2_S, S_MTE2, S_MTE3, MTE3_S, V_S, S_V };

static inline int64_t GetSubBlockIdx() { return get_subblockid(); }
static inline int64_t GetSubBlockNum() { return get_subblockdim(); }
static inline int64_t GetBlockNum() { return get_block_num(); }
/// Of a vector core in a mix kernel: among all vector cores.
static inline int64_t GetBlockIdx() {
    return ASCEND_IS_AIC ? get_block_idx() : get_block_idx() * get_subblockdim() + get_subblockid();
}

static inline void InitSocState() {}

template <pipe_t Pipe>
static inline void PipeBarrier() {
    pipe_barrier(Pipe);
}
template <HardEvent Event>
static inline void SetFlag(int32_t) {}
template <HardEvent Event>
static inline void WaitFlag(int32_t) {}

/// Waits for all vector cores of the launch.
template <bool OnlyVectorCores = true>
static inline void SyncAll() {
    ::dj_stand_in::core->sync_all(::dj_stand_in::core);
}

/// Between the cores of one block (mode 2), from the cube core to all vector cores or back.
template <uint8_t Mode, pipe_t Pipe>
static inline void CrossCoreSetFlag(uint16_t flag) {
    static_assert(Mode == 2, "the stand-in has mode 2 only");
    ::dj_stand_in::core->set_flag(::dj_stand_in::core, flag);
}
template <uint8_t Mode = 2, pipe_t Pipe = PIPE_S>
static inline void CrossCoreWaitFlag(uint16_t flag) {
    ::dj_stand_in::core->wait_flag(::dj_stand_in::core, flag);
}

}  // namespace AscendC
