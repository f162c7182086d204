// How many CPUs this process may use.
#pragma once

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

namespace deep_jit {

namespace detail {

/// CPUs that the container's quota allows, rounded up; 0 when there is no quota.
inline int cgroup_cpu_quota() {
    std::string quota, period;
    if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period) {
        if (quota == "max")
            return 0;
    } else {
        std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
        std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
        if (!(v1_quota >> quota) || !(v1_period >> period) || quota.starts_with('-'))
            return 0;
    }
    try {
        const double cpus = std::stod(quota) / std::stod(period);
        return cpus > 0 && cpus < 1e6 ? static_cast<int>(cpus + 0.999) : 0;
    } catch (...) {
        return 0;
    }
}

}  // namespace detail

/// CPUs that this process may use: its affinity mask and its container's quota, at least 1.
inline int available_cpus() {
    int cpus = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    // A mask that is too small for the machine is an error, so grow it.
    for (int bits = 1024; bits <= 65536; bits *= 4) {
        cpu_set_t* mask = CPU_ALLOC(bits);
        if (mask == nullptr)
            break;
        const auto size = CPU_ALLOC_SIZE(bits);
        const bool ok = ::sched_getaffinity(0, size, mask) == 0;
        if (ok)
            cpus = CPU_COUNT_S(size, mask);
        CPU_FREE(mask);
        if (ok)
            break;
    }
    const int quota = detail::cgroup_cpu_quota();
    return std::max(1, quota > 0 ? std::min(cpus, quota) : cpus);
}

}  // namespace deep_jit
