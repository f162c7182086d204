#include <clocale>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <deep_jit/utils/str.hpp>

#include "support.hpp"

namespace {

namespace str = deep_jit::str;

TEST(Str, FormatFillsPlaceholdersInOrder) {
    EXPECT_EQ(str::format("{} and {}", 1, "two"), "1 and two");
    EXPECT_EQ(str::format("{}{}{}", 'a', std::string("b"), std::string_view("c")), "abc");
    EXPECT_EQ(str::format("plain"), "plain");
    EXPECT_EQ(str::format(""), "");
}

TEST(Str, FormatBraces) {
    EXPECT_EQ(str::format("{{}}"), "{}");
    EXPECT_EQ(str::format("{{{}}}", 5), "{5}");
    EXPECT_EQ(str::format("a{b}c"), "a{b}c");
    EXPECT_EQ(str::format("{"), "{");
    EXPECT_EQ(str::format("}", 1), "}");
    EXPECT_EQ(str::format("${x}", 1), "${x}");
}

TEST(Str, FormatDoesNotLookIntoItsArguments) {
    EXPECT_EQ(str::format("{} {}", "{}", "x"), "{} x");
    EXPECT_EQ(str::format("{}", "}}"), "}}");
}

TEST(Str, FormatWithTheWrongNumberOfArguments) {
    EXPECT_EQ(str::format("{} {}", 1), "1 {}");
    EXPECT_EQ(str::format("{}", 1, 2), "1");
}

enum class Color : unsigned char { red = 200 };

TEST(Str, TextOfValues) {
    EXPECT_EQ(str::to_text(true), "true");
    EXPECT_EQ(str::to_text(false), "false");
    EXPECT_EQ(str::to_text(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
    EXPECT_EQ(str::to_text(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
    EXPECT_EQ(str::to_text(std::uint8_t(65)), "65");
    EXPECT_EQ(str::to_text(1.5), "1.5");
    EXPECT_EQ(str::to_text(-0.25f), "-0.25");
    EXPECT_EQ(str::to_text(1e300), "1e+300");
    EXPECT_EQ(str::to_text(Color::red), "200");
    EXPECT_EQ(str::to_text(std::filesystem::path("/a b")), "/a b");
    EXPECT_EQ(str::to_text(reinterpret_cast<void*>(0x1f)), "0x1f");
    EXPECT_EQ(str::to_text(static_cast<const int*>(nullptr)), "0x0");
    EXPECT_EQ(str::to_text(std::optional<int>()), "unset");
    EXPECT_EQ(str::to_text(std::optional<int>(3)), "3");
    EXPECT_EQ(str::to_text(std::optional<std::string>("x")), "x");
    EXPECT_EQ(str::to_text(std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(Str, NumbersDoNotDependOnTheLocale) {
    const std::string old = std::setlocale(LC_ALL, nullptr);
    bool comma = false;
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8"})
        comma = comma || std::setlocale(LC_ALL, name) != nullptr;
    EXPECT_EQ(str::to_text(1234567.5), "1234567.5");
    EXPECT_EQ(str::to_text(1234567), "1234567");
    std::setlocale(LC_ALL, old.c_str());
    if (!comma)
        GTEST_SKIP() << "no locale with a decimal comma is installed; checked in the C locale";
}

TEST(Str, Join) {
    EXPECT_EQ(str::join(std::vector<std::string>{}), "");
    EXPECT_EQ(str::join(std::vector<std::string>{"a"}), "a");
    EXPECT_EQ(str::join(std::vector<std::string>{"a", "", "b"}), "a  b");
    EXPECT_EQ(str::join(std::vector<std::string>{"", ""}, ","), ",");
    EXPECT_EQ(str::join(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
    EXPECT_EQ(str::join({"x", "y"}, "-"), "x-y");
}

TEST(Str, Trim) {
    EXPECT_EQ(str::trim(" \t\r\n\f\v a b \n"), "a b");
    EXPECT_EQ(str::trim(""), "");
    EXPECT_EQ(str::trim(" \n "), "");
    EXPECT_EQ(str::trim("\xc2\xa0x"), "\xc2\xa0x") << "only ASCII blanks";
}

TEST(Str, Split) {
    using V = std::vector<std::string>;
    EXPECT_EQ(str::split("", ':'), V{""});
    EXPECT_EQ(str::split(":", ':'), (V{"", ""}));
    EXPECT_EQ(str::split("a::b:", ':'), (V{"a", "", "b", ""}));
    EXPECT_EQ(str::split("a b", ':'), V{"a b"});
}

TEST(Str, SplitUndoesJoin) {
    const std::vector<std::string> pieces{"", "a", "", "b c", ""};
    EXPECT_EQ(str::split(str::join(pieces, ":"), ':'), pieces);
}

TEST(Str, ToLower) {
    EXPECT_EQ(str::to_lower("AzZ09_-[`{@"), "azz09_-[`{@");
    EXPECT_EQ(str::to_lower("\xc3\x84"), "\xc3\x84");
}

TEST(Str, WordCharacters) {
    std::string words;
    for (int c = 0; c < 256; ++c)
        if (str::is_word_char(static_cast<char>(c)))
            words += static_cast<char>(c);
    EXPECT_EQ(words, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz");
}

TEST(Str, ToHex) {
    EXPECT_EQ(str::to_hex(0), "0000000000000000");
    EXPECT_EQ(str::to_hex(0x0123456789abcdefULL), "0123456789abcdef");
    EXPECT_EQ(str::to_hex(~0ULL), "ffffffffffffffff");
}

TEST(Str, QuoteIsWhatAShellReadsBack) {
    EXPECT_EQ(str::quote("plain-word_1./=:,@%+"), "plain-word_1./=:,@%+");
    EXPECT_EQ(str::quote(""), "''");
    EXPECT_EQ(str::quote("it's"), "'it'\\''s'");
    EXPECT_EQ(str::quote("$(x)"), "'$(x)'");
    EXPECT_EQ(str::quote("~"), "'~'");
    EXPECT_EQ(str::quote("a\nb"), "'a\nb'");
}

}  // namespace
