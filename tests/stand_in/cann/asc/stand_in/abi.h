// What the stand-in's runtime and a kernel that its bisheng compiled know of each other. C++17.
#pragma once

#include <stdint.h>

namespace dj_stand_in {

inline constexpr uint32_t kAbiVersion = 1;

enum class Fault : int32_t { trap, out_of_range, misuse };

/// One core while it runs a block. The kernel reads the numbers; the functions are the runtime's.
/// Those that find something wrong do not return: they throw through the kernel.
struct Core {
    int64_t block_idx;
    int64_t block_num;
    int64_t sub_block_idx;
    int64_t sub_block_num;
    int64_t is_cube;  ///< the cube core of a mix kernel, or of a cube kernel
    char* ub;         ///< unified buffer
    uint64_t ub_bytes;
    uint64_t dynamic_ub_bytes;  ///< at the start of ub
    uint64_t ub_used;           ///< dynamic, and what pipes have taken

    void (*fault)(Core*, Fault, const char* what);
    void (*check_global)(Core*, const void*, uint64_t bytes);  ///< faults
    void (*poll)(Core*);                                       ///< ends a kernel that timed out
    /// Runs `thread` for x * y * z threads; it is told its linear index.
    void (*run_threads)(Core*, uint32_t x, uint32_t y, uint32_t z,
                        void (*thread)(void* context, uint32_t index), void* context);
    void (*thread_barrier)(Core*);
    void (*sync_all)(Core*);  ///< all cores of the launch
    /// Between the cube core and the vector cores of one block.
    void (*set_flag)(Core*, uint32_t flag);
    void (*wait_flag)(Core*, uint32_t flag);
};

struct Param {
    uint32_t offset;
    uint32_t bytes;
};

struct KernelEntry {
    const char* name;  ///< as ACL knows it: the mangled name without _mix_aic or _mix_aiv
    void (*run)(Core*, const void* arguments);
    const Param* params;
    uint32_t num_params;
    uint32_t argument_bytes;  ///< rounded up to 8
    uint32_t cube_cores;      ///< for one block
    uint32_t vector_cores;
    uint32_t vf_flag;  ///< as in the meta section: 0 unknown, 1 none, 2 SIMD, 3 SIMT, 4 both
};

/// Found in a linked object under the name dj_stand_in_kernel_table.
struct KernelTable {
    uint32_t abi_version;
    uint32_t npu_arch;
    const KernelEntry* begin;
    const KernelEntry* end;
};

}  // namespace dj_stand_in
