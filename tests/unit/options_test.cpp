#include <set>
#include <string>
#include <vector>

#include <deep_jit/runtime/options.hpp>

#include "fake_backend.hpp"
#include "support.hpp"

namespace {

using deep_jit_test::FakeCompilerOptions;
using O = FakeCompilerOptions;

std::uint64_t hash_of(const O& options) {
    deep_jit::hash::FastHash hash;
    deep_jit::hash_options(hash, options);
    return hash.value();
}

TEST(Options, UnsetFieldsInherit) {
    const O base{
        .level = "2", .fast = true, .flags = std::vector<std::string>{"a"}, .extra_flags = {"x"}};
    const O same = base.override_with({});
    EXPECT_TRUE(deep_jit::same_options(same, base));
    const O over = base.override_with({.fast = false, .extra_flags = {"y", "z"}});
    EXPECT_EQ(over.level, "2");
    EXPECT_EQ(over.fast, false);
    EXPECT_EQ(over.arch, std::nullopt);
    EXPECT_EQ(over.flags, std::vector<std::string>{"a"});
    EXPECT_EQ(over.extra_flags, (std::vector<std::string>{"x", "y", "z"})) << "appended";
    const O replaced = base.override_with({.level = "", .flags = std::vector<std::string>{}});
    EXPECT_EQ(replaced.level, "") << "an empty value is a value";
    EXPECT_EQ(replaced.flags, std::vector<std::string>{}) << "replaced";
    EXPECT_EQ(base.extra_flags, std::vector<std::string>{"x"}) << "the base stays as it was";
}

TEST(Options, NoneAreSetOnlyWhereNoneIs) {
    EXPECT_TRUE(deep_jit::no_options(O{}));
    for (const O& some :
         {O{.level = ""}, O{.fast = false}, O{.arch = ""}, O{.flags = std::vector<std::string>{}},
          O{.extra_flags = {""}}, O{.post_hook = ""}})
        EXPECT_FALSE(deep_jit::no_options(some));
}

TEST(Options, DifferentOptionsDifferAndHashDifferently) {
    const std::vector<O> all = {
        {},
        {.level = ""},
        {.level = "a"},
        {.fast = false},
        {.fast = true},
        {.arch = ""},
        {.arch = "a"},
        {.flags = std::vector<std::string>{}},
        {.flags = std::vector<std::string>{""}},
        {.flags = std::vector<std::string>{"", ""}},
        {.flags = std::vector<std::string>{"a b"}},
        {.flags = std::vector<std::string>{"a", "b"}},
        {.flags = std::vector<std::string>{"b", "a"}},
        {.extra_flags = {""}},
        {.extra_flags = {"a b"}},
        {.extra_flags = {"a", "b"}},
        {.extra_flags = {"b", "a"}},
        {.flags = std::vector<std::string>{"a"}, .extra_flags = {"b"}},
        {.flags = std::vector<std::string>{"a", "b"}, .extra_flags = {"c"}},
        {.flags = std::vector<std::string>{"a"}, .extra_flags = {"b", "c"}},
        {.post_hook = ""},
        {.post_hook = "a"},
    };
    std::set<std::uint64_t> hashes;
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_TRUE(hashes.insert(hash_of(all[i])).second) << i;
        const O copy = all[i];
        EXPECT_EQ(hash_of(copy), hash_of(all[i]));
        for (std::size_t j = 0; j < all.size(); ++j)
            EXPECT_EQ(deep_jit::same_options(all[i], all[j]), i == j) << i << " " << j;
    }
}

}  // namespace
