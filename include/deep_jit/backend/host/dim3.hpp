// `dim3` for host code, with and without CUDA headers.
#pragma once

#include <cstdint>

// Where CUDA's own header can be found, its dim3 is the one: a program may use both backends.
#if __has_include(<vector_types.h>)
#include <vector_types.h>
#else
struct dim3 {
    unsigned int x = 1, y = 1, z = 1;
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)  // NOLINT
        : x(vx), y(vy), z(vz) {}
};
#endif
