#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include <deep_jit/cache/disk.hpp>

#include "support.hpp"

namespace {

using namespace deep_jit;
using deep_jit_test::contains;
using deep_jit_test::kOddName;
using deep_jit_test::message_of;
using deep_jit_test::names_in;
using deep_jit_test::ScopedDirectory;
using deep_jit_test::ScopedEnv;
using deep_jit_test::ScopedOrdinaryUser;
using deep_jit_test::ScopedUmask;
using deep_jit_test::slurp;
using deep_jit_test::TempDir;
using deep_jit_test::write;
namespace fs = std::filesystem;

const EntryFiles kFiles{"kernel.fake", "kernel.bin"};
const std::string kName = "tag.0123";

class DiskCacheTest : public testing::Test {
protected:
    /// Builds and publishes an entry the way Runtime does.
    static bool publish(const DiskCache& cache, const std::string& source,
                        const std::string& artifact, const std::string& name = kName) {
        auto entry = cache.new_entry(name);
        fill(entry, source, artifact);
        return entry.commit();
    }
    static void fill(const DiskCacheEntry& entry, const std::string& source,
                     const std::string& artifact) {
        write(entry.path / "kernel.fake", source);
        write(entry.path / "kernel.bin", artifact);
        write(entry.path / "meta.json", "{}\n");
        write(entry.path / "asm" / "kernel.s", "dump");
    }
    static std::optional<std::string> find(const DiskCache& cache, const std::string& source,
                                           const std::string& name = kName) {
        auto found = cache.find(name, kFiles, source);
        return found ? std::optional(found->artifact) : std::nullopt;
    }

    TempDir dir_;
    fs::path root_ = dir_ / "root";
    ScopedEnv log_{"DJ_JIT_LOG_FILE", (dir_ / "log").string()};
    ScopedEnv tmp_{"TMPDIR", (dir_ / "tmp").string()};
    DiskCache cache_{{root_}};
};

TEST_F(DiskCacheTest, PublishAndFind) {
    EXPECT_EQ(find(cache_, "src"), std::nullopt);
    EXPECT_FALSE(fs::exists(root_)) << "looking makes nothing";
    EXPECT_TRUE(publish(cache_, "src", std::string("art\0ifact", 9)));
    const auto found = cache_.find(kName, kFiles, "src");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->artifact, std::string("art\0ifact", 9));
    EXPECT_EQ(found->path, root_ / "cache" / kName);
    EXPECT_EQ(names_in(found->path), (std::vector<std::string>{".committed", "asm", "kernel.bin",
                                                               "kernel.fake", "meta.json"}));
    EXPECT_TRUE(names_in(root_ / "tmp").empty()) << "nothing stays in staging";
    EXPECT_FALSE(fs::exists(dir_ / "log"));
}

TEST_F(DiskCacheTest, EntryHandles) {
    auto entry = cache_.entry("tag", "0123");
    EXPECT_FALSE(entry.hit);
    EXPECT_FALSE(entry.committed);
    EXPECT_EQ(entry.commit_path, root_ / "cache" / kName);
    EXPECT_EQ(entry.path.filename(), kName);
    EXPECT_TRUE(fs::is_directory(entry.path));
    fill(entry, "s", "a");
    EXPECT_TRUE(entry.commit());
    EXPECT_TRUE(entry.committed);
    EXPECT_EQ(entry.path, entry.commit_path);
    EXPECT_TRUE(entry.commit()) << "again";
    const auto again = cache_.entry("tag", "0123");
    EXPECT_TRUE(again.hit && again.committed);
    EXPECT_EQ(again.path, entry.path);
}

TEST_F(DiskCacheTest, AnAbandonedBuildLeavesNothing) {
    {
        const auto entry = cache_.new_entry(kName);
        fill(entry, "s", "a");
    }
    EXPECT_TRUE(names_in(root_ / "tmp").empty());
    EXPECT_FALSE(fs::exists(root_ / "cache" / kName));
}

