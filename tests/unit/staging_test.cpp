#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include <deep_jit/cache/staging.hpp>

#include "support.hpp"

namespace {

using deep_jit::StagingDir;
using deep_jit_test::kOddName;
using deep_jit_test::names_in;
using deep_jit_test::ScopedEnv;
using deep_jit_test::ScopedUmask;
using deep_jit_test::TempDir;
namespace fs = std::filesystem;

mode_t mode_of(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
}

TEST(Staging, PrivateOutsideOrdinaryInside) {
    const TempDir dir;
    const ScopedUmask mask(0022);
    StagingDir staging;
    EXPECT_TRUE(staging.empty());
    ASSERT_EQ(StagingDir::create(dir / "a" / "tmp", "tag.0", staging), 0);
    EXPECT_FALSE(staging.empty());
    const auto path = staging.entry_path();
    EXPECT_EQ(path.filename(), "tag.0");
    EXPECT_EQ(path.parent_path().parent_path(), dir / "a" / "tmp");
    EXPECT_EQ(mode_of(path), 0755u);
    EXPECT_EQ(mode_of(path.parent_path()), 0700u);
    EXPECT_CONTAINS(path.parent_path().filename().string(), "." + std::to_string(::getpid()) + ".");
}

TEST(Staging, RemovesItself) {
    const TempDir dir;
    {
        StagingDir staging;
        ASSERT_EQ(StagingDir::create(dir.path(), kOddName, staging), 0);
        deep_jit_test::write(staging.entry_path() / "x" / "y", "z");
        StagingDir other;
        ASSERT_EQ(StagingDir::create(dir.path(), "b", other), 0);
        EXPECT_EQ(names_in(dir.path()).size(), 2u);
        other = std::move(staging);
        EXPECT_EQ(other.entry_path().filename(), kOddName);
        const StagingDir third(std::move(other));
        EXPECT_FALSE(third.empty());
    }
    EXPECT_TRUE(names_in(dir.path()).empty());
}

TEST(Staging, ReleaseLeavesItOnDisk) {
    const TempDir dir;
    fs::path path;
    {
        StagingDir staging;
        ASSERT_EQ(StagingDir::create(dir.path(), "e", staging), 0);
        path = staging.entry_path();
        EXPECT_EQ(staging.release(), path);
        EXPECT_TRUE(staging.empty());
    }
    EXPECT_TRUE(fs::is_directory(path));
}

TEST(Staging, Failures) {
    const TempDir dir;
    deep_jit_test::write(dir / "file", "");
    StagingDir staging;
    EXPECT_EQ(StagingDir::create(dir / "file" / "tmp", "e", staging), ENOTDIR);
    EXPECT_EQ(StagingDir::create(dir / "file", "e", staging), ENOTDIR);
    EXPECT_EQ(StagingDir::create(dir / "tmp", std::string(300, 'n'), staging), ENAMETOOLONG);
    EXPECT_TRUE(staging.empty());
    EXPECT_TRUE(names_in(dir / "tmp").empty()) << "nothing is left of a failure";
    ::mkdir((dir / "read_only").c_str(), 0555);
    const deep_jit_test::ScopedOrdinaryUser user;
    EXPECT_EQ(StagingDir::create(dir / "read_only", "e", staging), EACCES);
}

TEST(Staging, TheFallback) {
    const ScopedEnv none("TMPDIR");
    EXPECT_EQ(deep_jit::fallback_staging_parent(), "/tmp");
    const ScopedEnv relative("TMPDIR", "rel");
    EXPECT_EQ(deep_jit::fallback_staging_parent(), "/tmp");
    const ScopedEnv absolute("TMPDIR", "/a b");
    EXPECT_EQ(deep_jit::fallback_staging_parent(), "/a b");
}

}  // namespace
