// Numbers as a kernel's parameters hold them: range checks, rounding, bytes.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include <deep_jit/python/declaration.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

static_assert(std::endian::native == std::endian::little);

/// An integer from -2^63 to 2^64 - 1.
struct Integer {
    bool negative;
    std::uint64_t bits;  ///< two's complement

    double as_double() const {
        return negative ? static_cast<double>(static_cast<std::int64_t>(bits))
                        : static_cast<double>(bits);
    }
};

/// Whether a parameter of `size` bytes can hold it. A parameter of unknown kind takes what either
/// a signed or an unsigned one would.
inline bool fits(const Integer& value, ParameterKind kind, std::uint32_t size) {
    const unsigned bits = size * 8;
    if (kind == ParameterKind::boolean)
        return !value.negative && value.bits <= 1;
    if (value.negative) {
        const bool addresses =
            kind == ParameterKind::pointer || kind == ParameterKind::const_pointer;
        if (addresses || kind == ParameterKind::unsigned_integer)
            return false;
        return bits >= 64 ||
               static_cast<std::int64_t>(value.bits) >= -(std::int64_t(1) << (bits - 1));
    }
    const unsigned usable = kind == ParameterKind::signed_integer ? bits - 1 : bits;
    return usable >= 64 || value.bits >> usable == 0;
}

/// Binary floating point with `exponent_bits` and `mantissa_bits`, rounded to nearest, ties to
/// even. Nothing for a finite number that is too large.
inline std::optional<std::uint32_t> encode_float(double value, int exponent_bits,
                                                 int mantissa_bits) {
    const std::uint32_t sign = std::signbit(value) ? 1U << (exponent_bits + mantissa_bits) : 0;
    const std::uint32_t infinity = ((1U << exponent_bits) - 1) << mantissa_bits;
    if (std::isnan(value))
        return sign | infinity | 1U << (mantissa_bits - 1);
    if (std::isinf(value))
        return sign | infinity;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = 0;
    std::frexp(value, &exponent);
    exponent = std::max(exponent - 1, 1 - bias);
    auto mantissa = static_cast<std::uint32_t>(
        std::nearbyint(std::ldexp(std::fabs(value), mantissa_bits - exponent)));
    if (mantissa >> (mantissa_bits + 1) != 0) {
        mantissa >>= 1;
        ++exponent;
    }
    if (mantissa >> mantissa_bits == 0)
        return sign | mantissa;  // zero, or below the normal numbers
    const std::uint32_t bits = (static_cast<std::uint32_t>(exponent + bias) << mantissa_bits) |
                               (mantissa & ((1U << mantissa_bits) - 1));
    if (bits >= infinity)
        return std::nullopt;
    return sign | bits;
}

/// Writes `value` as the parameter's floating-point type. False when it is finite and too large
/// for it. Sizes: 2, 4 and 8 bytes.
inline bool write_float(double value, ParameterKind kind, std::uint32_t size, unsigned char* out) {
    if (size == 8) {
        std::memcpy(out, &value, 8);
        return true;
    }
    if (size == 4) {
        const auto narrow = static_cast<float>(value);
        std::memcpy(out, &narrow, 4);
        return !std::isinf(narrow) || std::isinf(value);
    }
    const auto bits =
        kind == ParameterKind::bfloat16 ? encode_float(value, 8, 7) : encode_float(value, 5, 10);
    if (!bits)
        return false;
    const auto narrow = static_cast<std::uint16_t>(*bits);
    std::memcpy(out, &narrow, 2);
    return true;
}

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
