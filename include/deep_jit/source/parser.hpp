// Follows the tracked includes of a kernel source, line by line, and digests them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/hash.hpp>

namespace deep_jit {

/// A line scanner, not a preprocessor: `#include <name>` is tracked when `name` starts with one of
/// the prefixes, also inside `#if 0`; an untracked angle include and an include by macro are left
/// to the compiler; a quoted include is an error. Tracked files are looked up in the include
/// directories in order and scanned in turn. Where a file lies does not enter the digest, only its
/// name in the directive and its contents.
///
/// Digests of headers are kept for the parser's life. Thread-safe.
class Parser {
public:
    Parser() = default;
    Parser(std::vector<std::filesystem::path> include_dirs,
           std::vector<std::string> include_prefixes)
        : include_dirs_(std::move(include_dirs)), include_prefixes_(std::move(include_prefixes)) {}

    Parser(Parser&& other) noexcept
        : include_dirs_(std::move(other.include_dirs_)),
          include_prefixes_(std::move(other.include_prefixes_)),
          headers_(std::move(other.headers_)) {}

    /// Name of the tracked header that `line` includes, or nothing. Throws ConfigError for a
    /// quoted include and for one without its closing bracket.
    std::optional<std::string> parse_include(std::string_view line) const {
        std::string_view rest = str::trim(line);
        if (!take(rest, "#") || !take(rest, "include") || rest.empty())
            return std::nullopt;
        if (rest.front() == '"')
            reject(line, "quoted includes are not tracked, so they may not be used");
        // `#include_next`, a macro, or no include at all
        if (rest.front() != '<')
            return std::nullopt;
        const auto end = rest.find('>');
        if (end == std::string_view::npos)
            reject(line, "the closing '>' is missing");
        const std::string name(str::trim(rest.substr(1, end - 1)));
        const bool tracked =
            std::any_of(include_prefixes_.begin(), include_prefixes_.end(),
                        [&](const std::string& prefix) { return name.starts_with(prefix); });
        return tracked ? std::optional(name) : std::nullopt;
    }

    /// Digest (32 hexadecimal digits) of `source` and every tracked file below it. Throws
    /// ConfigError for what parse_include rejects, a tracked file that is not found, a circular
    /// include, and a chain of more than 200 files; CacheError for a file that cannot be read.
    std::string parse_into_hash(std::string_view source) {
        std::vector<std::string> chain;
        return digest(source, chain);
    }

private:
    // As deep as GCC goes, and far from the end of the stack.
    static constexpr std::size_t kMaxDepth = 200;

    static bool take(std::string_view& text, std::string_view word) {
        if (!text.starts_with(word))
            return false;
        text = str::trim(text.substr(word.size()));
        return true;
    }

    [[noreturn]] static void reject(std::string_view line, std::string_view why) {
        detail::throw_error<ConfigError>(
            "Found a non-standard include in a kernel source: {}: {}. Write #include <...>",
            str::trim(line), why);
    }

    std::string digest(std::string_view text, std::vector<std::string>& chain) {
        hash::FNV1a hash;
        hash.update(text);
        if (text.starts_with("\xef\xbb\xbf"))
            text.remove_prefix(3);
        while (!text.empty()) {
            const auto end = text.find('\n');
            const auto line = text.substr(0, end);
            text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
            // Most lines have no directive; do not trim them all.
            if (line.find('#') == std::string_view::npos)
                continue;
            if (const auto name = parse_include(line)) {
                hash.update(*name);
                hash.update(header_digest(*name, chain));
            }
        }
        return hash.get_hex_digest();
    }

    std::string header_digest(const std::string& name, std::vector<std::string>& chain) {
        const std::string path = find(name).string();
        if (std::find(chain.begin(), chain.end(), path) != chain.end())
            detail::throw_error<ConfigError>("Found a circular include: {} -> {}",
                                             str::join(chain, " -> "), path);
        {
            const std::lock_guard lock(mutex_);
            if (const auto known = headers_.find(path); known != headers_.end())
                return known->second;
        }
        if (chain.size() >= kMaxDepth)
            detail::throw_error<ConfigError>(
                "Tracked includes are nested deeper than {} files at {}", kMaxDepth, path);
        chain.push_back(path);
        std::string result = digest(read(path), chain);
        chain.pop_back();
        // Another thread may have been faster; whichever came first stays.
        const std::lock_guard lock(mutex_);
        return headers_.emplace(path, std::move(result)).first->second;
    }

    std::filesystem::path find(const std::string& name) const {
        for (const auto& directory : include_dirs_) {
            // As the compiler takes it: to drop `link/..` by its letters would name another file.
            auto path = directory / name;
            if (is_file(path))
                return path;
        }
        detail::throw_error<ConfigError>(
            "Cannot find the tracked header <{}> in the include directories: {}", name,
            include_dirs_.empty() ? std::string("there are none") : str::join(include_dirs_, ", "));
    }

    std::vector<std::filesystem::path> include_dirs_;
    std::vector<std::string> include_prefixes_;
    std::mutex mutex_;
    std::map<std::string, std::string> headers_;
};

}  // namespace deep_jit
