// The bytes that a kernel gets, for forty argument lists.
#include <deep_jit/backend/ascend/pack.hpp>

#include <cstdint>
#include <cstring>

#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

using Bytes = std::string;

/// Packs into memory that is full of other things.
template <typename... Args>
Bytes packed(const Args&... args) {
    void* const pointers[sizeof...(Args) + 1] = {argument_pointer(args)..., nullptr};
    unsigned char out[ascend::kMaxArgumentBytes];
    std::memset(out, 0xee, sizeof(out));
    const auto size = ascend::pack_arguments(
        "k", Arguments{pointers, detail::kArgumentInfos<Args...>, sizeof...(Args)}, out);
    return Bytes(reinterpret_cast<const char*>(out), size);
}

/// "01 .. 0a" to bytes: `..` is a zero byte.
Bytes hex(std::string_view text) {
    Bytes out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == ' ')
            continue;
        const auto digit = [](char c) { return c == '.' ? 0 : c <= '9' ? c - '0' : c - 'a' + 10; };
        out += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
        ++i;
    }
    return out;
}

// Values whose bytes, lowest first, count up.
constexpr std::int8_t i8 = 0x11;
constexpr std::uint8_t u8 = 0x12;
constexpr bool yes = true;
constexpr std::int16_t i16 = 0x2221;
constexpr std::int32_t i32 = 0x34333231;
constexpr std::uint32_t u32 = 0x38373635;
constexpr std::int64_t i64 = 0x4847464544434241;
const float f32 = 1.0F;                                       // .. .. 80 3f
const double f64 = -2.0;                                      // .. .. .. .. .. .. .. c0
void* const p = reinterpret_cast<void*>(0x0000700060005000);  // .. 50 .. 60 .. 70 .. ..
const char* const q = nullptr;

struct Three {
    char bytes[3] = {'a', 'b', 'c'};
};
struct Half {
    std::uint16_t bits = 0x3c3b;
};
struct Pair {
    std::int32_t a = 0x54535251;
    std::int32_t b = 0x58575655;
};
struct Mixed {
    std::int32_t a = 0x54535251;
    std::int32_t b = 0x58575655;
    std::int64_t c = 0x4847464544434241;
};
struct alignas(16) Wide {
    std::uint64_t a = 0x6867666564636261;
    std::uint64_t b = 0x706f6e6d6c6b6a69;
};
enum class Mode : std::uint8_t { kFast = 0x7f };

