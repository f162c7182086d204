#include <string>

#include <deep_jit/cache/entry_marker.hpp>

#include "support.hpp"

namespace {

using deep_jit::EntryMarker;
using deep_jit_test::kOddName;
using deep_jit_test::TempDir;
using deep_jit_test::write;
namespace fs = std::filesystem;

std::string sealed(const std::string& body) {
    return body + "end " + deep_jit::hash::checksum(body) + "\n";
}

TEST(EntryMarker, ListsEveryFileBelow) {
    const TempDir dir;
    const auto entry = dir / "entry";
    write(entry / "kernel.cu", "source");
    write(entry / "kernel.cubin", std::string("\0binary", 7));
    write(entry / "asm" / "deep" / "a b.s", "");
    write(entry / ".committed", "old");
    write(entry / "line\nbreak", "left out");
    fs::create_symlink("nowhere", entry / "dangling");
    fs::create_symlink("kernel.cu", entry / "link");
    const auto marker = EntryMarker::of_directory(entry);
    ASSERT_EQ(marker.files.size(), 4u);
    EXPECT_EQ(marker.files[0].name, "asm/deep/a b.s");
    EXPECT_EQ(marker.files[0].size, 0u);
    EXPECT_EQ(marker.files[1].name, "kernel.cu");
    EXPECT_EQ(marker.files[1].size, 6u);
    EXPECT_EQ(marker.files[1].checksum, deep_jit::hash::checksum("source"));
    EXPECT_EQ(marker.files[2].name, "kernel.cubin");
    EXPECT_EQ(marker.files[2].size, 7u);
    EXPECT_EQ(marker.files[3].name, "link");
}

TEST(EntryMarker, ADirectoryThatCannotBeListedIsAnError) {
    const TempDir dir;
    EXPECT_THROW(EntryMarker::of_directory(dir / "missing"), deep_jit::CacheError);
    EXPECT_THROW(EntryMarker::of_directory("/proc/self/status"), deep_jit::CacheError);
}

TEST(EntryMarker, TextForm) {
    EntryMarker marker;
    marker.files = {{"a b", 12, "00112233445566aa"}, {"c", 0, "ffffffffffffffff"}};
    EXPECT_EQ(marker.to_text(), sealed("deep_jit entry 1\n12 00112233445566aa a b\n"
                                       "0 ffffffffffffffff c\n"));
    const auto back = EntryMarker::parse(marker.to_text());
    ASSERT_TRUE(back);
    ASSERT_EQ(back->files.size(), 2u);
    EXPECT_EQ(back->files[0].name, "a b");
    EXPECT_EQ(back->files[0].size, 12u);
    EXPECT_EQ(back->files[0].checksum, "00112233445566aa");
    EXPECT_EQ(back->files[1].name, "c");
    EXPECT_EQ(back->to_text(), marker.to_text());
}

TEST(EntryMarker, OddNamesRoundTrip) {
    EntryMarker marker;
    for (const char* name : {" a", "a ", "end 0123456789abcdef", "deep_jit entry 1", "\xff", "..a",
                             "a..", "a/b", "...", "\r"})
        marker.files.push_back({name, ~0ULL, "0000000000000000"});
    const auto back = EntryMarker::parse(marker.to_text());
    ASSERT_TRUE(back);
    ASSERT_EQ(back->files.size(), marker.files.size());
    for (std::size_t i = 0; i < marker.files.size(); ++i) {
        EXPECT_EQ(back->files[i].name, marker.files[i].name);
        EXPECT_EQ(back->files[i].size, ~0ULL);
    }
}

TEST(EntryMarker, AnEmptyTextIsAForeignMarker) {
    const auto marker = EntryMarker::parse("");
    ASSERT_TRUE(marker);
    EXPECT_TRUE(marker->files.empty());
    const auto none = EntryMarker::parse(EntryMarker().to_text());
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->files.empty());
}

TEST(EntryMarker, EveryFlippedBitAndEveryCutIsNoticed) {
    EntryMarker marker;
    marker.files = {{"kernel.cu", 12, "00112233445566aa"}, {"kernel.cubin", 3, "ffffffffffffffff"}};
    const auto text = marker.to_text();
    for (std::size_t i = 0; i < text.size(); ++i) {
        for (int bit = 0; bit < 8; ++bit) {
            auto flipped = text;
            flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
            EXPECT_FALSE(EntryMarker::parse(flipped)) << i << " " << bit;
        }
        // The one exception: cut to nothing, it is a foreign marker.
        EXPECT_EQ(EntryMarker::parse(text.substr(0, i)).has_value(), i == 0) << i;
        EXPECT_FALSE(EntryMarker::parse(text.substr(0, i) + text.substr(i + 1))) << i;
    }
    EXPECT_FALSE(EntryMarker::parse(text + "\n"));
    EXPECT_FALSE(EntryMarker::parse(text + text));
    EXPECT_FALSE(EntryMarker::parse(std::string(text.size(), '\0')));
}

TEST(EntryMarker, SealedButWrong) {
    const std::string head = "deep_jit entry 1\n";
    for (const std::string& line :
         {std::string("1 c"), std::string("x c n"), std::string("-1 c n"), std::string("1x c n"),
          std::string(" c n"), std::string("1 c "), std::string("1 c /etc/passwd"),
          std::string("1 c .."), std::string("1 c ../x"), std::string("1 c a/../../x"),
          std::string("1 c a/.."), std::string(""), std::string("18446744073709551616 c n")})
        EXPECT_FALSE(EntryMarker::parse(sealed(head + line + "\n"))) << line;
    EXPECT_FALSE(EntryMarker::parse(sealed("deep_jit entry 2\n")));
    EXPECT_FALSE(EntryMarker::parse(sealed("\n")));
    EXPECT_FALSE(EntryMarker::parse(sealed("")));
    EXPECT_FALSE(EntryMarker::parse("end "));
    EXPECT_FALSE(EntryMarker::parse("\nend "));
    EXPECT_TRUE(EntryMarker::parse(sealed(head + "1 c n\n")));
}

}  // namespace
