// The structures through which the runtime and a compiled kernel talk. They are written once:
// compiled here, and pasted as text in front of every kernel source.
#pragma once

// NOLINTBEGIN(bugprone-macro-parentheses)
#define DJ_HOST_SHARED_ABI(...)                              \
    namespace deep_jit::host::abi {                          \
    __VA_ARGS__                                              \
    inline constexpr const char* kSourceText = #__VA_ARGS__; \
    }
// NOLINTEND(bugprone-macro-parentheses)

DJ_HOST_SHARED_ABI(
    struct Index {
        unsigned int x;
        unsigned int y;
        unsigned int z;
    };

    /* One block of a launch while it runs. */
    struct Block {
        Index grid_dim;
        Index block_dim;
        Index block_idx;
        unsigned int next;  /* linear index of the next thread to start */
        unsigned int count; /* threads in the block */
        void (*barrier)(Block*);
        void* runner;
    };

    /* What a kernel library exports under the name deep_jit_host_entry. */
    struct Entry {
        unsigned int version;
        unsigned int num_params;
        const unsigned int* param_sizes; /* bytes */
        /* Runs threads of the block, from next to count, one after the other. */
        void (*run)(Block*, void* const* arguments);
    };)

#undef DJ_HOST_SHARED_ABI

namespace deep_jit::host::abi {

inline constexpr unsigned int kVersion = 1;
inline constexpr const char* kEntryName = "deep_jit_host_entry";

}  // namespace deep_jit::host::abi
