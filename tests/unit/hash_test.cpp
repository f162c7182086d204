#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <deep_jit/utils/hash.hpp>

#include "support.hpp"

namespace {

using deep_jit::hash::checksum;
using deep_jit::hash::FastHash;
using deep_jit::hash::FNV1a;
using deep_jit::hash::get_hex_digest;

bool is_hex(const std::string& text) {
    return text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

TEST(Digest, IsAFormat) {
    // These values name entries on disk: a change makes every cache cold.
    EXPECT_EQ(FNV1a().get_hex_digest(), FNV1a().get_hex_digest());
    EXPECT_EQ(get_hex_digest("").size(), 32u);
    EXPECT_TRUE(is_hex(get_hex_digest("abc")));
    EXPECT_EQ(get_hex_digest(""), "5e1053e00f6396155eb600c4ad3e821f");
    EXPECT_EQ(get_hex_digest("abc"), "69944e10ae414fca276ed007aeeda30b");
    EXPECT_EQ(checksum(""), "4cfe2d99f6f6e504");
    EXPECT_EQ(checksum("The quick brown fox jumps over the lazy dog"), "958a6d8746cc761a");
}

TEST(Digest, BoundariesCount) {
    const auto of = [](const std::vector<std::string>& parts) {
        FNV1a hash;
        for (const auto& part : parts) hash.update(part);
        return hash.get_hex_digest();
    };
    const std::vector<std::vector<std::string>> lists = {{},
                                                         {""},
                                                         {"", ""},
                                                         {"ab", "c"},
                                                         {"a", "bc"},
                                                         {"abc"},
                                                         {"abc", ""},
                                                         {"", "abc"},
                                                         {"a", "b", "c"},
                                                         {std::string("\0", 1)},
                                                         {std::string("\0\0", 2)},
                                                         {std::string("a\0", 2)},
                                                         {std::string("a\0b", 3)},
                                                         {"a", std::string("\0", 1)}};
    std::map<std::string, std::size_t> seen;
    for (std::size_t i = 0; i < lists.size(); ++i)
        EXPECT_TRUE(seen.emplace(of(lists[i]), i).second)
            << "lists " << i << " and " << seen[of(lists[i])] << " have one digest";
}

TEST(Digest, GoesOnAfterItWasRead) {
    FNV1a hash;
    hash.update("a");
    const auto first = hash.get_hex_digest();
    EXPECT_EQ(hash.get_hex_digest(), first);
    hash.update("b");
    EXPECT_EQ(hash.get_hex_digest(), FNV1a().update("a").update("b").get_hex_digest());
    EXPECT_NE(hash.get_hex_digest(), first);
}

TEST(Digest, EveryBitOfEveryByteCounts) {
    const std::string base(64, 'x');
    std::set<std::string> seen{get_hex_digest(base)};
    for (std::size_t i = 0; i < base.size(); ++i)
        for (int bit = 0; bit < 8; ++bit) {
            std::string other = base;
            other[i] = static_cast<char>(other[i] ^ (1 << bit));
            seen.insert(get_hex_digest(other));
        }
    EXPECT_EQ(seen.size(), 1 + 64u * 8);
}

TEST(Checksum, EveryBitOfEveryByteAndTheLengthCount) {
    for (const std::size_t size : {0u, 1u, 7u, 8u, 9u, 31u, 32u, 33u, 40u, 63u, 64u, 71u, 200u}) {
        std::string base;
        for (std::size_t i = 0; i < size; ++i) base += static_cast<char>(i * 37);
        std::set<std::string> seen{checksum(base)};
        EXPECT_EQ(checksum(base).size(), 16u);
        for (std::size_t i = 0; i < size; ++i) {
            for (int bit = 0; bit < 8; ++bit) {
                std::string other = base;
                other[i] = static_cast<char>(other[i] ^ (1 << bit));
                EXPECT_TRUE(seen.insert(checksum(other)).second) << size << " " << i << " " << bit;
            }
            EXPECT_NE(checksum(base.substr(0, i)), checksum(base)) << size << " cut to " << i;
        }
        EXPECT_NE(checksum(base + '\0'), checksum(base)) << "a zero byte more";
    }
}

TEST(Checksum, OrderOfWordsCounts) {
    EXPECT_NE(checksum("aaaaaaaabbbbbbbb"), checksum("bbbbbbbbaaaaaaaa"));
    const std::string block = "0123456789abcdef0123456789ABCDEF";
    const std::string other = "fedcba9876543210FEDCBA9876543210";
    EXPECT_NE(checksum(block + other), checksum(other + block));
}

std::uint64_t fast(std::string_view bytes) {
    FastHash hash;
    hash.add(bytes);
    return hash.value();
}

TEST(FastHash, EqualBytesGiveEqualHashesWhereverTheyLie) {
    std::mt19937_64 random(1);
    for (std::size_t size = 0; size < 700; ++size) {
        std::string bytes(size, '\0');
        for (char& c : bytes) c = static_cast<char>(random());
        // Exact allocations at several alignments: a read past the end shows under ASan.
        for (std::size_t shift = 0; shift < 8; ++shift) {
            const auto copy = std::make_unique<char[]>(size + shift);
            std::memcpy(copy.get() + shift, bytes.data(), size);
            EXPECT_EQ(fast({copy.get() + shift, size}), fast(bytes)) << size << " " << shift;
        }
    }
}

TEST(FastHash, EveryByteAndTheLengthCount) {
    for (std::size_t size = 0; size < 530; ++size) {
        const std::string base(size, 'q');
        std::set<std::uint64_t> seen{fast(base), fast(base + "q"), fast(base + '\0')};
        for (std::size_t i = 0; i < size; ++i) {
            std::string other = base;
            other[i] = 'r';
            seen.insert(fast(other));
        }
        EXPECT_EQ(seen.size(), size + 3) << size;
    }
}

TEST(FastHash, BoundariesCount) {
    const auto two = [](std::string_view a, std::string_view b) {
        FastHash hash;
        hash.add(a);
        hash.add(b);
        return hash.value();
    };
    EXPECT_NE(two("ab", "c"), two("a", "bc"));
    EXPECT_NE(two("", "abc"), two("abc", ""));
    EXPECT_NE(two("abc", ""), fast("abc"));
}

TEST(FastHash, LowBitsSpread) {
    // The hot table takes the low bits: 4096 similar sources must fill 4096 slots like chance does.
    std::set<std::uint64_t> slots;
    for (int i = 0; i < 4096; ++i) slots.insert(fast("kernel_" + std::to_string(i)) & 4095);
    EXPECT_GT(slots.size(), 2400u);  // chance: 2589 +- 26
    EXPECT_LT(slots.size(), 2800u);
}

}  // namespace
