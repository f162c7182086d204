// Unique names for staging directories and temporary files.
#pragma once

#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>

#include <deep_jit/utils/hash.hpp>
#include <deep_jit/utils/str.hpp>

namespace deep_jit {

/// 32 hexadecimal digits, unique across threads, forked children, processes and hosts: fresh
/// random bits of the kernel at every call, so a forked child never repeats its parent's names.
inline std::string get_uuid() {
    std::uint64_t bits[2] = {};
    std::size_t have = 0;
    while (have < sizeof(bits)) {
        const auto n =
            ::getrandom(reinterpret_cast<char*>(bits) + have, sizeof(bits) - have, GRND_NONBLOCK);
        if (n > 0)
            have += static_cast<std::size_t>(n);
        else if (errno != EINTR)
            break;
    }
    if (have < sizeof(bits)) {
        // No entropy (early boot, seccomp): time, process and a counter are still unique here.
        static std::atomic<std::uint64_t> counter{0};
        hash::FastHash mixer;
        mixer.add(static_cast<std::uint64_t>(
            std::chrono::steady_clock::now().time_since_epoch().count()));
        mixer.add(static_cast<std::uint64_t>(::getpid()));
        bits[0] = mixer.value();
        bits[1] = (static_cast<std::uint64_t>(::getpid()) << 32) | counter.fetch_add(1);
    }
    return str::to_hex(bits[0]) + str::to_hex(bits[1]);
}

}  // namespace deep_jit
