#include <cstdio>
#include <exception>

#include "mykernels.hpp"

int main() {
    try {
        mykernels::init(MYKERNELS_ROOT);
        const std::vector<float> x(4096, 2.0f);
        std::vector<float> y(4096, 1.0f);
        mykernels::saxpy(y, x, 3.0f);
        const float sum = mykernels::sum(y);
        std::printf("saxpy and sum over 4096 floats: %g, expected %g\n", sum, 4096 * 7.0f);
        return sum == 4096 * 7.0f ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
