/* C API of the stand-in libacl_rt.so, beside ACL itself: what was launched, what is alive, failures
 * on demand. Resolve the functions with dlsym from the same library, or use stand_in_cann.hpp. All
 * are safe to call from any thread and need no aclInit. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char* kernel; /* the name without _mix_aic or _mix_aiv; valid until reset or restart */
    uint32_t num_blocks;
    void* stream; /* as given */
    int32_t device;
    size_t args_size;
    int has_config;        /* cfg was not NULL */
    int64_t dyn_ubuf_size; /* attribute 2; -1 without it. So are the next ones */
    int64_t timeout;       /* attribute 7, seconds */
    int64_t timeout_us;    /* attribute 8 */
    int64_t schem_mode;    /* attribute 1 */
} dj_stand_in_cann_launch_t;

/* The version that the stand-in pretends to be: 90100 for CANN 9.1.0. */
int dj_stand_in_cann_version(void);

/* Launches since the last reset, in order; calls that failed are not among them. */
size_t dj_stand_in_cann_launch_count(void);
/* 0 and *out filled, or -1 when there is no such launch. */
int dj_stand_in_cann_launch(size_t launch, dj_stand_in_cann_launch_t* out);
/* Size of a launch's argument buffer, of which up to `capacity` bytes are copied to `out` (may be
 * NULL). (size_t)-1 when there is no such launch. */
size_t dj_stand_in_cann_arguments(size_t launch, void* out, size_t capacity);

/* Binaries loaded since the last reset, and what is alive. */
size_t dj_stand_in_cann_binary_loads(void);
size_t dj_stand_in_cann_live_binaries(void);
size_t dj_stand_in_cann_live_streams(void); /* without the default ones */
size_t dj_stand_in_cann_live_events(void);
size_t dj_stand_in_cann_live_allocations(void); /* of the device */
/* How often an ACL function was called, successfully or not; "" is all of them. */
size_t dj_stand_in_cann_calls(const char* function);

/* After `skip` further calls, one call of `function` returns `code` and does nothing else. Several
 * may be queued. */
void dj_stand_in_cann_fail(const char* function, int code, size_t skip);

/* Between hold and release no stream starts anything. */
void dj_stand_in_cann_hold(void);
void dj_stand_in_cann_release(void);

/* Forgets records, counts and queued failures; releases. Handles stay valid. */
void dj_stand_in_cann_reset(void);
/* As a new process: waits for all streams, then every handle becomes invalid, aclInit is needed
 * again, the environment is read again. Only while no other thread is in ACL. */
void dj_stand_in_cann_restart(void);

#ifdef __cplusplus
}
#endif
