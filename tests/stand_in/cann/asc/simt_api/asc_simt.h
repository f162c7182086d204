// SIMT vector functions: many threads on one vector core.
#pragma once
#pragma GCC system_header

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1)
        : x(x_), y(y_), z(z_) {}
};

static thread_local dim3 threadIdx(0, 0, 0), blockIdx(0, 0, 0), blockDim, gridDim;
static constexpr int warpSize = 32;

namespace dj_stand_in {

static inline void check_threads(const dim3& threads) {
    const auto count = uint64_t{threads.x} * threads.y * threads.z;
    if (count == 0 || count > 2048)
        fault(Fault::misuse, "asc_vf_call: from 1 to 2048 threads");
    if (__NPU_ARCH__ != 3510)
        fault(Fault::misuse, "asc_vf_call: this architecture has no SIMT");
}

}  // namespace dj_stand_in

/// Runs a SIMT function in all threads, and waits for them.
template <auto Function, typename... Arguments>
static inline void asc_vf_call(dim3 threads, Arguments&&... arguments) {
    dj_stand_in::core->poll(dj_stand_in::core);
    dj_stand_in::check_threads(threads);
    blockDim = threads;
    blockIdx = dim3(get_block_idx(), 0, 0);
    gridDim = dim3(get_block_num());
    auto thread = [&](uint32_t index) {
        threadIdx =
            dim3(index % threads.x, index / threads.x % threads.y, index / threads.x / threads.y);
        Function(arguments...);
    };
    using Thread = decltype(thread);
    dj_stand_in::core->run_threads(
        dj_stand_in::core, threads.x, threads.y, threads.z,
        [](void* context, uint32_t index) { (*static_cast<Thread*>(context))(index); }, &thread);
}

/// All threads of the function.
static inline void asc_syncthreads() {
    const dim3 index = threadIdx;
    dj_stand_in::core->thread_barrier(dj_stand_in::core);
    threadIdx = index;
}

namespace dj_stand_in {

static inline void copy_one_block(void* dst, const void* src, const void* global, uint16_t count,
                                  uint32_t bytes) {
    if (count != 1)
        fault(Fault::misuse, "the stand-in copies one block at a time");
    core->check_global(core, global, bytes);
    memcpy(dst, src, bytes);
}

}  // namespace dj_stand_in

template <typename... Strides>
static inline void asc_copy_ub2gm_align(void* dst, const void* src, uint16_t count, uint32_t bytes,
                                        Strides...) {
    dj_stand_in::copy_one_block(dst, src, dst, count, bytes);
}
template <typename... Strides>
static inline void asc_copy_gm2ub_align(void* dst, const void* src, uint16_t count, uint32_t bytes,
                                        Strides...) {
    dj_stand_in::copy_one_block(dst, src, src, count, bytes);
}
