// <cuda.h> with its functions exported, so that a definition of `cuMemAlloc` becomes the symbol
// `cuMemAlloc_v2` with exactly the signature that clients compile against.
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

/// For exported functions that <cuda.h> does not declare under their symbol's name.
#define STAND_IN_EXPORT extern "C" __attribute__((visibility("default")))
