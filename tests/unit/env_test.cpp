#include <string>

#include <deep_jit/utils/env.hpp>

#include "support.hpp"

namespace {

using deep_jit::ConfigError;
using deep_jit::Env;
using deep_jit::get_env;
using deep_jit_test::message_of;
using deep_jit_test::ScopedEnv;

constexpr const char* kName = "DJTEST_VALUE";

TEST(Env, UnsetIsNothing) {
    const ScopedEnv unset(kName);
    EXPECT_EQ(get_env<int>(kName), std::nullopt);
    EXPECT_EQ(get_env<bool>(kName), std::nullopt);
    EXPECT_EQ(get_env<std::string>(kName), std::nullopt);
    EXPECT_EQ(get_env<int>(kName, 5), 5);
    EXPECT_EQ(get_env<bool>(kName, true), true);
    EXPECT_EQ(get_env<std::string>(kName, "x"), "x");
}

struct BoolCase {
    const char* text;
    std::optional<bool> value;
};

TEST(Env, Booleans) {
    const BoolCase cases[] = {
        {"true", true},
        {"TRUE", true},
        {"True", true},
        {"tRuE", true},
        {"yes", true},
        {"YES", true},
        {"false", false},
        {"FALSE", false},
        {"no", false},
        {"No", false},
        {"1", true},
        {"0", false},
        {"2", true},
        {"-1", true},
        {"-0", false},
        {"+0", false},
        {"+1", true},
        {"000", false},
        {"0010", true},
        {" 1 ", true},
        {"\tyes\n", true},
        {"99999999999999999999999999", true},
        {"00000000000000000000000000", false},
        {"", {}},
        {" ", {}},
        {"on", {}},
        {"off", {}},
        {"y", {}},
        {"n", {}},
        {"t", {}},
        {"1.0", {}},
        {"0x1", {}},
        {"1 0", {}},
        {"--1", {}},
        {"+-1", {}},
        {"-+1", {}},
        {"-", {}},
        {"+", {}},
        {"++1", {}},
        {"truefalse", {}},
        {"1e3", {}},
        {"\xef\xbc\x91", {}},
    };
    for (const auto& [text, value] : cases) {
        const ScopedEnv set(kName, text);
        if (value)
            EXPECT_EQ(get_env<bool>(kName), value) << "'" << text << "'";
        else
            EXPECT_THROW(get_env<bool>(kName), ConfigError) << "'" << text << "'";
    }
}

struct IntCase {
    const char* text;
    std::optional<int> value;
};

TEST(Env, Integers) {
    const IntCase cases[] = {
        {"0", 0},
        {"7", 7},
        {"-7", -7},
        {"+7", 7},
        {"007", 7},
        {" 12\n", 12},
        {"2147483647", 2147483647},
        {"-2147483648", -2147483647 - 1},
        {"2147483648", {}},
        {"-2147483649", {}},
        {"", {}},
        {" ", {}},
        {"true", {}},
        {"1.5", {}},
        {"0x10", {}},
        {"1 2", {}},
        {"+-7", {}},
        {"++7", {}},
        {"-", {}},
        {"7k", {}},
    };
    for (const auto& [text, value] : cases) {
        const ScopedEnv set(kName, text);
        if (value)
            EXPECT_EQ(get_env<int>(kName), value) << "'" << text << "'";
        else
            EXPECT_THROW(get_env<int>(kName), ConfigError) << "'" << text << "'";
    }
}

TEST(Env, StringsAreTakenAsTheyAre) {
    for (const char* text : {"", " ", " a b ", "$(touch pwned)", "a\nb", "\xff\xfe"}) {
        const ScopedEnv set(kName, text);
        EXPECT_EQ(get_env<std::string>(kName), text);
    }
}

TEST(Env, AnInvalidValueNamesVariableAndText) {
    const ScopedEnv set(kName, "maybe");
    for (const auto& message : {message_of<ConfigError>([] { get_env<bool>(kName); }),
                                message_of<ConfigError>([] { get_env<int>(kName, 3); })}) {
        EXPECT_CONTAINS(message, "invalid value");
        EXPECT_CONTAINS(message, kName);
        EXPECT_CONTAINS(message, "'maybe'");
    }
}

TEST(Env, OwnPrefixBeatsGlobalBeatsDefault) {
    const Env env("DJTEST");
    const ScopedEnv own("DJTEST_JIT_X");
    const ScopedEnv global("DJ_JIT_X");
    const ScopedEnv bare("JIT_X", "1");
    EXPECT_EQ(env.get<int>("JIT_X"), std::nullopt) << "the unprefixed variable has no effect";
    EXPECT_EQ(env.get<int>("JIT_X", 9), 9);
    EXPECT_EQ(env.name_of("JIT_X"), "DJ_JIT_X");
    const ScopedEnv global_set("DJ_JIT_X", "2");
    EXPECT_EQ(env.get<int>("JIT_X", 9), 2);
    EXPECT_EQ(env.name_of("JIT_X"), "DJ_JIT_X");
    const ScopedEnv own_set("DJTEST_JIT_X", "3");
    EXPECT_EQ(env.get<int>("JIT_X", 9), 3);
    EXPECT_EQ(env.name_of("JIT_X"), "DJTEST_JIT_X");
    EXPECT_EQ(Env("DJ").get<int>("JIT_X"), 2);
    EXPECT_EQ(Env("OTHER").get<int>("JIT_X"), 2);
}

TEST(Env, AnEmptyOwnValueIsAValue) {
    const Env env("DJTEST");
    const ScopedEnv own("DJTEST_JIT_X", "");
    const ScopedEnv global("DJ_JIT_X", "2");
    EXPECT_EQ(env.get<std::string>("JIT_X"), "");
    EXPECT_EQ(env.get("JIT_X", "default"), "");
    EXPECT_THROW(env.get<int>("JIT_X"), ConfigError);
}

TEST(Env, ABadOwnValueIsNotSkipped) {
    const Env env("DJTEST");
    const ScopedEnv own("DJTEST_JIT_X", "bad");
    const ScopedEnv global("DJ_JIT_X", "2");
    EXPECT_CONTAINS(message_of<ConfigError>([&] { env.get<int>("JIT_X", 1); }), "DJTEST_JIT_X");
}

TEST(Env, ABadGlobalValueUnderAGoodOwnOneDoesNotMatter) {
    const Env env("DJTEST");
    const ScopedEnv own("DJTEST_JIT_X", "4");
    const ScopedEnv global("DJ_JIT_X", "bad");
    EXPECT_EQ(env.get<int>("JIT_X", 1), 4);
}

TEST(Env, ValuesAreReadAtEachCall) {
    const Env env("DJTEST");
    ScopedEnv own("DJTEST_JIT_X", "1");
    EXPECT_EQ(env.get<int>("JIT_X"), 1);
    own.set("2");
    EXPECT_EQ(env.get<int>("JIT_X"), 2);
}

}  // namespace
