// Cache roots that cannot be written, or are not there: kernels work all the same.
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

/// Permissions do not bind the superuser; while this lives the process is nobody, also to the
/// programs that it starts.
class ScopedNobody {
public:
    ScopedNobody() : was_root_(::geteuid() == 0) {
        if (was_root_ && ::setresuid(65534, 65534, 0) != 0)
            throw std::runtime_error("cannot become nobody");
    }
    ~ScopedNobody() {
        if (was_root_ && ::setresuid(0, 0, 0) != 0)
            std::abort();
    }
    ScopedNobody(const ScopedNobody&) = delete;
    ScopedNobody& operator=(const ScopedNobody&) = delete;

private:
    bool was_root_;
};

class HostRoot : public HostTest {
protected:
    HostRoot() {
        // What anybody may write to.
        ::chmod((dir_ / "tmp").c_str(), 0777);
        log_env_.set((dir_ / "tmp/log").string());
    }
    std::string log() const {
        return fs::exists(dir_ / "tmp/log") ? slurp(dir_ / "tmp/log") : std::string();
    }
    /// The kernel works, nothing is left in the temporary directory but the log, and there was
    /// one warning.
    void expect_uncached(const std::string& warning) {
        CountingCompiler compiler(dir_ / "tmp/cc");
        const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", compiler.path());
        const ScopedNobody nobody;
        for (int round = 1; round <= 2; ++round) {
            HostJit jit = make();
            for (int k = 0; k < 2; ++k) {
                const auto kernel = jit.compile("root", store_source(k));
                EXPECT_EQ(stored_by(jit, kernel), k);
                EXPECT_EQ(jit.compile("root", store_source(k)), kernel) << "in memory it is";
            }
            EXPECT_EQ(compiler.compiles(), 2u * static_cast<unsigned>(round)) << "nothing is kept";
        }
        EXPECT_EQ(count_of(log(), "deep_jit warning"), 1u) << log();
        EXPECT_CONTAINS(log(), warning);
        EXPECT_EQ(names_in(dir_ / "tmp"), (std::vector<std::string>{"cc", "cc.log", "log"}));
    }
};

TEST_F(HostRoot, Unwritable) {
    fs::create_directories(root_);
    ::chmod(root_.c_str(), 0555);
    expect_uncached("cannot be written");
    EXPECT_CONTAINS(log(), root_.string());
    EXPECT_TRUE(names_in(root_).empty());
}

TEST_F(HostRoot, ThatCannotBeMade) {
    ::chmod(dir_.path().c_str(), 0555);
    expect_uncached("cannot be written");
    ::chmod(dir_.path().c_str(), 0755);
    EXPECT_FALSE(fs::exists(root_));
}

TEST_F(HostRoot, AFileInItsPlace) {
    write(root_, "not a directory");
    expect_uncached("cannot be written");
    EXPECT_EQ(slurp(root_), "not a directory");
}

TEST_F(HostRoot, WithoutHome) {
    cache_env_.set(std::nullopt);
    home_env_.set(std::nullopt);
    const ScopedDirectory here(dir_.path());
    expect_uncached("HOME is not set");
    EXPECT_FALSE(fs::exists(dir_ / ".dj"));
}

TEST_F(HostRoot, DefaultIsBelowHome) {
    cache_env_.set(std::nullopt);
    HostJit jit = make();
    const auto path = jit.compile_without_load("root", store_source(1));
    EXPECT_EQ(path.parent_path(), dir_ / "home/.dj/cache");
    EXPECT_TRUE(fs::exists(path / ".committed"));
}

TEST_F(HostRoot, PublishedEntriesCanBeReadAndBuildsCannot) {
    const ScopedUmask mask(022);
    fs::path seen;
    const auto script = "if [ $kind = compile ]; then stat -c %a .. >" +
                        str::quote((dir_ / "tmp/mode").string()) + "; fi";
    const CountingCompiler compiler(dir_ / "cc", script);
    const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", compiler.path());
    HostJit jit = make();
    const auto path = jit.compile_without_load("root", store_source(1));
    EXPECT_EQ(slurp(dir_ / "tmp/mode"), "700\n") << "what is being built is private";
    const ScopedNobody nobody;
    HostJit other = make();
    EXPECT_EQ(stored_by(other, other.compile("root", store_source(1))), 1);
    EXPECT_EQ(compiler.compiles(), 1u) << "another user has it from the shared root";
}

TEST_F(HostRoot, AReadOnlySharedRootBehindAnOwnOne) {
    {
        HostJit jit = make();
        jit.compile("root", store_source(1));
    }
    for (fs::recursive_directory_iterator it(root_), end; it != end; ++it)
        ::chmod(it->path().c_str(), it->is_directory() ? 0555 : 0444);
    ::chmod(root_.c_str(), 0555);
    const auto own = dir_ / "tmp/own";
    cache_env_.set(own.string() + ":" + root_.string());
    const CountingCompiler compiler(dir_ / "tmp/cc");
    const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", compiler.path());
    const ScopedNobody nobody;
    HostJit jit = make();
    EXPECT_EQ(stored_by(jit, jit.compile("root", store_source(1))), 1);
    EXPECT_EQ(compiler.compiles(), 0u);
    EXPECT_EQ(stored_by(jit, jit.compile("root", store_source(2))), 2);
    EXPECT_EQ(compiler.compiles(), 1u);
    EXPECT_EQ(names_in(own / "cache").size(), 1u) << "misses go to the first root";
    EXPECT_EQ(names_in(root_ / "cache").size(), 1u);
    EXPECT_EQ(log(), "");
}

TEST_F(HostRoot, NoPlaceAtAll) {
    ::chmod((dir_ / "tmp").c_str(), 0555);
    log_env_.set("/dev/null");
    fs::create_directories(root_);
    ::chmod(root_.c_str(), 0555);
    const ScopedNobody nobody;
    HostJit jit = make();
    const auto message = message_of<CacheError>([&] { jit.compile("root", store_source(1)); });
    EXPECT_CONTAINS(message, "There is no place to build kernels in");
    EXPECT_CONTAINS(message, (dir_ / "tmp").string());
}

}  // namespace
