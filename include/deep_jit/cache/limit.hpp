// How much a cache root may hold, as `JIT_CACHE_LIMIT` says it.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <deep_jit/utils/env.hpp>

namespace deep_jit {

struct CacheLimit {
    static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

    std::uint64_t bytes = kUnlimited;
    std::uint64_t entries = kUnlimited;

    bool operator==(const CacheLimit&) const = default;
    bool unlimited() const { return bytes == kUnlimited && entries == kUnlimited; }

    /// Reads "10G", "512M", "5000 entries", or both with a comma between them. Suffixes K, M, G, T
    /// (with or without B or iB) are powers of 1024; none is bytes. Empty: no limit. Throws
    /// ConfigError that names `variable`.
    static CacheLimit parse(const std::string& text, const std::string& variable) {
        CacheLimit out;
        for (const auto& part : str::split(text, ',')) {
            const auto trimmed = str::trim(part);
            if (trimmed.empty() && str::trim(text).empty())
                continue;
            std::uint64_t number = 0;
            const auto* end = trimmed.data() + trimmed.size();
            const auto result = std::from_chars(trimmed.data(), end, number);
            const auto unit = str::to_lower(str::trim(
                std::string_view(result.ptr, static_cast<std::size_t>(end - result.ptr))));
            int shift = -1;
            for (const std::string_view name :
                 {"", "b", "k", "kb", "kib", "m", "mb", "mib", "g", "gb", "gib", "t", "tb", "tib"})
                if (unit == name)
                    shift = unit.empty() || unit == "b" ? 0 : shift_of(unit[0]);
            const bool entries = unit == "entries" || unit == "entry";
            if (result.ec != std::errc() || (shift < 0 && !entries) ||
                (!entries && number > kUnlimited >> shift))
                detail::throw_error<ConfigError>(
                    "Environment variable {} has an invalid value '{}': expected a size such as "
                    "10G, a number such as '5000 entries', or both with a comma between them",
                    variable, text);
            if (entries)
                out.entries = number;
            else
                out.bytes = number << shift;
        }
        return out;
    }

    static CacheLimit from_env(const Env& env) {
        return parse(env.get("JIT_CACHE_LIMIT", ""), env.name_of("JIT_CACHE_LIMIT"));
    }

private:
    static int shift_of(char unit) {
        return unit == 'k' ? 10 : unit == 'm' ? 20 : unit == 'g' ? 30 : 40;
    }
};

}  // namespace deep_jit
