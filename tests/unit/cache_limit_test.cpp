// What JIT_CACHE_LIMIT may say.
#include <deep_jit/cache/limit.hpp>

#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

CacheLimit parse(const std::string& text) { return CacheLimit::parse(text, "X_LIMIT"); }

TEST(CacheLimit, Sizes) {
    EXPECT_EQ(parse("10G").bytes, 10ULL << 30);
    EXPECT_EQ(parse("512 MiB").bytes, 512ULL << 20);
    EXPECT_EQ(parse("7kb").bytes, 7ULL << 10);
    EXPECT_EQ(parse("1T").bytes, 1ULL << 40);
    EXPECT_EQ(parse("123").bytes, 123U);
    EXPECT_EQ(parse("123B").bytes, 123U);
    EXPECT_EQ(parse("10G").entries, CacheLimit::kUnlimited);
}

TEST(CacheLimit, Entries) {
    EXPECT_EQ(parse("5000 entries").entries, 5000U);
    EXPECT_EQ(parse("1entry").entries, 1U);
    const auto both = parse("2G, 100 entries");
    EXPECT_EQ(both.bytes, 2ULL << 30);
    EXPECT_EQ(both.entries, 100U);
}

TEST(CacheLimit, NoneAtAll) {
    EXPECT_TRUE(parse("").unlimited());
    EXPECT_TRUE(parse("  ").unlimited());
}

TEST(CacheLimit, NonsenseIsQuoted) {
    for (const char* text : {"G", "10X", "-1", "10G,", "1.5G", "99999999999T", "ten", "10 G G",
                             "99999999999999999999", "5 entriess"}) {
        try {
            parse(text);
            ADD_FAILURE() << text;
        } catch (const ConfigError& error) {
            EXPECT_NE(std::string(error.what()).find("X_LIMIT"), std::string::npos);
            EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
        }
    }
}

TEST(CacheLimit, OfTheEnvironment) {
    const ScopedEnv limit("DJ_JIT_CACHE_LIMIT", "3 entries");
    EXPECT_EQ(CacheLimit::from_env(Env("LIMITTEST")).entries, 3U);
}

}  // namespace
