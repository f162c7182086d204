#include <cerrno>
#include <filesystem>
#include <string>

#include <deep_jit/utils/filesystem.hpp>

#include "support.hpp"

namespace {

using namespace deep_jit;
using deep_jit_test::kOddName;
using deep_jit_test::message_of;
using deep_jit_test::ScopedDirectory;
using deep_jit_test::ScopedOrdinaryUser;
using deep_jit_test::ScopedUmask;
using deep_jit_test::slurp;
using deep_jit_test::TempDir;
namespace fs = std::filesystem;

mode_t mode_of(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
}

TEST(Filesystem, WriteAndReadAnyBytes) {
    const TempDir dir;
    std::string bytes;
    for (int i = 0; i < 70000; ++i) bytes += static_cast<char>(i);
    for (const auto& text : {std::string(), std::string("x"), std::string("\0\r\n\0", 4), bytes}) {
        write_file_sync(dir / kOddName, text);
        EXPECT_EQ(slurp(dir / kOddName), text);
        EXPECT_EQ(deep_jit::read(dir / kOddName), text);
    }
}

TEST(Filesystem, ReadsFilesThatDoNotKnowTheirSize) {
    struct stat info {};
    ASSERT_EQ(::stat("/proc/self/maps", &info), 0);
    ASSERT_EQ(info.st_size, 0);
    const auto text = deep_jit::read("/proc/self/maps");
    EXPECT_GT(text.size(), 1000u);
    EXPECT_EQ(text.back(), '\n');
}

TEST(Filesystem, ReadErrors) {
    const TempDir dir;
    std::string out = "old";
    EXPECT_EQ(try_read(dir / "missing", out), ENOENT);
    EXPECT_EQ(try_read(dir.path(), out), EISDIR);
    ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
    EXPECT_EQ(try_read(dir / "fifo", out), EISDIR) << "and does not wait for a writer";
    EXPECT_EQ(try_read("", out), ENOENT);
    const auto message = message_of<CacheError>([&] { deep_jit::read(dir / "missing"); });
    EXPECT_CONTAINS(message, (dir / "missing").string());
    EXPECT_CONTAINS(message, "No such file or directory");
}

TEST(Filesystem, WriteErrors) {
    const TempDir dir;
    EXPECT_EQ(try_write_file_sync(dir / "missing" / "x", "y"), ENOENT);
    EXPECT_EQ(try_write_file_sync(dir.path(), "y"), EISDIR);
    EXPECT_EQ(try_write_file_sync("/dev/full", "y"), ENOSPC);
    EXPECT_CONTAINS(message_of<CacheError>([] { write_file_sync("/dev/full", "y"); }),
                    "No space left on device");
}

TEST(Filesystem, WritingHonoursTheUmask) {
    const TempDir dir;
    {
        const ScopedUmask mask(0002);
        write_file_sync(dir / "a", "");
        make_dirs(dir / "da" / "db");
    }
    {
        const ScopedUmask mask(0077);
        write_file_sync(dir / "b", "");
        make_dirs(dir / "dc");
    }
    EXPECT_EQ(mode_of(dir / "a"), 0664u);
    EXPECT_EQ(mode_of(dir / "da"), 0775u);
    EXPECT_EQ(mode_of(dir / "da" / "db"), 0775u);
    EXPECT_EQ(mode_of(dir / "b"), 0600u);
    EXPECT_EQ(mode_of(dir / "dc"), 0700u);
}

TEST(Filesystem, WritingReplaces) {
    const TempDir dir;
    write_file_sync(dir / "a", "long text");
    write_file_sync(dir / "a", "x");
    EXPECT_EQ(slurp(dir / "a"), "x");
}

TEST(Filesystem, MakeDirs) {
    const TempDir dir;
    const auto deep = dir / "a" / kOddName / "c";
    make_dirs(deep);
    EXPECT_TRUE(fs::is_directory(deep));
    make_dirs(deep);  // once more
    EXPECT_EQ(try_make_dirs(deep.string() + "/"), 0);
    deep_jit_test::write(dir / "file", "");
    EXPECT_EQ(try_make_dirs(dir / "file"), ENOTDIR);
    EXPECT_EQ(try_make_dirs(dir / "file" / "x"), ENOTDIR);
    EXPECT_CONTAINS(message_of<CacheError>([&] { make_dirs(dir / "file" / "x"); }),
                    (dir / "file" / "x").string());
    EXPECT_EQ(try_make_dirs("/"), 0);
    EXPECT_EQ(try_make_dirs("/proc"), 0) << "exists, though it could not be made";
    fs::create_directory_symlink(deep, dir / "link");
    EXPECT_EQ(try_make_dirs(dir / "link"), 0);
    fs::create_directory_symlink(dir / "nowhere", dir / "dangling");
    EXPECT_NE(try_make_dirs(dir / "dangling"), 0);
    const ScopedDirectory here(dir.path());
    EXPECT_EQ(try_make_dirs("rel/x"), 0);
    EXPECT_TRUE(fs::is_directory(dir / "rel" / "x"));
}

TEST(Filesystem, MakeDirsWithoutPermission) {
    const TempDir dir;
    make_dirs(dir / "there");
    ::chmod(dir.path().c_str(), 0555);
    const ScopedOrdinaryUser user;
    EXPECT_EQ(try_make_dirs(dir / "there"), 0);
    EXPECT_EQ(try_make_dirs(dir / "new"), EACCES);
    EXPECT_EQ(try_make_dirs(dir / "new" / "er"), EACCES);
}

TEST(Filesystem, SafeRemoveAll) {
    const TempDir dir;
    deep_jit_test::write(dir / "tree" / kOddName / "x", "1");
    deep_jit_test::write(dir / "kept" / "x", "1");
    fs::create_directory_symlink(dir / "kept", dir / "tree" / "link");
    EXPECT_TRUE(safe_remove_all(dir / "tree"));
    EXPECT_FALSE(fs::exists(dir / "tree"));
    EXPECT_EQ(slurp(dir / "kept" / "x"), "1") << "a link is removed, not what it points to";
    EXPECT_TRUE(safe_remove_all(dir / "tree")) << "nothing is left";
    EXPECT_TRUE(safe_remove_all(dir / "kept" / "x"));
    EXPECT_FALSE(safe_remove_all("/proc/self/status"));
}

TEST(Filesystem, IsExecutable) {
    const TempDir dir;
    deep_jit_test::write(dir / "plain", "");
    deep_jit_test::make_script(dir / "script", "");
    fs::create_symlink(dir / "script", dir / "link");
    fs::create_symlink(dir / "gone", dir / "dangling");
    EXPECT_FALSE(is_executable(dir / "plain"));
    EXPECT_TRUE(is_executable(dir / "script"));
    EXPECT_TRUE(is_executable(dir / "link"));
    EXPECT_FALSE(is_executable(dir / "dangling"));
    EXPECT_FALSE(is_executable(dir.path())) << "a directory";
    EXPECT_FALSE(is_executable(""));
    EXPECT_TRUE(is_file(dir / "plain"));
    EXPECT_FALSE(is_file(dir.path()));
}

TEST(Filesystem, NormalizePath) {
    EXPECT_EQ(normalize_path("/a/./b//c/../d/"), "/a/b/d");
    EXPECT_EQ(normalize_path("/"), "/");
    EXPECT_EQ(normalize_path("/.."), "/");
    EXPECT_EQ(normalize_path("/a b/'x'"), "/a b/'x'");
    const TempDir dir;
    const ScopedDirectory here(dir.path());
    const auto cwd = fs::current_path();
    EXPECT_EQ(normalize_path("x"), cwd / "x");
    EXPECT_EQ(normalize_path("."), cwd);
    EXPECT_EQ(normalize_path("./x/"), cwd / "x");
    EXPECT_EQ(normalize_path(".."), cwd.parent_path());
    EXPECT_EQ(normalize_path("~/x"), cwd / "~" / "x") << "no shell, so no home directories";
}

TEST(Filesystem, Stamps) {
    const TempDir dir;
    EXPECT_EQ(FileStamp::of(dir / "a"), std::nullopt);
    deep_jit_test::write(dir / "a", "12345");
    const auto first = FileStamp::of(dir / "a");
    ASSERT_TRUE(first);
    EXPECT_EQ(first->size, 5u);
    EXPECT_EQ(FileStamp::of(dir / "a"), first);
    fs::create_symlink(dir / "a", dir / "link");
    EXPECT_EQ(FileStamp::of(dir / "link"), first);
    const timespec old[2] = {{1000, 1}, {1000, 1}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (dir / "a").c_str(), old, 0), 0);
    EXPECT_EQ(FileStamp::of(dir / "a")->mtime_ns, 1000000000001);
    EXPECT_TRUE(try_update_mtime(dir / "a"));
    EXPECT_GT(FileStamp::of(dir / "a")->mtime_ns, 1600000000000000000);
    EXPECT_FALSE(try_update_mtime(dir / "missing"));
    deep_jit_test::write(dir / "b", "12345");
    fs::rename(dir / "b", dir / "a");
    EXPECT_NE(FileStamp::of(dir / "a")->inode, first->inode);
}

