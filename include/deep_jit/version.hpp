// The library's version. The build files read it from here.
#pragma once

#define DEEP_JIT_VERSION_MAJOR 0
#define DEEP_JIT_VERSION_MINOR 1
#define DEEP_JIT_VERSION_PATCH 0

/// Grows with each version: `#if DEEP_JIT_VERSION >= 10200` is "1.2.0 or newer".
#define DEEP_JIT_VERSION \
    (DEEP_JIT_VERSION_MAJOR * 10000 + DEEP_JIT_VERSION_MINOR * 100 + DEEP_JIT_VERSION_PATCH)
#define DEEP_JIT_VERSION_STRING "0.1.0"
