// What bisheng knows without an include: the words of Ascend C and the built-in variables and
// functions, in the meaning that they have on a CPU. Included by force before every source.
#pragma once
#pragma GCC system_header

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi.h"
#include "registers.h"

// bisheng compiles a source twice. The first object tells which kernels there are: "protected"
// functions, with the kind of their cores as the alignment. The second one runs.
#if DJ_STAND_IN_PASS == 1
#define __global__ __attribute__((visibility("protected"), used))
#define DJ_STAND_IN_KIND(kind) __attribute__((aligned(kind)))
#else
#define __global__ __attribute__((used))
#define DJ_STAND_IN_KIND(kind)
#endif
#define __vector__ DJ_STAND_IN_KIND(64)
#define __cube__ DJ_STAND_IN_KIND(128)
#define DJ_STAND_IN_MIX_1_0 DJ_STAND_IN_KIND(256)
#define DJ_STAND_IN_MIX_0_1 DJ_STAND_IN_KIND(512)
#define DJ_STAND_IN_MIX_1_1 DJ_STAND_IN_KIND(1024)
#define DJ_STAND_IN_MIX_1_2 DJ_STAND_IN_KIND(2048)
#define DJ_STAND_IN_MIX(cube, vector) DJ_STAND_IN_MIX_##cube##_##vector
#define __mix__(cube, vector) DJ_STAND_IN_MIX(cube, vector)

#define __aicore__
#define __host__
#define __host_aicore__
#define __schedmode__(...)
#define __simd_vf__
#define __simd_callee__
#define __simt_vf__
#define __simt_callee__
#define __no_simd_vf_fusion__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __gm__
#define __ubuf__
#define __ca__
#define __cb__
#define __cc__
#define __cbuf__
#define __fbuf__
#define __biasbuf__
#define __ssbuf__

#define ASCEND_IS_AIC (::dj_stand_in::core->is_cube != 0)
#define ASCEND_IS_AIV (::dj_stand_in::core->is_cube == 0)

namespace dj_stand_in {
static thread_local Core* core;

[[noreturn]] static inline void fault(Fault what, const char* text) {
    core->fault(core, what, text);
    __builtin_unreachable();
}
}  // namespace dj_stand_in

static thread_local int64_t block_idx, block_num;
static inline int64_t get_block_idx() { return block_idx; }
static inline int64_t get_block_num() { return block_num; }
static inline int64_t get_subblockid() { return ::dj_stand_in::core->sub_block_idx; }
static inline int64_t get_subblockdim() { return ::dj_stand_in::core->sub_block_num; }
static inline int64_t asc_get_block_idx() { return get_block_idx(); }
static inline int64_t asc_get_block_num() { return get_block_num(); }

[[noreturn]] static inline void trap() { ::dj_stand_in::fault(::dj_stand_in::Fault::trap, "trap"); }

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_FIX };
enum event_t {
    EVENT_ID0,
    EVENT_ID1,
    EVENT_ID2,
    EVENT_ID3,
    EVENT_ID4,
    EVENT_ID5,
    EVENT_ID6,
    EVENT_ID7
};

// The CPU does one thing after the other, so the pipes of a core need no synchronisation.
static inline void pipe_barrier(pipe_t) { ::dj_stand_in::core->poll(::dj_stand_in::core); }
static inline void set_flag(pipe_t, pipe_t, event_t) {}
static inline void wait_flag(pipe_t, pipe_t, event_t) {}
static inline void asc_sync_notify(pipe_t, pipe_t, event_t) {}
static inline void asc_sync_wait(pipe_t, pipe_t, event_t) {}

namespace dj_stand_in {
/// What `extern __ubuf__ T name[];` stands for.
static inline char* dynamic_ub() {
    if (core->dynamic_ub_bytes == 0)
        fault(Fault::misuse, "dynamic UB is used, and the launch gave none");
    return core->ub;
}

static inline void copy_blocks(char* to, const char* from, uint32_t count, uint32_t bytes,
                               uint64_t to_stride, uint64_t from_stride) {
    for (uint32_t i = 0; i < count; ++i) memcpy(to + i * to_stride, from + i * from_stride, bytes);
}
}  // namespace dj_stand_in

static inline void copy_gm_to_ubuf_align_v2(void* dst, const void* src, uint8_t, uint16_t count,
                                            uint32_t bytes, uint8_t, uint8_t, bool, uint8_t,
                                            uint64_t src_stride, uint32_t dst_stride) {
    for (uint32_t i = 0; i < count; ++i)
        ::dj_stand_in::core->check_global(::dj_stand_in::core,
                                          static_cast<const char*>(src) + i * src_stride, bytes);
    ::dj_stand_in::copy_blocks(static_cast<char*>(dst), static_cast<const char*>(src), count, bytes,
                               dst_stride, src_stride);
}

static inline void copy_ubuf_to_gm_align_v2(void* dst, const void* src, uint8_t, uint16_t count,
                                            uint32_t bytes, uint8_t, uint64_t dst_stride,
                                            uint32_t src_stride) {
    for (uint32_t i = 0; i < count; ++i)
        ::dj_stand_in::core->check_global(::dj_stand_in::core,
                                          static_cast<char*>(dst) + i * dst_stride, bytes);
    ::dj_stand_in::copy_blocks(static_cast<char*>(dst), static_cast<const char*>(src), count, bytes,
                               dst_stride, src_stride);
}