TEST(AscendPack, FortyListsOfArguments) {
    const Bytes kP = hex(".. 50 .. 60 .. 70 .. ..");
    const Bytes kQ(8, '\0');
    const Bytes kI64 = hex("41 42 43 44 45 46 47 48");
    const Bytes kF64 = hex(".. .. .. .. .. .. .. c0");
    // None, and one of each kind.
    EXPECT_EQ(packed(), "");
    EXPECT_EQ(packed(i8), hex("11 .. .. .. .. .. .. .."));
    EXPECT_EQ(packed(u8), hex("12 .. .. .. .. .. .. .."));
    EXPECT_EQ(packed(yes), hex("01 .. .. .. .. .. .. .."));
    EXPECT_EQ(packed(i16), hex("21 22 .. .. .. .. .. .."));
    EXPECT_EQ(packed(i32), hex("31 32 33 34 .. .. .. .."));
    EXPECT_EQ(packed(f32), hex(".. .. 80 3f .. .. .. .."));
    EXPECT_EQ(packed(i64), kI64);
    EXPECT_EQ(packed(f64), kF64);
    EXPECT_EQ(packed(p), kP);
    EXPECT_EQ(packed(q), kQ);
    EXPECT_EQ(packed(Mode::kFast), hex("7f .. .. .. .. .. .. .."));
    EXPECT_EQ(packed(Half{}), hex("3b 3c .. .. .. .. .. .."));
    EXPECT_EQ(packed(Three{}), hex("61 62 63 .. .. .. .. .."));
    EXPECT_EQ(packed(Pair{}), hex("51 52 53 54 55 56 57 58"));
    // Small ones start at multiples of 4.
    EXPECT_EQ(packed(i8, i8), hex("11 .. .. .. 11 .. .. .."));
    EXPECT_EQ(packed(i8, u8, yes), hex("11 .. .. .. 12 .. .. .. 01 .. .. .. .. .. .. .."));
    EXPECT_EQ(packed(i8, i8, i16, f32), hex("11 .. .. .. 11 .. .. .. 21 22 .. .. .. .. 80 3f"));
    EXPECT_EQ(packed(i16, i16), hex("21 22 .. .. 21 22 .. .."));
    EXPECT_EQ(packed(yes, i32), hex("01 .. .. .. 31 32 33 34"));
    EXPECT_EQ(packed(Half{}, Half{}, Half{}),
              hex("3b 3c .. .. 3b 3c .. .. 3b 3c .. .. .. .. .. .."));
    EXPECT_EQ(packed(Three{}, Three{}), hex("61 62 63 .. 61 62 63 .."));
    EXPECT_EQ(packed(Three{}, i32, Three{}),
              hex("61 62 63 .. 31 32 33 34 61 62 63 .. .. .. .. .."));
    // Words follow each other.
    EXPECT_EQ(packed(i32, u32), hex("31 32 33 34 35 36 37 38"));
    EXPECT_EQ(packed(i32, f32, u32), hex("31 32 33 34 .. .. 80 3f 35 36 37 38 .. .. .. .."));
    EXPECT_EQ(packed(p, u32, i32), kP + hex("35 36 37 38 31 32 33 34"));
    EXPECT_EQ(packed(Pair{}, i32), hex("51 52 53 54 55 56 57 58 31 32 33 34 .. .. .. .."));
    EXPECT_EQ(packed(i32, Pair{}), hex("31 32 33 34 51 52 53 54 55 56 57 58 .. .. .. .."));
    // What needs 8 starts at multiples of 8.
    EXPECT_EQ(packed(yes, f64), hex("01 .. .. .. .. .. .. ..") + kF64);
    EXPECT_EQ(packed(i32, p), hex("31 32 33 34 .. .. .. ..") + kP);
    EXPECT_EQ(packed(p, i32), kP + hex("31 32 33 34 .. .. .. .."));
    EXPECT_EQ(packed(i32, i32, i64), hex("31 32 33 34 31 32 33 34") + kI64);
    EXPECT_EQ(packed(i32, i64, i32),
              hex("31 32 33 34 .. .. .. ..") + kI64 + hex("31 32 33 34 .. .. .. .."));
    EXPECT_EQ(packed(p, q, p), kP + kQ + kP);
    EXPECT_EQ(packed(i8, Mixed{}), hex("11 .. .. .. .. .. .. .. 51 52 53 54 55 56 57 58") + kI64);
    // What needs more starts there, but the whole is a multiple of 8 only.
    EXPECT_EQ(packed(i32, Wide{}, i8),
              hex("31 32 33 34 .. .. .. .. .. .. .. .. .. .. .. .. 61 62 63 64 65 66 67 68 "
                  "69 6a 6b 6c 6d 6e 6f 70 11 .. .. .. .. .. .. .."));
    // The documented ones: 5 pointers and 3 int32 are 56 bytes, a mixed list is 64.
    EXPECT_EQ(packed(p, p, p, p, p, i32, i32, i32),
              kP + kP + kP + kP + kP + hex("31 32 33 34 31 32 33 34 31 32 33 34 .. .. .. .."));
    EXPECT_EQ(packed(p, p, p, p, p, i32, i32, i32).size(), 56U);
    EXPECT_EQ(packed(p, i8, q, f32, p, i64, q, f64), kP + hex("11 .. .. .. .. .. .. ..") + kQ +
                                                         hex(".. .. 80 3f .. .. .. ..") + kP +
                                                         kI64 + kQ + kF64);
    EXPECT_EQ(packed(i32, i32, i32, i32, i32, i32, i32),
              hex("31 32 33 34 31 32 33 34 31 32 33 34 31 32 33 34 31 32 33 34 31 32 33 34 "
                  "31 32 33 34 .. .. .. .."));
}

TEST(AscendPack, ANullPointerIsAnArgumentLikeAnyOther) {
    EXPECT_EQ(packed(nullptr, i32), std::string(8, '\0') + hex("31 32 33 34 .. .. .. .."));
}

struct TensorMap : NoRefPtr {};

TEST(AscendPack, WhatCannotBePassed) {
    const auto text = message_of<LaunchError>([] { packed(i32, TensorMap{{nullptr}}); });
    EXPECT_CONTAINS(text, "argument 1 must not be null");
    EXPECT_CONTAINS(text, "kernel k");
    char storage[8] = {};
    EXPECT_CONTAINS(message_of<LaunchError>([&] { packed(TensorMap{{storage}}); }),
                    "argument 0 is a NoRefPtr, whose size is not known");
}

TEST(AscendPack, AsMuchAsFitsAndNoMore) {
    struct Large {
        char bytes[ascend::kMaxArgumentBytes];
    };
    const auto large = std::make_unique<Large>();
    std::memset(large->bytes, 'x', sizeof(large->bytes));
    EXPECT_EQ(packed(*large), std::string(4096, 'x'));
    EXPECT_CONTAINS(message_of<LaunchError>([&] { packed(i8, *large); }),
                    "argument 1 does not fit");
    EXPECT_CONTAINS(message_of<LaunchError>([&] { packed(*large, i8); }),
                    "argument 1 does not fit");
}

}  // namespace
