// Three hashes, each for one job:
//   FNV1a      names things on disk and across machines: cache digests. Its value is a format.
//   checksum() guards the files of a cache entry. Its value is a format.
//   FastHash   finds kernels in this process. Its value may change with any release.
// None of them is cryptographic.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <deep_jit/utils/str.hpp>

namespace deep_jit::hash {

namespace detail {

inline std::uint64_t read64(const char* p) {
    std::uint64_t v;
    std::memcpy(&v, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

inline std::uint32_t read32(const char* p) {
    std::uint32_t v;
    std::memcpy(&v, p, 4);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v;
}

/// Last 0 to 7 bytes as a number, low byte first.
inline std::uint64_t read_tail(const char* p, std::size_t size) {
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < size; ++i)
        v |= std::uint64_t(static_cast<unsigned char>(p[i])) << (8 * i);
    return v;
}

inline std::uint64_t avalanche(std::uint64_t x) {
    x ^= x >> 32;
    x *= 0xe9846af9b1a615dULL;
    x ^= x >> 32;
    x *= 0xe9846af9b1a615dULL;
    x ^= x >> 28;
    return x;
}

}  // namespace detail

/// Two 64-bit FNV-1a states with different starts, mixed at the end; 128 bits in all.
/// Every update is preceded by its length as 8 bytes, so ("ab", "c") and ("a", "bc") differ.
class FNV1a {
public:
    FNV1a& update(std::string_view bytes) {
        char length[8];
        const auto size = static_cast<std::uint64_t>(bytes.size());
        for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(size >> (8 * i));
        add(std::string_view(length, 8));
        add(bytes);
        return *this;
    }

    /// 32 lower-case hexadecimal digits of everything so far; more updates may follow.
    std::string get_hex_digest() const {
        const std::uint64_t a = detail::avalanche(low_ ^ (high_ >> 29));
        const std::uint64_t b = detail::avalanche(high_ + 0x9e3779b97f4a7c15ULL * (low_ | 1));
        return str::to_hex(a) + str::to_hex(b);
    }

private:
    void add(std::string_view bytes) {
        constexpr std::uint64_t kPrime = 0x100000001b3ULL;
        std::uint64_t low = low_, high = high_;
        for (const char c : bytes) {
            const auto byte = static_cast<unsigned char>(c);
            low = (low ^ byte) * kPrime;
            high = (high ^ byte ^ 0x5a) * kPrime;
        }
        low_ = low;
        high_ = high;
    }

    std::uint64_t low_ = 0xcbf29ce484222325ULL;
    std::uint64_t high_ = 0x6c62272e07bb0142ULL;
};

/// Digest of one piece.
inline std::string get_hex_digest(std::string_view bytes) {
    return FNV1a().update(bytes).get_hex_digest();
}

/// 64-bit checksum of a file's bytes, in 16 hexadecimal digits. Four independent chains of
/// invertible steps, so any change within one 8-byte word changes the result for certain.
inline std::string checksum(std::string_view bytes) {
    constexpr std::uint64_t kPrime = 0x9fb21c651e98df25ULL;
    std::uint64_t lane[4] = {0x243f6a8885a308d3ULL, 0x13198a2e03707344ULL, 0xa4093822299f31d0ULL,
                             0x082efa98ec4e6c89ULL};
    const auto step = [](std::uint64_t state, std::uint64_t word) {
        state = (state ^ word) * kPrime;
        return state ^ (state >> 31);
    };
    const char* p = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 32; left -= 32, p += 32)
        for (int i = 0; i < 4; ++i) lane[i] = step(lane[i], detail::read64(p + 8 * i));
    for (int i = 0; left >= 8; left -= 8, p += 8, ++i) lane[i] = step(lane[i], detail::read64(p));
    lane[3] = step(lane[3], detail::read_tail(p, left));
    std::uint64_t result = static_cast<std::uint64_t>(bytes.size());
    for (const auto value : lane) result = step(result, value);
    return str::to_hex(detail::avalanche(result));
}

/// Hash for in-memory tables: a few bytes a cycle, good spread, no stable value.
class FastHash {
public:
    void add(std::uint64_t word) { state_ = mix(state_ ^ word, kSecret[1]); }

    void add(std::string_view bytes) {
        const char* p = bytes.data();
        const std::size_t size = bytes.size();
        const char* const end = p + size;
        const std::uint64_t seed = state_ ^ (static_cast<std::uint64_t>(size) * kSecret[0]);
        if (size <= 16) {
            std::uint64_t first = 0, last = 0;
            if (size >= 8) {
                first = detail::read64(p);
                last = detail::read64(end - 8);
            } else if (size >= 4) {
                first = detail::read32(p);
                last = detail::read32(end - 4);
            } else {
                first = detail::read_tail(p, size);
            }
            state_ = mix(first ^ kSecret[3], last ^ seed);
            return;
        }
        // Several chains, so that multiplications overlap. The last block may overlap the one
        // before.
        std::uint64_t a = seed, b = seed ^ kSecret[1], c = seed ^ kSecret[2], d = seed ^ kSecret[3];
        if (size <= 64) {
            const std::size_t step = size > 32 ? 16 : 0;
            a = absorb(p, a, 0);
            b = absorb(p + step, b, 1);
            c = absorb(end - 16 - step, c, 2);
            d = absorb(end - 16, d, 3);
        } else {
            if (size > 256) {
                std::uint64_t e = ~a, f = ~b, g = ~c, h = ~d;
                for (; end - p > 128; p += 128) {
                    a = absorb(p, a, 0);
                    b = absorb(p + 16, b, 1);
                    c = absorb(p + 32, c, 2);
                    d = absorb(p + 48, d, 3);
                    e = absorb(p + 64, e, 0);
                    f = absorb(p + 80, f, 1);
                    g = absorb(p + 96, g, 2);
                    h = absorb(p + 112, h, 3);
                }
                a = mix(a ^ kSecret[0], e);
                b = mix(b ^ kSecret[1], f);
                c = mix(c ^ kSecret[2], g);
                d = mix(d ^ kSecret[3], h);
            }
            const auto block = [&](const char* at) {
                a = absorb(at, a, 0);
                b = absorb(at + 16, b, 1);
                c = absorb(at + 32, c, 2);
                d = absorb(at + 48, d, 3);
            };
            for (; end - p > 64; p += 64) block(p);
            block(end - 64);
        }
        state_ = mix((a ^ b) + (c ^ d), seed ^ kSecret[3]);
    }

    std::uint64_t value() const { return mix(state_ ^ kSecret[0], kSecret[2]); }

private:
    static constexpr std::uint64_t kSecret[4] = {0x2d358dccaa6c78a5ULL, 0x8bb84b93962eacc9ULL,
                                                 0x4b33a62ed433d4a3ULL, 0x4d5a2da51de1aa47ULL};

    /// 16 bytes into a chain.
    static std::uint64_t absorb(const char* p, std::uint64_t chain, int secret) {
        return mix(detail::read64(p) ^ kSecret[secret], detail::read64(p + 8) ^ chain);
    }

    static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
        __extension__ using Wide = unsigned __int128;
        const Wide product = static_cast<Wide>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }

    std::uint64_t state_ = 0x1f83d9abfb41bd6bULL;
};

}  // namespace deep_jit::hash
