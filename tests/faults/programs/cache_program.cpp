// cache_program NUMBER...: compiles these kernels with the fake backend below DJ_JIT_CACHE_DIR and
// checks that each is the right one. Prints how many were compiled and how many came from disk.
// Status 0: every kernel works; 1: one was wrong; 2: one was refused.
#include <cstdio>
#include <exception>
#include <string>

#include "unit/fake_backend.hpp"

int main(int argc, char** argv) {
    using namespace deep_jit_test;
    try {
        FakeRuntime jit(deep_jit::Config("/", "FAULT"));
        for (int i = 1; i < argc; ++i) {
            const auto source = "kernel " + std::string(argv[i]) + std::string(5000, '.');
            if (jit.compile("fault", source)->text != expected_artifact(jit, source)) {
                std::fprintf(stderr, "kernel %s is a wrong one\n", argv[i]);
                return 1;
            }
        }
        const auto statistics = jit.statistics();
        std::printf("%d %d\n", static_cast<int>(statistics.compiled),
                    static_cast<int>(statistics.disk_hits));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
