/* C API of the stand-in libcuda.so.1, beside the driver API itself: what was launched, what is
 * alive, and failures on demand. Resolve the functions with dlsym from the same library, or use
 * stand_in_cuda.hpp. All are safe to call from any thread and, unlike the driver's, need no cuInit.
 *
 * The stand-in reads real cubins and checks what it is given as the driver would. It does not
 * execute kernels: device memory (host memory in disguise) stays as copies and memsets left it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char* kernel;   /* mangled name; valid until reset or restart */
    unsigned grid[3];     /* as given */
    unsigned block[3];    /* as given */
    unsigned cluster[3];  /* effective: launch attribute, kernel attribute or compile time;
                             zeros without a cluster */
    unsigned smem;        /* dynamic shared memory, bytes */
    void* stream;         /* handle as given; for a replay the stream of cuGraphLaunch */
    void* context;        /* CUcontext it ran in */
    int device;           /* ordinal */
    int cooperative;      /* 0 or 1 */
    int pdl;              /* programmatic stream serialization: 0 or 1 */
    int nonportable;      /* NON_PORTABLE_CLUSTER_SIZE_ALLOWED of the kernel at launch */
    int max_dynamic_smem; /* MAX_DYNAMIC_SHARED_SIZE_BYTES of the kernel at launch */
    int captured;         /* 1: became a graph node instead of running */
    int replayed;         /* 1: ran as part of cuGraphLaunch */
    int through_kernel;   /* 1: a CUkernel was passed, 0: a CUfunction */
    size_t num_arguments;
} dj_stand_in_cuda_launch_t;

/* Launches since the last reset, in order; calls that failed are not among them. */
size_t dj_stand_in_cuda_launch_count(void);
/* 0 and *out filled, or -1 when there is no such launch. */
int dj_stand_in_cuda_launch(size_t launch, dj_stand_in_cuda_launch_t* out);
/* Size of an argument's bytes (as the cubin says), of which up to `capacity` are copied to `out`
 * (may be NULL). (size_t)-1 when there is no such argument. */
size_t dj_stand_in_cuda_argument(size_t launch, size_t argument, void* out, size_t capacity);
/* 0: keep counting launches but store nothing of them (for measurements). Default 1. */
void dj_stand_in_cuda_record(int enabled);

/* Successful cuLibraryLoadData/cuModuleLoadData, the unloads, and how many are alive. */
size_t dj_stand_in_cuda_library_loads(void);
size_t dj_stand_in_cuda_library_unloads(void);
size_t dj_stand_in_cuda_live_libraries(void);
/* Device allocations, streams and events that are alive. */
size_t dj_stand_in_cuda_live_allocations(void);
size_t dj_stand_in_cuda_live_streams(void);
size_t dj_stand_in_cuda_live_events(void);
/* How often a driver function was called, successfully or not; "" is all of them. The version
 * suffix may be left out. */
size_t dj_stand_in_cuda_calls(const char* function);

/* After `skip` further calls, one call of `function` (version suffix optional) returns `code`
 * and does nothing else. Several may be queued. */
void dj_stand_in_cuda_fail(const char* function, int code, size_t skip);

/* Forgets records, counts and queued failures. Handles stay valid. */
void dj_stand_in_cuda_reset(void);
/* As a new process: every handle becomes invalid, cuInit is needed again, the environment is read
 * again. Only while no other thread is in the driver. */
void dj_stand_in_cuda_restart(void);

#ifdef __cplusplus
}
#endif