TEST(Filesystem, UniqueFd) {
    int raw;
    {
        UniqueFd fd(::open("/dev/null", O_RDONLY));
        raw = fd.get();
        ASSERT_TRUE(fd);
        UniqueFd other(std::move(fd));
        EXPECT_FALSE(fd);  // NOLINT: moved-from is empty
        EXPECT_EQ(other.get(), raw);
        UniqueFd third;
        third = std::move(other);
        EXPECT_EQ(third.get(), raw);
        EXPECT_EQ(::fcntl(raw, F_GETFD), 0);
    }
    EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
    UniqueFd bad(-1);
    EXPECT_EQ(bad.reset(), 0);
    UniqueFd closed(raw);
    EXPECT_EQ(closed.reset(), EBADF);
}

TEST(Filesystem, FilesAreClosedOnExecAndStayOffTheStandardStreams) {
    const TempDir dir;
    const auto result = deep_jit_test::run_child([&] {
        // A program may run without standard streams; what it logs must not land in our files.
        for (int fd = 0; fd < 3; ++fd) ::close(fd);
        const auto fd = fs_detail::open_retrying(dir / "x", O_WRONLY | O_CREAT, 0666);
        if (fd.get() < 3)
            return 1;
        return ::fcntl(fd.get(), F_GETFD) == FD_CLOEXEC ? 0 : 2;
    });
    EXPECT_TRUE(result.ok()) << result;
}

}  // namespace
