// What the CPU is like, in the terms of the other backends.
#pragma once

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include <deep_jit/utils/cpu.hpp>

namespace deep_jit::host {

/// Dynamic shared memory that one block may use, in bytes: as much as a large GPU gives.
inline constexpr int kMaxSharedBytes = 227 * 1024;
/// Threads that one block may have.
inline constexpr std::uint64_t kMaxBlockThreads = 1024;
/// Blocks that one grid may have.
inline constexpr std::uint64_t kMaxGridBlocks = std::uint64_t(1) << 62;

/// The machine this process runs on.
class Device {
public:
    /// CPUs that this process may use.
    int get_num_sms() const { return available_cpus(); }
    /// Level 2 cache of one core in bytes; 0 when the system does not say.
    int get_num_l2_cache_bytes() const {
        const long size = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
        return size > 0 ? static_cast<int>(size) : 0;
    }
    /// Most dynamic shared memory of a block, in bytes.
    int get_num_smem_bytes() const { return kMaxSharedBytes; }
    /// Such as "x86_64".
    std::string get_arch() const {
        utsname name{};
        return ::uname(&name) == 0 ? name.machine : "unknown";
    }
};

}  // namespace deep_jit::host
