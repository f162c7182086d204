#include <clocale>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <deep_jit/utils/json.hpp>

#include "support.hpp"

namespace {

using deep_jit::Error;
using deep_jit::json;
using deep_jit_test::message_of;

TEST(Json, OneLine) {
    json value;
    value["b"] = 1;
    value["a"] = json::array_t{json(true), json(), json("x"), json(1.5)};
    value["empty"] = json::object();
    value["none"] = json::array();
    EXPECT_EQ(value.dump(), R"({"b": 1, "a": [true, null, "x", 1.5], "empty": {}, "none": []})");
}

TEST(Json, Indented) {
    json value;
    value["a"] = json::array_t{json(1), json(2)};
    value["b"] = json::object();
    EXPECT_EQ(value.dump(2), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
    EXPECT_EQ(value.dump(0), "{\n\"a\": [\n1,\n2\n],\n\"b\": {}\n}");
}

TEST(Json, WhatWasWrittenReadsBackEqual) {
    json value;
    value["text"] = std::string("\"\\/\b\f\n\r\t\x01\x1f\x7f\0z", 12);
    value["utf8"] = "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80";
    value["raw"] = "\xff\xc0\x80 not UTF-8";
    value[""] = "empty name";
    value["min"] = std::numeric_limits<std::int64_t>::min();
    value["max"] = std::numeric_limits<std::int64_t>::max();
    value["tenth"] = 0.1;
    value["whole"] = 3.0;
    value["minus zero"] = -0.0;
    value["tiny"] = std::numeric_limits<double>::denorm_min();
    value["huge"] = std::numeric_limits<double>::max();
    value["list"] = std::vector<std::string>{"", "a b", "c\"d"};
    value["deep"] = json::array_t{json(json::array_t{json(json::object())})};
    EXPECT_EQ(json::parse(value.dump()), value);
    EXPECT_EQ(json::parse(value.dump(4)), value);
    EXPECT_TRUE(std::signbit(*json::parse(value.dump()).get<double>("minus zero")));
}

TEST(Json, WholeDoublesStayDoubles) {
    EXPECT_EQ(json(3.0).dump(), "3.0");
    EXPECT_EQ(json(-0.0).dump(), "-0.0");
    EXPECT_EQ(json(1e22).dump(), "1e+22");
    EXPECT_NE(json::parse("3"), json::parse("3.0"));
    EXPECT_EQ(*json::parse("1e2").get_if<double>(), 100.0);
    EXPECT_EQ(*json::parse("-12").get_if<std::int64_t>(), -12);
}

TEST(Json, ThereAreNoInfinities) {
    EXPECT_EQ(json(std::numeric_limits<double>::infinity()).dump(), "null");
    EXPECT_EQ(json(std::nan("")).dump(), "null");
    EXPECT_THROW(json::parse("1e999"), Error);
    EXPECT_THROW(json::parse("-1e999"), Error);
}

TEST(Json, IntegersBeyond64BitsBecomeDoubles) {
    EXPECT_EQ(*json::parse("9223372036854775807").get_if<std::int64_t>(),
              std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(*json::parse("9223372036854775808").get_if<double>(), 9223372036854775808.0);
    EXPECT_EQ(*json::parse("-9223372036854775809").get_if<double>(), -9223372036854775809.0);
}

TEST(Json, NumbersDoNotDependOnTheLocale) {
    const std::string old = std::setlocale(LC_ALL, nullptr);
    bool comma = false;
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8"})
        comma = comma || std::setlocale(LC_ALL, name) != nullptr;
    EXPECT_EQ(json(1.5).dump(), "1.5");
    EXPECT_EQ(*json::parse("1.5").get_if<double>(), 1.5);
    EXPECT_THROW(json::parse("1,5"), Error);
    std::setlocale(LC_ALL, old.c_str());
    if (!comma)
        GTEST_SKIP() << "no locale with a decimal comma is installed; checked in the C locale";
}

TEST(Json, RejectsWhatIsNotJson) {
    const std::string texts[] = {"",
                                 " ",
                                 "{",
                                 "}",
                                 "[",
                                 "]",
                                 "[1,]",
                                 "[,1]",
                                 "[1 2]",
                                 "{,}",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{a:1}",
                                 "{\"a\":1,}",
                                 "{1:2}",
                                 "tru",
                                 "True",
                                 "nul",
                                 "nulll",
                                 "falsey",
                                 "01",
                                 "-",
                                 "+1",
                                 ".5",
                                 "1.",
                                 "1.e3",
                                 "1e",
                                 "1e+",
                                 "0x1",
                                 "--1",
                                 "-01",
                                 "00",
                                 "NaN",
                                 "Infinity",
                                 "'a'",
                                 "\"",
                                 "\"a",
                                 "\"\\",
                                 "\"\\x\"",
                                 "\"\\u\"",
                                 "\"\\u12\"",
                                 "\"\\u123g\"",
                                 "\"\\u-123\"",
                                 "\"\\u+123\"",
                                 "1 1",
                                 "{} {}",
                                 "[]x",
                                 "// a\n1",
                                 "\"a\nb\"",
                                 "\"a\tb\"",
                                 "\xef\xbb\xbf{}",
                                 std::string("1\0", 2),
                                 std::string("\"\0\"", 3)};
    for (const auto& text : texts) EXPECT_THROW(json::parse(text), Error) << "'" << text << "'";
}

TEST(Json, ErrorsSayWhere) {
    EXPECT_CONTAINS(message_of<Error>([] { json::parse("[1, x]"); }), "byte 4");
    EXPECT_CONTAINS(message_of<Error>([] {
                        json::parse("[] ");
                        json::parse("[]]");
                    }),
                    "byte 2");
}

TEST(Json, EveryPrefixOfADocumentIsAnError) {
    const std::string text =
        R"({"a": [1.5e3, -2, "x\u0041\ud83d\ude00", true, false, null], "b": {}})";
    EXPECT_EQ(json::parse(text).find("a")->get_if<json::array_t>()->size(), 6u);
    for (std::size_t i = 0; i < text.size(); ++i)
        EXPECT_THROW(json::parse(text.substr(0, i)), Error) << i;
}

TEST(Json, Escapes) {
    const auto text = [](const char* source) { return *json::parse(source).get_if<std::string>(); };
    EXPECT_EQ(text(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
    EXPECT_EQ(text(R"("\u0041\u00e9\u4e2d")"), "A\xc3\xa9\xe4\xb8\xad");
    EXPECT_EQ(text(R"("\u00E9")"), "\xc3\xa9");
    EXPECT_EQ(text(R"("\u0000")"), std::string(1, '\0'));
    EXPECT_EQ(text(R"("\ud83d\ude00")"), "\xf0\x9f\x98\x80");
    EXPECT_EQ(text(R"("\uDBFF\uDFFF")"), "\xf4\x8f\xbf\xbf");
    EXPECT_EQ(text(R"("\ud800\udc00")"), "\xf0\x90\x80\x80");
    EXPECT_EQ(text(R"("\ud7ff\ue000")"), "\xed\x9f\xbf\xee\x80\x80");
}

TEST(Json, HalfSurrogatesAreErrors) {
    for (const char* source : {R"("\ud800")", R"("\udc00")", R"("\ud800x")", R"("\ud800\n")",
                               R"("\ud800\u0041")", R"("\ud800\ud800")", R"("\udfff\ud800")"})
        EXPECT_THROW(json::parse(source), Error) << source;
}

TEST(Json, Blanks) {
    EXPECT_EQ(json::parse(" \t\r\n[ 1 ,\n2 ] "), json(json::array_t{json(1), json(2)}));
    EXPECT_EQ(json::parse("{ }"), json::object());
    EXPECT_EQ(json::parse("[ ]"), json::array());
    EXPECT_THROW(json::parse("\f1"), Error) << "form feed is no JSON blank";
    EXPECT_THROW(json::parse("\xc2\xa0"
                             "1"),
                 Error);
}

TEST(Json, DepthIsLimited) {
    const auto nested = [](int depth, const std::string& inner) {
        return std::string(static_cast<std::size_t>(depth), '[') + inner +
               std::string(static_cast<std::size_t>(depth), ']');
    };
    EXPECT_EQ(json::parse(nested(128, "1")).dump(), nested(128, "1"));
    EXPECT_EQ(json::parse(nested(128, "")).dump(), nested(128, ""));
    EXPECT_THROW(json::parse(nested(129, "1")), Error);
    EXPECT_THROW(json::parse(nested(129, "")), Error);
    EXPECT_THROW(json::parse(nested(1000000, "")), Error);
    EXPECT_THROW(json::parse(std::string(1000000, '[')), Error);
    std::string objects;
    for (int i = 0; i < 1000000; ++i) objects += "{\"\":";
    EXPECT_THROW(json::parse(objects), Error);
}

TEST(Json, MembersKeepTheirOrderAndFirstWins) {
    const auto value = json::parse(R"({"b": 1, "a": 2, "b": 3})");
    EXPECT_EQ(value.dump(), R"({"b": 1, "a": 2, "b": 3})");
    EXPECT_EQ(value.get<std::int64_t>("b"), 1);
    EXPECT_EQ(value.get<std::int64_t>("c"), std::nullopt);
    EXPECT_EQ(value.get<std::string>("a"), std::nullopt) << "of another kind";
    EXPECT_EQ(value.find("c"), nullptr);
    EXPECT_EQ(json(1).find("a"), nullptr);
}

TEST(Json, Building) {
    json value;
    value.push_back(1);
    value.push_back("x");
    EXPECT_EQ(value.dump(), R"([1, "x"])");
    EXPECT_THROW(value["a"], Error);
    json object;
    object["a"] = 1;
    object["a"] = 2;
    EXPECT_EQ(object.dump(), R"({"a": 2})");
    EXPECT_THROW(object.push_back(1), Error);
    EXPECT_EQ(json(std::optional<int>()).dump(), "null");
    EXPECT_EQ(json(std::optional<std::string>("s")).dump(), "\"s\"");
    EXPECT_EQ(json(std::optional<std::vector<std::string>>({"s"})).dump(), "[\"s\"]");
    EXPECT_EQ(json(false).dump(), "false");
    EXPECT_EQ(json(nullptr), json());
    EXPECT_EQ(json(static_cast<unsigned char>(7)).dump(), "7");
}

}  // namespace