TEST_F(DiskCacheTest, PublishedFilesHonourTheUmask) {
    const ScopedUmask mask(0002);
    EXPECT_TRUE(publish(cache_, "s", "a"));
    struct stat info {};
    ASSERT_EQ(::stat((root_ / "cache" / kName).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0775u);
    ASSERT_EQ(::stat((root_ / "cache" / kName / ".committed").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0664u);
}

TEST_F(DiskCacheTest, EveryFlippedByteInEveryFileIsNoticed) {
    ASSERT_TRUE(publish(cache_, "source", "artifact"));
    const auto path = root_ / "cache" / kName;
    int checked = 0;
    for (const auto& file : EntryMarker::of_directory(path).files) {
        for (std::size_t i = 0; i < file.size; ++i, ++checked) {
            const auto good = slurp(path / file.name);
            auto bad = good;
            bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
            write(path / file.name, bad);
            EXPECT_EQ(find(cache_, "source"), std::nullopt) << file.name << " byte " << i;
            EXPECT_FALSE(fs::exists(path)) << "moved aside: " << file.name << " byte " << i;
            ASSERT_TRUE(publish(cache_, "source", "artifact"));
            EXPECT_EQ(find(cache_, "source"), "artifact");
        }
    }
    EXPECT_EQ(checked, 6 + 8 + 3 + 4);
    EXPECT_EQ(names_in(root_ / "quarantine").size(), static_cast<std::size_t>(checked));
}

TEST_F(DiskCacheTest, EveryFlippedByteOfTheMarkerIsNoticed) {
    ASSERT_TRUE(publish(cache_, "s", "a"));
    const auto path = root_ / "cache" / kName;
    const auto good = slurp(path / ".committed");
    for (std::size_t i = 0; i < good.size(); ++i) {
        auto bad = good;
        bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
        write(path / ".committed", bad);
        EXPECT_EQ(find(cache_, "s"), std::nullopt) << i;
        const auto names = names_in(root_ / "quarantine");
        ASSERT_EQ(names.size(), i + 1);
        // Back again, instead of a costly publication.
        for (const auto& name : names)
            if (fs::exists(root_ / "quarantine" / name / ".committed")) {
                fs::rename(root_ / "quarantine" / name, path);
                fs::create_directory(root_ / "quarantine" / name);
            }
        write(path / ".committed", good);
        EXPECT_EQ(find(cache_, "s"), "a");
    }
}

TEST_F(DiskCacheTest, EveryCutInEveryFileIsNoticed) {
    ASSERT_TRUE(publish(cache_, "source", "artifact"));
    const auto path = root_ / "cache" / kName;
    for (const auto& name : {"kernel.fake", "kernel.bin", "meta.json", "asm/kernel.s"}) {
        const auto good = slurp(path / name);
        for (std::size_t size = 0; size < good.size(); ++size) {
            write(path / name, good.substr(0, size));
            EXPECT_EQ(find(cache_, "source"), std::nullopt) << name << " cut to " << size;
            EXPECT_FALSE(fs::exists(path));
            ASSERT_TRUE(publish(cache_, "source", "artifact"));
        }
        write(path / name, good + "\n");
        EXPECT_EQ(find(cache_, "source"), std::nullopt) << name << " grown";
        ASSERT_TRUE(publish(cache_, "source", "artifact"));
    }
    EXPECT_EQ(find(cache_, "source"), "artifact");
    const auto marker = slurp(path / ".committed");
    for (const std::size_t size : {std::size_t(1), marker.size() / 2, marker.size() - 1}) {
        write(path / ".committed", marker.substr(0, size));
        EXPECT_EQ(find(cache_, "source"), std::nullopt) << size;
        ASSERT_TRUE(publish(cache_, "source", "artifact"));
    }
}

TEST_F(DiskCacheTest, AMarkerCutToNothingIsThatOfAnotherImplementation) {
    // The one kind of damage that cannot be told: source and artifact are then taken on trust,
    // as far as the source is the one that was asked for and the artifact is not empty.
    ASSERT_TRUE(publish(cache_, "source", "artifact"));
    const auto path = root_ / "cache" / kName;
    write(path / ".committed", "");
    EXPECT_EQ(find(cache_, "source"), "artifact");
    write(path / "kernel.bin", "");
    EXPECT_EQ(find(cache_, "source"), std::nullopt);
    EXPECT_FALSE(fs::exists(path));
    ASSERT_TRUE(publish(cache_, "source", "artifact"));
    write(path / ".committed", "");
    EXPECT_EQ(find(cache_, "source2"), std::nullopt);
}

TEST_F(DiskCacheTest, AMissingFileIsNoticedAndHealed) {
    for (const auto& name : {"kernel.fake", "kernel.bin", "meta.json", "asm/kernel.s"})
        for (const bool foreign : {false, true}) {
            if (foreign && (contains(name, "meta") || contains(name, "asm")))
                continue;  // a foreign marker lists nothing
            ASSERT_TRUE(publish(cache_, "source", "artifact")) << name;
            const auto path = root_ / "cache" / kName;
            if (foreign)
                write(path / ".committed", "");
            fs::remove(path / name);
            EXPECT_EQ(find(cache_, "source"), std::nullopt) << name;
            EXPECT_FALSE(fs::exists(path)) << "else no process could ever publish here: " << name;
            EXPECT_TRUE(publish(cache_, "source", "artifact")) << name;
            EXPECT_EQ(find(cache_, "source"), "artifact");
            fs::remove_all(path);
        }
}

TEST_F(DiskCacheTest, AFileThatMayNotBeReadIsAMissNotDamage) {
    ASSERT_TRUE(publish(cache_, "source", "artifact"));
    const auto path = root_ / "cache" / kName;
    ::chmod((path / "kernel.bin").c_str(), 0);
    {
        const ScopedOrdinaryUser user;
        EXPECT_EQ(find(cache_, "source"), std::nullopt);
    }
    EXPECT_TRUE(fs::exists(path)) << "others may still use it";
    ::chmod((path / "kernel.bin").c_str(), 0644);
    EXPECT_EQ(find(cache_, "source"), "artifact");
}

TEST_F(DiskCacheTest, AnotherSourceUnderTheSameNameIsNotHandedOut) {
    ASSERT_TRUE(publish(cache_, "source", "artifact"));
    EXPECT_EQ(find(cache_, "other source"), std::nullopt);
    ASSERT_TRUE(publish(cache_, "other source", "other artifact"));
    EXPECT_EQ(find(cache_, "other source"), "other artifact");
}

TEST_F(DiskCacheTest, DamageIsReported) {
    ASSERT_TRUE(publish(cache_, "source", "artifact"));
    write(root_ / "cache" / kName / "kernel.bin", "artifacT");
    find(cache_, "source");
    const auto log = slurp(dir_ / "log");
    EXPECT_CONTAINS(log, (root_ / "cache" / kName).string());
    EXPECT_CONTAINS(log, "kernel.bin does not have the recorded size and checksum");
}

TEST_F(DiskCacheTest, ADirectoryWithoutMarkerIsNoEntryAndMakesRoom) {
    write(root_ / "cache" / kName / "kernel.bin", "half");
    EXPECT_EQ(find(cache_, "source"), std::nullopt);
    EXPECT_TRUE(publish(cache_, "source", "artifact"));
    EXPECT_EQ(find(cache_, "source"), "artifact");
    EXPECT_EQ(names_in(root_ / "quarantine").size(), 1u);
    // An empty one is simply replaced.
    fs::remove_all(root_ / "cache" / kName);
    fs::create_directories(root_ / "cache" / kName);
    EXPECT_TRUE(publish(cache_, "source", "artifact"));
    // A marker that is no file does not count.
    fs::remove_all(root_ / "cache" / kName);
    fs::create_directories(root_ / "cache" / kName / ".committed");
    EXPECT_EQ(find(cache_, "source"), std::nullopt);
    EXPECT_TRUE(publish(cache_, "source", "artifact"));
    EXPECT_EQ(find(cache_, "source"), "artifact");
}

TEST_F(DiskCacheTest, AFileOrLinkInTheWayMakesRoom) {
    write(root_ / "cache" / kName, "a file");
    EXPECT_EQ(find(cache_, "source"), std::nullopt);
    EXPECT_TRUE(publish(cache_, "source", "artifact"));
    EXPECT_EQ(find(cache_, "source"), "artifact");
    fs::remove_all(root_ / "cache" / kName);
    fs::create_directory_symlink(dir_ / "nowhere", root_ / "cache" / kName);
    EXPECT_EQ(find(cache_, "source"), std::nullopt);
    EXPECT_TRUE(publish(cache_, "source", "artifact"));
    EXPECT_EQ(find(cache_, "source"), "artifact");
}

TEST_F(DiskCacheTest, TheLoserOfARaceKeepsItsOwn) {
    auto entry = cache_.new_entry(kName);
    fill(entry, "source", "mine");
    ASSERT_TRUE(publish(cache_, "source", "theirs"));
    const auto staged = entry.path;
    EXPECT_FALSE(entry.commit());
    EXPECT_FALSE(entry.committed);
    EXPECT_EQ(entry.path, staged);
    EXPECT_EQ(slurp(entry.path / "kernel.bin"), "mine");
    EXPECT_EQ(find(cache_, "source"), "theirs");
    EXPECT_FALSE(fs::exists(dir_ / "log")) << "losing is not worth a word";
}

TEST_F(DiskCacheTest, RootsInOrder) {
    const DiskCache one({dir_ / "1"}), two({dir_ / "2"}), both({dir_ / "1", dir_ / "2"});
    ASSERT_TRUE(publish(two, "s", "second"));
    EXPECT_EQ(find(both, "s"), "second");
    ASSERT_TRUE(publish(one, "s", "first"));
    EXPECT_EQ(find(both, "s"), "first");
    write(dir_ / "1" / "cache" / kName / "kernel.bin", "f1rst");
    EXPECT_EQ(find(both, "s"), "second") << "damage in one root, the next serves";
    EXPECT_FALSE(fs::exists(dir_ / "1" / "cache" / kName));
    ASSERT_TRUE(publish(both, "t", "new", "tag.2"));
    EXPECT_EQ(names_in(dir_ / "1" / "cache"), std::vector<std::string>{"tag.2"});
    EXPECT_EQ(names_in(dir_ / "2" / "cache"), std::vector<std::string>{kName});
    EXPECT_EQ(both.entry("tag", "0123").path, dir_ / "2" / "cache" / kName);
}

TEST_F(DiskCacheTest, ADamagedEntryInAReadOnlyRootIsLeftWhereItIs) {
    const DiskCache shared({dir_ / "shared"});
    ASSERT_TRUE(publish(shared, "s", "artifact"));
    const auto path = dir_ / "shared" / "cache" / kName;
    write(path / "kernel.bin", "artifacX");
    ::chmod((dir_ / "shared" / "cache").c_str(), 0555);
    ::chmod(path.c_str(), 0555);
    fs::create_directories(dir_ / "mine");
    ::chmod((dir_ / "mine").c_str(), 0777);
    const ScopedOrdinaryUser user;
    const DiskCache both({dir_ / "mine", dir_ / "shared"});
    EXPECT_EQ(find(both, "s"), std::nullopt);
    EXPECT_TRUE(fs::exists(path));
    EXPECT_TRUE(publish(both, "s", "artifact"));
    EXPECT_EQ(find(both, "s"), "artifact");
}

TEST_F(DiskCacheTest, AReadOnlyRootServesButTakesNothing) {
    ASSERT_TRUE(publish(cache_, "s", "a"));
    for (const auto& path : {root_ / "cache", root_ / "tmp", root_}) ::chmod(path.c_str(), 0555);
    fs::create_directories(dir_ / "tmp");
    ::chmod((dir_ / "tmp").c_str(), 0777);
    write(dir_ / "log", "");
    ::chmod((dir_ / "log").c_str(), 0666);
    const ScopedOrdinaryUser user;
    EXPECT_EQ(find(cache_, "s"), "a");
    auto entry = cache_.new_entry("tag.9");
    EXPECT_TRUE(entry.commit_path.empty());
    EXPECT_EQ(entry.path.parent_path().parent_path(), dir_ / "tmp");
    fill(entry, "s", "b");
    EXPECT_FALSE(entry.commit());
    EXPECT_EQ(slurp(entry.path / "kernel.bin"), "b");
    cache_.new_entry("tag.9");
    EXPECT_EQ(deep_jit_test::count_of(slurp(dir_ / "log"), "warning"), 1u) << "once";
    EXPECT_CONTAINS(slurp(dir_ / "log"), "cannot be written: Permission denied");
}

TEST_F(DiskCacheTest, ARootThatIsAFile) {
    write(dir_ / "file", "");
    const DiskCache cache({dir_ / "file"});
    EXPECT_EQ(find(cache, "s"), std::nullopt);
    auto entry = cache.new_entry(kName);
    EXPECT_TRUE(entry.commit_path.empty());
    fill(entry, "s", "a");
    EXPECT_FALSE(entry.commit());
}

TEST_F(DiskCacheTest, NoPlaceAtAllIsAnError) {
    write(dir_ / "file", "");
    const ScopedEnv tmp("TMPDIR", (dir_ / "file").string());
    const DiskCache cache({dir_ / "file"});
    EXPECT_CONTAINS(message_of<CacheError>([&] { cache.new_entry(kName); }),
                    (dir_ / "file").string());
}

TEST_F(DiskCacheTest, ARootThatVanishesDuringABuild) {
    auto entry = cache_.new_entry(kName);
    fill(entry, "s", "a");
    fs::rename(root_, dir_ / "gone");
    EXPECT_FALSE(entry.commit());
    EXPECT_FALSE(entry.committed);
    EXPECT_CONTAINS(slurp(dir_ / "log"), root_.string());
    // Only the place of publication went away.
    auto other = cache_.new_entry(kName);
    fill(other, "s", "a");
    write(root_ / "cache", "a file");
    EXPECT_FALSE(other.commit());
    EXPECT_EQ(slurp(other.path / "kernel.bin"), "a");
}

TEST_F(DiskCacheTest, FailedBuildsAreKept) {
    auto entry = cache_.new_entry(kName);
    write(entry.path / "kernel.fake", "bad source");
    const auto kept = cache_.keep_failed(entry);
    EXPECT_EQ(kept, root_ / "failed" / kName);
    EXPECT_EQ(slurp(kept / "kernel.fake"), "bad source");
    auto again = cache_.new_entry(kName);
    write(again.path / "kernel.fake", "other");
    EXPECT_EQ(slurp(cache_.keep_failed(again) / "kernel.fake"), "other") << "one for each name";
    // Without a root, in the temporary directory.
    auto homeless = DiskCache().new_entry(kName);
    write(homeless.path / "kernel.fake", "bad");
    const auto left = DiskCache().keep_failed(homeless);
    homeless = DiskCacheEntry();
    EXPECT_EQ(slurp(left / "kernel.fake"), "bad");
}

TEST_F(DiskCacheTest, OddRootsAndNames) {
    const DiskCache cache({dir_ / kOddName});
    ASSERT_TRUE(publish(cache, "s", "a"));
    EXPECT_EQ(find(cache, "s"), "a");
    EXPECT_EQ(names_in(dir_ / kOddName / "cache"), std::vector<std::string>{kName});
}

TEST_F(DiskCacheTest, RelativeRootsAreMadeAbsolute) {
    const ScopedDirectory here(dir_.path());
    const DiskCache cache({"rel/../root2/"});
    EXPECT_EQ(cache.paths, std::vector<fs::path>{fs::current_path() / "root2"});
    const ScopedDirectory elsewhere("/");
    ASSERT_TRUE(publish(cache, "s", "a"));
    EXPECT_TRUE(fs::exists(dir_ / "root2" / "cache" / kName / ".committed"));
    EXPECT_CONTAINS(message_of<ConfigError>([] {
                        DiskCache({"/a", ""});
                    }),
                    "contains an empty path");
}

TEST_F(DiskCacheTest, RootsFromTheEnvironment) {
    const Env env("DJTEST");
    const ScopedEnv own("DJTEST_JIT_CACHE_DIR"), global("DJ_JIT_CACHE_DIR");
    ScopedEnv home("HOME", (dir_ / kOddName).string());
    using Paths = std::vector<fs::path>;
    EXPECT_EQ(DiskCache::from_env(env).paths, Paths{dir_ / kOddName / ".dj"});
    home.set("");
    EXPECT_EQ(DiskCache::from_env(env).paths, Paths{});
    home.set(std::nullopt);
    EXPECT_EQ(DiskCache::from_env(env).paths, Paths{});
    EXPECT_EQ(deep_jit_test::count_of(slurp(dir_ / "log"), "HOME is not set"), 1u);
    const ScopedEnv global_set("DJ_JIT_CACHE_DIR", "/g/");
    EXPECT_EQ(DiskCache::from_env(env).paths, Paths{"/g"});
    ScopedEnv own_set("DJTEST_JIT_CACHE_DIR", "/a b:/c//d:/$(touch pwned)");
    EXPECT_EQ(DiskCache::from_env(env).paths, (Paths{"/a b", "/c/d", "/$(touch pwned)"}));
    for (const char* bad : {"", ":", "/a:", ":/a", "/a::/b"}) {
        own_set.set(bad);
        const auto message = message_of<ConfigError>([&] { DiskCache::from_env(env); });
        EXPECT_CONTAINS(message, "contains an empty path");
        EXPECT_CONTAINS(message, "DJTEST_JIT_CACHE_DIR");
    }
}

}  // namespace
