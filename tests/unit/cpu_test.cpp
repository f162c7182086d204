#include <sched.h>

#include <thread>

#include <deep_jit/utils/cpu.hpp>

#include "support.hpp"

namespace {

TEST(Cpu, AtLeastOneAndNoMoreThanThereAre) {
    EXPECT_GE(deep_jit::available_cpus(), 1);
    EXPECT_LE(deep_jit::available_cpus(),
              std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

TEST(Cpu, TheAffinityMaskCounts) {
    const auto result = deep_jit_test::run_child([] {
        cpu_set_t all, one;
        if (::sched_getaffinity(0, sizeof(all), &all) != 0)
            return 1;
        CPU_ZERO(&one);
        for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
            if (CPU_ISSET(i, &all))
                CPU_SET(i, &one);
        if (::sched_setaffinity(0, sizeof(one), &one) != 0)
            return 2;
        return deep_jit::available_cpus() == 1 ? 0 : 3;
    });
    EXPECT_TRUE(result.ok()) << result;
}

}  // namespace
