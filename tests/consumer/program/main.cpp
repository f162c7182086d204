#include <cstdio>

#include <all_headers.hpp>

#include "kernels.hpp"

#ifdef WITH_PLUGIN
int answer();
#else
static int answer() { return inline_variable() == &deep_jit::kGlobalEnvPrefix ? 42 : 0; }
#endif

int main() {
    try {
        if (triple({1, 2, 3}) != std::vector<int>{3, 6, 9} || answer() != 42) {
            std::puts("wrong result");
            return 1;
        }
        std::puts("right");
        return 0;
    } catch (const std::exception& error) {
        std::printf("%s\n", error.what());
        return 1;
    }
}
