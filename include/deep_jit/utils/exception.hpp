// The errors that this library throws, and the assertion macros that throw them.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include <deep_jit/utils/str.hpp>

namespace deep_jit {

/// What an error knows besides its message. Empty where it does not apply.
struct ErrorDetails {
    std::string command;      ///< the command line that failed, quoted for reading
    std::string log;          ///< everything the compiler or linker printed
    std::string source_path;  ///< the kernel source that was compiled, kept on disk
    std::string key;          ///< `<tag>.<digest>` of the kernel
};

/// Base of every error of this library. `what()` is complete in itself; the accessors give the
/// parts to programs.
class Error : public std::runtime_error {
public:
    explicit Error(const std::string& message, ErrorDetails details = {})
        : std::runtime_error(message), details_(std::move(details)) {}

    const std::string& command() const noexcept { return details_.command; }
    const std::string& log() const noexcept { return details_.log; }
    const std::string& source_path() const noexcept { return details_.source_path; }
    const std::string& key() const noexcept { return details_.key; }

private:
    ErrorDetails details_;
};

/// A setting is wrong: `Config`, an environment variable, an option, a kernel source directive.
class ConfigError : public Error {
    using Error::Error;
};
/// A compiler, toolkit or driver library is missing, too old or does not work.
class ToolchainError : public Error {
    using Error::Error;
};
/// The compiler rejected the source, or its output failed a check that was asked for.
class CompileError : public Error {
    using Error::Error;
};
/// The cache cannot be used as asked. Failing cache writes are not errors: see `DiskCache`.
class CacheError : public Error {
    using Error::Error;
};
/// The compiled binary could not be loaded, or holds other than one kernel.
class LoadError : public Error {
    using Error::Error;
};
/// A launch was refused, or failed.
class LaunchError : public Error {
    using Error::Error;
};

namespace detail {

template <typename E = Error, typename... Args>
[[noreturn]] void throw_error(std::string_view pattern, const Args&... args) {
    throw E(str::format(pattern, args...));
}

[[noreturn]] inline void assertion_failed(const char* file, int line, const char* condition) {
    throw Error(str::format("Assertion failed ({}:{}): {}", file, line, condition));
}

template <typename... Args>
[[noreturn]] void assertion_failed(const char* file, int line, const char* condition,
                                   std::string_view pattern, const Args&... args) {
    throw Error(str::format("Assertion failed ({}:{}): {}: {}", file, line, condition,
                            str::format(pattern, args...)));
}

/// "No such file or directory (errno 2)".
inline std::string errno_text(int error) {
    char buffer[256] = {};
    // The GNU and POSIX versions of strerror_r differ in what they return; both fit here.
    struct Text {
        static const char* of(const char* result, const char*) { return result; }
        static const char* of(int, const char* buffer) { return buffer; }
    };
    return str::format("{} (errno {})",
                       Text::of(::strerror_r(error, buffer, sizeof(buffer)), buffer), error);
}

}  // namespace detail
}  // namespace deep_jit

/// Throws `deep_jit::Error` unless `cond`; an optional `{}` format and its arguments follow.
#define DJ_HOST_ASSERT(cond, ...)                                                   \
    do {                                                                            \
        if (!(cond)) [[unlikely]]                                                   \
            ::deep_jit::detail::assertion_failed(__FILE__, __LINE__,                \
                                                 #cond __VA_OPT__(, ) __VA_ARGS__); \
    } while (false)

/// Throws `deep_jit::Error` with a formatted message.
#define DJ_PANIC(...) ::deep_jit::detail::throw_error<::deep_jit::Error>(__VA_ARGS__)
