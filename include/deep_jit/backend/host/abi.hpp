// The structures through which the runtime and a compiled kernel talk. They are written once:
// compiled here, and pasted as text in front of every kernel source. Their names are also listed in
// prelude.hpp, since a kernel may be compiled with macros of any name.
#pragma once

// NOLINTBEGIN(bugprone-macro-parentheses)
#define DJ_HOST_SHARED_ABI(...)                              \
    namespace deep_jit::host::abi {                          \
    __VA_ARGS__                                              \
    inline constexpr const char* kSourceText = #__VA_ARGS__; \
    }
// NOLINTEND(bugprone-macro-parentheses)

DJ_HOST_SHARED_ABI(
    struct Index3 {
        unsigned int x;
        unsigned int y;
        unsigned int z;
    };

    /* One block of a launch while it runs. */
    struct RunningBlock {
        Index3 grid_dim;
        Index3 block_dim;
        Index3 block_idx;
        unsigned int next_thread; /* linear index of the next thread to start */
        unsigned int num_threads; /* in the block */
        void (*barrier)(RunningBlock*);
        void* block_runner;
    };

    /* What a kernel library exports under the name deep_jit_host_entry. */
    struct KernelEntry {
        unsigned int abi_version;
        unsigned int num_params;
        const unsigned int* param_sizes;  /* bytes */
        const unsigned int* param_aligns; /* bytes */
        /* Runs threads of the block, with these arguments, from next_thread to its end, one after
         * the other. */
        void (*run_threads)(RunningBlock*, void* const*);
    };)

#undef DJ_HOST_SHARED_ABI

namespace deep_jit::host::abi {

inline constexpr unsigned int kVersion = 1;
inline constexpr const char* kEntryName = "deep_jit_host_entry";

}  // namespace deep_jit::host::abi
