// What the unit tests share: odd temporary directories, scoped environment variables, children.
#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#if defined(__SANITIZE_THREAD__)
#define DJ_TEST_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define DJ_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DJ_TEST_TSAN 1
#elif __has_feature(address_sanitizer)
#define DJ_TEST_ASAN 1
#endif
#endif
#ifndef DJ_TEST_TSAN
#define DJ_TEST_TSAN 0
#endif
#ifndef DJ_TEST_ASAN
#define DJ_TEST_ASAN 0
#endif

namespace deep_jit_test {

namespace fs = std::filesystem;

/// A name that breaks whatever passes it to a shell, splits at blanks, or quotes badly.
inline constexpr const char* kOddName = "a b'c\"d $(touch pwned);`touch pwned`\n&|*?#\\ \t\xc3\xa9";

/// Everything that can stand in a file.
inline void write(const fs::path& path, std::string_view text) {
    fs::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (!out.flush())
        throw std::runtime_error("cannot write " + path.string());
}

inline std::string slurp(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in)
        throw std::runtime_error("cannot read " + path.string());
    return std::string(std::istreambuf_iterator<char>(in), {});
}

inline void make_script(const fs::path& path, std::string_view text) {
    write(path, text);
    fs::permissions(path, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                              fs::perms::others_read | fs::perms::others_exec);
}

/// Names in a directory, sorted; none when it is not there.
inline std::vector<std::string> names_in(const fs::path& directory) {
    std::vector<std::string> out;
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
        out.push_back(it->path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
}

/// A directory of its own for one test, with an odd name unless asked otherwise; removed at the
/// end. Checks that nothing in the test ran `touch pwned`.
class TempDir {
public:
    explicit TempDir(std::string_view name = kOddName) {
        const char* base = std::getenv("TMPDIR");
        std::string pattern = std::string(base != nullptr && base[0] == '/' ? base : "/tmp") +
                              "/deep_jit_test.XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr)
            throw std::runtime_error("cannot make a temporary directory");
        outer_ = pattern;
        path_ = outer_ / name;
        fs::create_directories(path_);
        // Others may look in: some tests give up the rights of the superuser.
        ::chmod(outer_.c_str(), 0755);
    }
    ~TempDir() {
        EXPECT_FALSE(fs::exists("pwned")) << "a shell ran something";
        EXPECT_FALSE(fs::exists(path_ / "pwned")) << "a shell ran something";
        std::error_code error;
        for (fs::recursive_directory_iterator it(outer_, error), end; !error && it != end;
             it.increment(error))
            if (it->is_directory(error) && !it->is_symlink(error))
                ::chmod(it->path().c_str(), 0755);
        fs::remove_all(outer_, error);
    }
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;

    const fs::path& path() const { return path_; }
    fs::path operator/(const fs::path& name) const { return path_ / name; }

private:
    fs::path outer_;
    fs::path path_;
};

/// Sets (or, without a value, unsets) an environment variable for the life of this object.
class ScopedEnv {
public:
    explicit ScopedEnv(std::string name, const std::optional<std::string>& value = std::nullopt)
        : name_(std::move(name)) {
        if (const char* old = std::getenv(name_.c_str()))
            old_ = old;
        set(value);
    }
    ~ScopedEnv() { set(old_); }
    ScopedEnv(const ScopedEnv&) = delete;
    ScopedEnv& operator=(const ScopedEnv&) = delete;

    void set(const std::optional<std::string>& value) {
        if (value)
            ::setenv(name_.c_str(), value->c_str(), 1);
        else
            ::unsetenv(name_.c_str());
    }

private:
    std::string name_;
    std::optional<std::string> old_;
};

/// Changes the working directory for the life of this object.
class ScopedDirectory {
public:
    explicit ScopedDirectory(const fs::path& path) : old_(fs::current_path()) {
        fs::current_path(path);
    }
    ~ScopedDirectory() {
        std::error_code error;
        fs::current_path(old_, error);
    }
    ScopedDirectory(const ScopedDirectory&) = delete;
    ScopedDirectory& operator=(const ScopedDirectory&) = delete;

private:
    fs::path old_;
};

class ScopedUmask {
public:
    explicit ScopedUmask(mode_t mask) : old_(::umask(mask)) {}
    ~ScopedUmask() { ::umask(old_); }
    ScopedUmask(const ScopedUmask&) = delete;
    ScopedUmask& operator=(const ScopedUmask&) = delete;

private:
    mode_t old_;
};

/// File permissions do not bind the superuser; while this lives, the process is someone else.
class ScopedOrdinaryUser {
public:
    ScopedOrdinaryUser() : was_(::geteuid()) {
        if (was_ == 0 && ::seteuid(65534) != 0)
            throw std::runtime_error("cannot become an ordinary user");
    }
    ~ScopedOrdinaryUser() {
        if (was_ == 0 && ::seteuid(0) != 0)
            std::abort();
    }
    ScopedOrdinaryUser(const ScopedOrdinaryUser&) = delete;
    ScopedOrdinaryUser& operator=(const ScopedOrdinaryUser&) = delete;

private:
    uid_t was_;
};

/// What a child did: how it ended, and whether it had to be killed because it hung.
struct ChildResult {
    int status = 0;
    bool hung = false;
    bool ok() const { return !hung && WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

inline std::ostream& operator<<(std::ostream& out, const ChildResult& result) {
    if (result.hung)
        return out << "the child hung";
    if (WIFEXITED(result.status))
        return out << "the child exited with " << WEXITSTATUS(result.status);
    return out << "the child died of signal " << WTERMSIG(result.status);
}

inline ChildResult wait_child(pid_t child, int seconds = 30) {
    ChildResult result;
    for (int i = 0; i < seconds * 200; ++i) {
        if (::waitpid(child, &result.status, WNOHANG) == child)
            return result;
        ::usleep(5000);
    }
    result.hung = true;
    ::kill(child, SIGKILL);
    ::waitpid(child, &result.status, 0);
    return result;
}

/// Runs `body` in a forked child; its result is the exit status (0: good), an exception is 99.
inline pid_t start_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        int status = 99;
        try {
            status = body();
        } catch (const std::exception& error) {
            const std::string text = std::string("in a child: ") + error.what() + "\n";
            [[maybe_unused]] const auto n = ::write(2, text.data(), text.size());
        } catch (...) {  // NOLINT: reported by the exit status
        }
        ::_exit(status);
    }
    return child;
}

inline ChildResult run_child(const std::function<int()>& body, int seconds = 30) {
    return wait_child(start_child(body), seconds);
}

/// What `action` throws as E: its message. Fails the test when it throws anything else, or not.
template <typename E, typename Action>
std::string message_of(Action&& action) {
    try {
        action();
    } catch (const E& error) {
        return error.what();
    } catch (const std::exception& error) {
        ADD_FAILURE() << "another type of error: " << error.what();
        return {};
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

inline std::size_t count_of(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
        ++count;
    return count;
}

}  // namespace deep_jit_test

#define EXPECT_CONTAINS(text, part)                                                                \
    EXPECT_PRED2(                                                                                  \
        [](const std::string& t, const std::string& p) { return t.find(p) != std::string::npos; }, \
        std::string(text), std::string(part))
