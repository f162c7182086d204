// The rules of the include parser, one by one.
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <deep_jit/utils/parser.hpp>

#include "support.hpp"

namespace {

using deep_jit::CacheError;
using deep_jit::ConfigError;
using deep_jit::Parser;
using deep_jit_test::kOddName;
using deep_jit_test::message_of;
using deep_jit_test::TempDir;
using deep_jit_test::write;
namespace fs = std::filesystem;

std::optional<std::string> tracked(std::string_view line) {
    return Parser({}, {"lib/"}).parse_include(line);
}

TEST(ParseInclude, TheCanonicalFormWithBlanks) {
    for (const char* line :
         {"#include <lib/a.h>", "  #include <lib/a.h>", "\t#\tinclude\t<lib/a.h>\t",
          "# include <lib/a.h>", "#include<lib/a.h>", "#include < lib/a.h >",
          "#include <lib/a.h>\r", "#include <lib/a.h> // why", "#include <lib/a.h> /* x */",
          "#include <lib/a.h>\n", "#include <lib/a.h> <other/b.h>", "#include <lib/a.h>junk"})
        EXPECT_EQ(tracked(line), "lib/a.h") << line;
}

TEST(ParseInclude, UntrackedAngleIncludesAreIgnored) {
    for (const char* line :
         {"#include <cstdint>", "#include <other/lib/a.h>", "#include <li>", "#include <lib>",
          "#include <LIB/a.h>", "#include <./lib/a.h>", "#include <>", "#include < >"})
        EXPECT_EQ(tracked(line), std::nullopt) << line;
}

TEST(ParseInclude, OtherLinesAreNoIncludes) {
    for (const char* line : {"",
                             " ",
                             "#",
                             "# ",
                             "include <lib/a.h>",
                             "#include",
                             "#include ",
                             "#includes <lib/a.h>",
                             "#include_next <lib/a.h>",
                             "#import <lib/a.h>",
                             "#Include <lib/a.h>",
                             "// #include <lib/a.h>",
                             "/* */ #include <lib/a.h>",
                             "x #include <lib/a.h>",
                             "##include <lib/a.h>",
                             "#define include <lib/a.h>",
                             "#pragma include <lib/a.h>",
                             "#if __has_include(<lib/a.h>)",
                             "a < b > c",
                             "#inc lude <lib/a.h>"})
        EXPECT_EQ(tracked(line), std::nullopt) << line;
}

TEST(ParseInclude, MacroIncludesAndCommentsBetweenTokensAreNotInterpreted) {
    for (const char* line :
         {"#include HEADER", "#include HEADER(<lib/a.h>)", "#include /* c */ <lib/a.h>",
          "#/**/include <lib/a.h>", "#include \\", "#include_ <lib/a.h>"})
        EXPECT_EQ(tracked(line), std::nullopt) << line;
}

TEST(ParseInclude, QuotedIncludesAreRejected) {
    for (const char* line : {"#include \"lib/a.h\"", "#include \"x.h\"", "# include\"x.h\"",
                             "  #  include  \"x\"", "#include \"", "#include \"\""}) {
        const auto message = message_of<ConfigError>([&] { tracked(line); });
        EXPECT_CONTAINS(message, "non-standard include");
        EXPECT_CONTAINS(message, deep_jit::str::trim(line));
    }
    // Only a directive is one.
    EXPECT_EQ(tracked("// #include \"x.h\""), std::nullopt);
    EXPECT_EQ(tracked("puts(\"#include \\\"x.h\\\"\");"), std::nullopt);
}

TEST(ParseInclude, AnIncludeWithoutItsBracketIsRejected) {
    EXPECT_CONTAINS(message_of<ConfigError>([] { tracked("#include <lib/a.h"); }),
                    "non-standard include");
    EXPECT_CONTAINS(message_of<ConfigError>([] { tracked("#include <"); }), "closing '>'");
}

TEST(ParseInclude, AnyOfSeveralPrefixes) {
    const Parser parser({}, {"a/", "b/c"});
    EXPECT_EQ(parser.parse_include("#include <a/x>"), "a/x");
    EXPECT_EQ(parser.parse_include("#include <b/cx>"), "b/cx");
    EXPECT_EQ(parser.parse_include("#include <b/x>"), std::nullopt);
    EXPECT_EQ(Parser().parse_include("#include <a/x>"), std::nullopt);
}

/// Digest by a new parser, which has seen no header yet.
std::string digest(const std::vector<fs::path>& dirs, std::string_view source) {
    return Parser(dirs, {"lib/"}).parse_into_hash(source);
}

TEST(ParserDigest, TheWholeSourceCounts) {
    std::set<std::string> seen;
    for (const char* source : {"", " ", "\n", "x", "x\n", "x ", "x\r\n", "// c\nx\n"})
        EXPECT_TRUE(seen.insert(digest({}, source)).second) << "'" << source << "'";
    EXPECT_TRUE(seen.insert(digest({}, std::string_view("x\0", 2))).second);
    EXPECT_EQ(digest({}, "x"), digest({}, "x"));
    EXPECT_EQ(digest({}, "x").size(), 32u);
}

TEST(ParserDigest, TrackedHeadersCountUntrackedDoNot) {
    const TempDir dir;
    const std::string source = "#include <lib/a.h>\n#include <other/b.h>\nint x;\n";
    write(dir / "lib" / "a.h", "1");
    write(dir / "other" / "b.h", "1");
    const auto first = digest({dir.path()}, source);
    write(dir / "other" / "b.h", "2");
    fs::remove(dir / "other" / "b.h");
    EXPECT_EQ(digest({dir.path()}, source), first);
    write(dir / "lib" / "a.h", "2");
    EXPECT_NE(digest({dir.path()}, source), first);
    write(dir / "lib" / "a.h", "1");
    EXPECT_EQ(digest({dir.path()}, source), first) << "times do not count";
}

TEST(ParserDigest, HeadersOfHeadersCount) {
    const TempDir dir;
    write(dir / "lib" / "a.h", "#include <lib/deep/b.h>\n");
    write(dir / "lib" / "deep" / "b.h", "  # include <lib/c.h>\n");
    write(dir / "lib" / "c.h", "1");
    const auto first = digest({dir.path()}, "#include <lib/a.h>");
    write(dir / "lib" / "c.h", "2");
    EXPECT_NE(digest({dir.path()}, "#include <lib/a.h>"), first);
}

TEST(ParserDigest, MovedDirectoriesDoNotCount) {
    const TempDir one, two("plain");
    for (const auto* dir : {&one, &two}) {
        write(*dir / "i" / "lib" / "a.h", "#include <lib/b.h>\n");
        write(*dir / "i" / "lib" / "b.h", "b");
    }
    const std::string source = "#include <lib/a.h>\n";
    EXPECT_EQ(digest({one / "i"}, source), digest({two / "i"}, source));
    EXPECT_EQ(digest({one / "i"}, source), digest({two / "none", two / "i"}, source));
}

TEST(ParserDigest, TheFirstDirectoryWins) {
    const TempDir dir;
    write(dir / "1" / "lib" / "a.h", "one");
    write(dir / "2" / "lib" / "a.h", "two");
    write(dir / "2" / "lib" / "b.h", "two");
    const std::string source = "#include <lib/a.h>\n";
    const auto first = digest({dir / "1", dir / "2"}, source);
    EXPECT_EQ(first, digest({dir / "1"}, source));
    EXPECT_NE(first, digest({dir / "2", dir / "1"}, source));
    EXPECT_EQ(digest({dir / "1", dir / "2"}, "#include <lib/b.h>"),
              digest({dir / "2"}, "#include <lib/b.h>"));
    // A directory of that name is no header.
    fs::create_directories(dir / "0" / "lib" / "a.h");
    EXPECT_EQ(digest({dir / "0", dir / "1"}, source), first);
}

TEST(ParserDigest, NamesAndPlacesOfIncludesCount) {
    const TempDir dir;
    write(dir / "lib" / "a.h", "same");
    write(dir / "lib" / "b.h", "same");
    std::set<std::string> seen;
    for (const char* source :
         {"#include <lib/a.h>\n", "#include <lib/b.h>\n",
          "#include <lib/a.h>\n#include <lib/b.h>\n", "#include <lib/b.h>\n#include <lib/a.h>\n",
          "#include <lib/a.h>\n#include <lib/a.h>\n"})
        EXPECT_TRUE(seen.insert(digest({dir.path()}, source)).second) << source;
    // Contents may not pass from one header to the next unseen.
    write(dir / "lib" / "a.h", "xy");
    write(dir / "lib" / "b.h", "z");
    const std::string both = "#include <lib/a.h>\n#include <lib/b.h>\n";
    const auto first = digest({dir.path()}, both);
    write(dir / "lib" / "a.h", "x");
    write(dir / "lib" / "b.h", "yz");
    EXPECT_NE(digest({dir.path()}, both), first);
}

TEST(ParserDigest, ConditionsAreNotEvaluated) {
    const TempDir dir;
    write(dir / "lib" / "a.h", "1");
    const std::string source = "#if 0\n#include <lib/a.h>\n#endif\n/*\n#include <lib/a.h>\n*/\n";
    const auto first = digest({dir.path()}, source);
    write(dir / "lib" / "a.h", "2");
    EXPECT_NE(digest({dir.path()}, source), first);
    EXPECT_THROW(digest({dir.path()}, "#if 0\n#include \"x.h\"\n#endif\n"), ConfigError);
}

TEST(ParserDigest, LineEndsAndByteOrderMark) {
    const TempDir dir;
    for (const char* source : {"#include <lib/no.h>", "x\n#include <lib/no.h>",
                               "x\r\n#include <lib/no.h>\r\ny", "\xef\xbb\xbf#include <lib/no.h>\n",
                               "\n\n\n  #include <lib/no.h>  \n\n", "\f#include <lib/no.h>\v\n"})
        EXPECT_THROW(digest({dir.path()}, source), ConfigError) << source;
    // One long line without an end.
    EXPECT_EQ(digest({}, std::string(1 << 20, '#')).size(), 32u);
}

TEST(ParserDigest, AMissingTrackedHeaderIsAnError) {
    const TempDir dir;
    write(dir / "lib" / "a.h", "#include <lib/missing.h>\n");
    const auto message =
        message_of<ConfigError>([&] { digest({dir.path()}, "#include <lib/a.h>\n"); });
    EXPECT_CONTAINS(message, "<lib/missing.h>");
    EXPECT_CONTAINS(message, dir.path().string());
    EXPECT_THROW(digest({}, "#include <lib/a.h>\n"), ConfigError);
}

TEST(ParserDigest, AHeaderThatCannotBeReadIsAnError) {
    const TempDir dir;
    write(dir / "lib" / "a.h", "");
    ::chmod((dir / "lib" / "a.h").c_str(), 0);
    const deep_jit_test::ScopedOrdinaryUser user;
    EXPECT_CONTAINS(message_of<CacheError>([&] { digest({dir.path()}, "#include <lib/a.h>\n"); }),
                    (dir / "lib" / "a.h").string());
}

TEST(ParserDigest, CyclesAreRejected) {
    const TempDir dir;
    write(dir / "lib" / "self.h", "#pragma once\n#include <lib/self.h>\n");
    write(dir / "lib" / "a.h", "#include <lib/b.h>\n");
    write(dir / "lib" / "b.h", "#include <lib/c.h>\n");
    write(dir / "lib" / "c.h", "#include <lib/./b.h>\n");
    write(dir / "lib" / "up.h", "#include <lib/x/../up.h>\n");
    fs::create_directories(dir / "lib" / "x");
    for (const char* name : {"self.h", "a.h", "up.h"}) {
        Parser parser({dir.path()}, {"lib/"});
        // Twice: nothing that was half read may be remembered.
        for (int i = 0; i < 2; ++i)
            EXPECT_CONTAINS(message_of<ConfigError>([&] {
                                parser.parse_into_hash(std::string("#include <lib/") + name + ">");
                            }),
                            "circular include");
    }
}

TEST(ParserDigest, DiamondsAreNoCycles) {
    const TempDir dir;
    write(dir / "lib" / "a.h", "#include <lib/b.h>\n#include <lib/c.h>\n");
    write(dir / "lib" / "b.h", "#include <lib/d.h>\n");
    write(dir / "lib" / "c.h", "#include <lib/d.h>\n");
    write(dir / "lib" / "d.h", "1");
    const auto first = digest({dir.path()}, "#include <lib/a.h>\n#include <lib/d.h>\n");
    write(dir / "lib" / "d.h", "2");
    EXPECT_NE(digest({dir.path()}, "#include <lib/a.h>\n#include <lib/d.h>\n"), first);
}

TEST(ParserDigest, ManyDiamondsAreFast) {
    // 2^60 paths lead to the last header; each is read once.
    const TempDir dir;
    for (int i = 0; i < 60; ++i) {
        const auto next = "#include <lib/" + std::to_string(i + 1) + ".h>\n";
        write(dir / "lib" / (std::to_string(i) + ".h"), next + next);
    }
    write(dir / "lib" / "60.h", "");
    EXPECT_EQ(digest({dir.path()}, "#include <lib/0.h>\n").size(), 32u);
}

TEST(ParserDigest, ChainsAreLimited) {
    const TempDir dir;
    for (int i = 0; i < 400; ++i)
        write(dir / "lib" / (std::to_string(i) + ".h"),
              "#include <lib/" + std::to_string(i + 1) + ".h>\n");
    write(dir / "lib" / "400.h", "");
    EXPECT_EQ(digest({dir.path()}, "#include <lib/201.h>\n").size(), 32u);
    EXPECT_CONTAINS(message_of<ConfigError>([&] { digest({dir.path()}, "#include <lib/0.h>\n"); }),
                    "nested deeper than 200");
}

TEST(ParserDigest, HeadersAreReadOnceInAParsersLife) {
    const TempDir dir;
    write(dir / "lib" / "a.h", "1");
    Parser parser({dir.path()}, {"lib/"});
    const auto first = parser.parse_into_hash("#include <lib/a.h>\n");
    write(dir / "lib" / "a.h", "2");
    EXPECT_EQ(parser.parse_into_hash("#include <lib/a.h>\n"), first);
    Parser moved(std::move(parser));
    EXPECT_EQ(moved.parse_into_hash("#include <lib/a.h>\n"), first);
    EXPECT_NE(digest({dir.path()}, "#include <lib/a.h>\n"), first);
}

TEST(ParserDigest, AFailureIsNotRemembered) {
    const TempDir dir;
    Parser parser({dir.path()}, {"lib/"});
    EXPECT_THROW(parser.parse_into_hash("#include <lib/a.h>\n"), ConfigError);
    write(dir / "lib" / "a.h", "1");
    EXPECT_EQ(parser.parse_into_hash("#include <lib/a.h>\n"),
              digest({dir.path()}, "#include <lib/a.h>\n"));
}

TEST(ParserDigest, OddDirectoriesAndNames) {
    const TempDir dir;
    const std::string name = "lib/a b'c\"$(touch pwned);.h";
    write(dir / kOddName / name, "1");
    const auto first = digest({dir / kOddName}, "#include <" + name + ">\n");
    write(dir / kOddName / name, "2");
    EXPECT_NE(digest({dir / kOddName}, "#include <" + name + ">\n"), first);
}

TEST(ParserDigest, PathsThroughLinksNameTheFileThatTheCompilerOpens) {
    const TempDir dir;
    // <lib/link/../a.h> is target/a.h, not lib/a.h.
    write(dir / "target" / "sub" / "x", "");
    write(dir / "target" / "a.h", "1");
    write(dir / "lib" / "a.h", "decoy");
    fs::create_directory_symlink(dir / "target" / "sub", dir / "lib" / "link");
    const std::string source = "#include <lib/link/../a.h>\n";
    const auto first = digest({dir.path()}, source);
    write(dir / "target" / "a.h", "2");
    EXPECT_NE(digest({dir.path()}, source), first);
}

TEST(ParserDigest, Threads) {
    const TempDir dir;
    for (int i = 0; i < 20; ++i)
        write(dir / "lib" / (std::to_string(i) + ".h"),
              i > 0 ? "#include <lib/" + std::to_string(i - 1) + ".h>\n" : "");
    Parser parser({dir.path()}, {"lib/"});
    std::vector<std::string> expected;
    for (int i = 0; i < 20; ++i)
        expected.push_back(digest({dir.path()}, "#include <lib/" + std::to_string(i) + ".h>\n"));
    std::vector<std::thread> threads;
    std::vector<int> wrong(8, 0);
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            for (int k = 0; k < 20; ++k) {
                const int i = (k * 7 + t * 3) % 20;
                if (parser.parse_into_hash("#include <lib/" + std::to_string(i) + ".h>\n") !=
                    expected[static_cast<std::size_t>(i)])
                    ++wrong[static_cast<std::size_t>(t)];
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(8, 0));
}

}  // namespace
