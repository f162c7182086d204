// Vector registers and the intrinsics on them that SIMD vector functions use.
#pragma once
#pragma GCC system_header

#include <stdint.h>

inline namespace __cce_simd {

constexpr int kRegisterLanes = 64;  // 256 bytes of 32-bit numbers

struct vector_f32 {
    float lane[kRegisterLanes];
};
struct vector_bool {
    bool lane[kRegisterLanes];
};

enum Pattern { PAT_ALL, PAT_ALLF };
enum LoadMode { NORM };
enum StoreMode { NORM_B32 };

static inline vector_bool pset_b32(Pattern pattern) {
    vector_bool out;
    for (bool& lane : out.lane) lane = pattern == PAT_ALL;
    return out;
}
/// The first `count` lanes, and `count` less as many.
static inline vector_bool plt_b32(uint32_t& count, int = 0) {
    vector_bool out;
    for (uint32_t i = 0; i < kRegisterLanes; ++i) out.lane[i] = i < count;
    count -= count < kRegisterLanes ? count : kRegisterLanes;
    return out;
}
static inline void vlds(vector_f32& to, const float* from, int32_t offset, LoadMode) {
    for (int i = 0; i < kRegisterLanes; ++i) to.lane[i] = from[offset + i];
}
static inline void vsts(const vector_f32& from, float* to, int32_t offset, StoreMode,
                        const vector_bool& mask) {
    for (int i = 0; i < kRegisterLanes; ++i)
        if (mask.lane[i])
            to[offset + i] = from.lane[i];
}
static inline void vadd(vector_f32& to, const vector_f32& a, const vector_f32& b,
                        const vector_bool& mask) {
    for (int i = 0; i < kRegisterLanes; ++i) to.lane[i] = mask.lane[i] ? a.lane[i] + b.lane[i] : 0;
}
static inline void vmul(vector_f32& to, const vector_f32& a, const vector_f32& b,
                        const vector_bool& mask) {
    for (int i = 0; i < kRegisterLanes; ++i) to.lane[i] = mask.lane[i] ? a.lane[i] * b.lane[i] : 0;
}

}  // namespace __cce_simd

inline namespace __cce_simt {}
