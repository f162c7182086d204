#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <deep_jit/cache/identity.hpp>

#include "support.hpp"

namespace {

using deep_jit::remember_identity;
using deep_jit_test::kOddName;
using deep_jit_test::names_in;
using deep_jit_test::slurp;
using deep_jit_test::TempDir;
using deep_jit_test::write;
namespace fs = std::filesystem;

class Identity : public testing::Test {
protected:
    std::string ask(const std::string& question = "--version") {
        return remember_identity(roots_, program_, question, [&] {
            ++asked_;
            return answer_;
        });
    }
    fs::path record() const {
        const auto names = names_in(roots_[0] / "toolchain");
        EXPECT_EQ(names.size(), 1u);
        return roots_[0] / "toolchain" / names.at(0);
    }
    void SetUp() override { write(program_, "program"); }

    TempDir dir_;
    std::vector<fs::path> roots_{dir_ / "root"};
    fs::path program_ = dir_ / kOddName / "compiler";
    std::string answer_ = "version 1\nand \"more\" \xff\x01 text";
    int asked_ = 0;
};

TEST_F(Identity, AsksOnce) {
    EXPECT_EQ(ask(), answer_);
    const auto first = answer_;
    answer_ = "another";
    EXPECT_EQ(ask(), first);
    EXPECT_EQ(ask(), first);
    EXPECT_EQ(asked_, 1);
}

TEST_F(Identity, QuestionsAndProgramsAreApart) {
    ask("--version");
    answer_ = "b";
    EXPECT_EQ(ask("-v"), "b");
    answer_ = "c";
    program_ = dir_ / "other";
    write(program_, "program");
    EXPECT_EQ(ask("--version"), "c");
    EXPECT_EQ(asked_, 3);
}

TEST_F(Identity, AnotherProgramInItsPlaceIsAskedAnew) {
    ask();
    answer_ = "2";
    write(program_, "program that is longer");
    EXPECT_EQ(ask(), "2");
    answer_ = "3";
    const timespec old[2] = {{1000, 1}, {1000, 1}};
    ASSERT_EQ(::utimensat(AT_FDCWD, program_.c_str(), old, 0), 0);
    EXPECT_EQ(ask(), "3");
    answer_ = "4";
    write(dir_ / "new", "program that is longer");
    ASSERT_EQ(::utimensat(AT_FDCWD, (dir_ / "new").c_str(), old, 0), 0);
    fs::rename(dir_ / "new", program_);
    EXPECT_EQ(ask(), "4") << "same size and time, another inode";
    answer_ = "5";
    EXPECT_EQ(ask(), "4");
    EXPECT_EQ(asked_, 4);
}

TEST_F(Identity, ADamagedRecordIsHarmless) {
    const auto first = ask();
    const auto path = record();
    const auto text = slurp(path);
    for (std::size_t i = 0; i < text.size(); i += 7) {
        auto damaged = text;
        damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
        write(path, damaged);
        EXPECT_EQ(ask(), first) << i;
        write(path, text.substr(0, i));
        EXPECT_EQ(ask(), first) << i;
    }
    EXPECT_EQ(ask(), first);
    // Swapped text with valid JSON does not pass either.
    auto changed = text;
    changed.replace(changed.find("version 1"), 9, "version 2");
    write(path, changed);
    EXPECT_EQ(ask(), first);
    EXPECT_EQ(record(), path) << "no drafts are left";
}

TEST_F(Identity, LaterRootsAreReadNotWritten) {
    ask();
    const auto shared = roots_[0];
    roots_ = {dir_ / "mine", shared};
    answer_ = "another";
    EXPECT_CONTAINS(ask(), "version 1");
    EXPECT_FALSE(fs::exists(dir_ / "mine" / "toolchain"));
    write(program_, "changed!");
    EXPECT_EQ(ask(), "another");
    EXPECT_EQ(names_in(dir_ / "mine" / "toolchain").size(), 1u);
}

TEST_F(Identity, WithoutRootsOrWithUnwritableOnesItAsksEachTime) {
    roots_ = {};
    ask();
    EXPECT_EQ(ask(), answer_);
    EXPECT_EQ(asked_, 2);
    write(dir_ / "file", "");
    roots_ = {dir_ / "file"};
    ask();
    EXPECT_EQ(ask(), answer_);
    EXPECT_EQ(asked_, 4);
    roots_ = {dir_ / "root"};
    program_ = dir_ / "missing";
    ask();
    EXPECT_EQ(ask(), answer_);
    EXPECT_EQ(asked_, 6) << "a program that is not there has no stamp";
}

TEST_F(Identity, WhatAskThrowsIsNotRemembered) {
    EXPECT_THROW(remember_identity(roots_, program_, "--version",
                                   []() -> std::string { throw std::runtime_error("no"); }),
                 std::runtime_error);
    EXPECT_EQ(ask(), answer_);
    EXPECT_EQ(asked_, 1);
}

TEST_F(Identity, ManyAtOnce) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 10; ++i)
                if (remember_identity(roots_, program_, "q" + std::to_string(i), [&] {
                        return "a" + std::to_string(i);
                    }) != "a" + std::to_string(i))
                    ++wrong;
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(names_in(roots_[0] / "toolchain").size(), 10u);
}

}  // namespace
