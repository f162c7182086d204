#include <set>
#include <string>
#include <vector>

#include <deep_jit/source/digest.hpp>

#include "support.hpp"

namespace {

using deep_jit::digest_base;
using deep_jit::encode_list;
using deep_jit::kernel_digest;
using V = std::vector<std::string>;

TEST(KernelDigest, TheComponentsInTheirOrder) {
    // 1 signature, 2 compiler, 3 flags, 4 hook, 5 source: each with its length before it.
    const auto expected = deep_jit::hash::FNV1a()
                              .update("sig")
                              .update("compiler")
                              .update(std::string("\1\0\0\0\0\0\0\0a\2\0\0\0\0\0\0\0bc", 19))
                              .update("hook")
                              .update("source")
                              .get_hex_digest();
    EXPECT_EQ(kernel_digest(digest_base("sig", "compiler"), {"a", "bc"}, "hook", "source"),
              expected);
}

TEST(KernelDigest, ABaseServesManyDigests) {
    const auto base = digest_base("s", "c");
    const auto first = kernel_digest(base, {}, "", "x");
    kernel_digest(base, {"y"}, "", "x");
    EXPECT_EQ(kernel_digest(base, {}, "", "x"), first);
}

TEST(KernelDigest, EveryComponentCountsAndBoundariesToo) {
    struct Inputs {
        std::string signature, compiler;
        V flags;
        std::string hook, source;
    };
    const std::string nul(1, '\0');
    const std::vector<Inputs> all = {
        {"", "", {}, "", ""},
        {"a", "", {}, "", ""},
        {"", "a", {}, "", ""},
        {"", "", {"a"}, "", ""},
        {"", "", {}, "a", ""},
        {"", "", {}, "", "a"},
        {"ab", "c", {}, "", ""},
        {"a", "bc", {}, "", ""},
        {"", "", {""}, "", ""},
        {"", "", {"", ""}, "", ""},
        {"", "", {"a b"}, "", ""},
        {"", "", {"a", "b"}, "", ""},
        {"", "", {"b", "a"}, "", ""},
        {"", "", {"ab"}, "", ""},
        {"", "", {"-DX=1", "-DY=2"}, "", ""},
        {"", "", {"-DY=2", "-DX=1"}, "", ""},
        {"", "", {"-DX=1 -DY=2"}, "", ""},
        {"", "", {"-DX=1-DY=2"}, "", ""},
        {nul, "", {}, "", ""},
        {nul + nul, "", {}, "", ""},
        {"", nul, {}, "", ""},
        {"", "", {nul}, "", ""},
        {"", "", {"a" + nul + "b"}, "", ""},
        {"", "", {encode_list({"a", "b"})}, "", ""},
        {"", "", {}, encode_list({"a", "b"}), ""},
    };
    std::set<std::string> seen;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& in = all[i];
        const auto digest =
            kernel_digest(digest_base(in.signature, in.compiler), in.flags, in.hook, in.source);
        EXPECT_EQ(digest.size(), 32u);
        EXPECT_TRUE(seen.insert(digest).second) << i;
    }
}

TEST(KernelDigest, NoTwoListsOfShortStringsShareACode) {
    // Every list of up to 3 strings of up to 2 letters from a small alphabet.
    const V words = {
        "", "a", "b", " ", "ab", "a ", " b", std::string("\0", 1), std::string("\1\0", 2)};
    std::set<std::string> seen;
    std::size_t count = 0;
    const auto add = [&](const V& list) {
        ++count;
        EXPECT_TRUE(seen.insert(encode_list(list)).second);
    };
    add({});
    for (const auto& a : words) {
        add({a});
        for (const auto& b : words) {
            add({a, b});
            for (const auto& c : words) add({a, b, c});
        }
    }
    EXPECT_EQ(seen.size(), count);
}

}  // namespace
