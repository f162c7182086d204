// Environment variables with checked values, and the two-level `<PREFIX>_X` > `DJ_X` lookup.
#pragma once

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/str.hpp>

namespace deep_jit {

/// Prefix of the process-wide settings; no library may use it as its own.
inline constexpr std::string_view kGlobalEnvPrefix = "DJ";

namespace detail {

template <typename T>
T parse_env_value(const std::string& name, const std::string& text) {
    static_assert(
        std::is_same_v<T, bool> || std::is_same_v<T, int> || std::is_same_v<T, std::string>,
        "environment values are bool, int or std::string");
    if constexpr (std::is_same_v<T, std::string>) {
        return text;
    } else {
        const std::string_view trimmed = str::trim(text);
        std::string_view digits = trimmed;
        // from_chars takes no plus sign
        if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-')
            digits.remove_prefix(1);
        if constexpr (std::is_same_v<T, bool>) {
            const std::string lower = str::to_lower(trimmed);
            if (lower == "true" || lower == "yes")
                return true;
            if (lower == "false" || lower == "no")
                return false;
            // Any integer, however long: it is true when a digit other than 0 is in it.
            if (!digits.empty() && digits[0] == '-')
                digits.remove_prefix(1);
            if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos)
                return digits.find_first_not_of('0') != std::string_view::npos;
            throw_error<ConfigError>(
                "Environment variable {} has an invalid value '{}': expected true, false, yes, no "
                "or an integer",
                name, text);
        } else {
            int value = 0;
            const auto end = digits.data() + digits.size();
            const auto result = std::from_chars(digits.data(), end, value);
            if (digits.empty() || result.ec != std::errc() || result.ptr != end)
                throw_error<ConfigError>(
                    "Environment variable {} has an invalid value '{}': expected an integer of at "
                    "most 32 bits",
                    name, text);
            return value;
        }
    }
}

}  // namespace detail

/// Value of environment variable `name`, or nothing when it is not set. An empty value is a value.
/// Throws ConfigError when it does not read as T (bool, int or std::string).
template <typename T>
std::optional<T> get_env(const std::string& name) {
    const char* text = std::getenv(name.c_str());
    if (text == nullptr)
        return std::nullopt;
    return detail::parse_env_value<T>(name, text);
}

/// The same, with a default for when it is not set.
template <typename T>
T get_env(const std::string& name, const T& fallback) {
    auto value = get_env<T>(name);
    return value ? *std::move(value) : fallback;
}

/// Settings of one library: `get("JIT_DEBUG")` reads `<PREFIX>_JIT_DEBUG`, then `DJ_JIT_DEBUG`.
/// Values are read at each call; nothing is remembered.
class Env {
public:
    explicit Env(std::string prefix) : prefix_(std::move(prefix)) {}

    const std::string& prefix() const noexcept { return prefix_; }

    template <typename T>
    std::optional<T> get(std::string_view suffix) const {
        if (auto value = get_env<T>(prefix_ + "_" + std::string(suffix)))
            return value;
        return get_env<T>(std::string(kGlobalEnvPrefix) + "_" + std::string(suffix));
    }

    template <typename T>
    T get(std::string_view suffix, const T& fallback) const {
        auto value = get<T>(suffix);
        return value ? *std::move(value) : fallback;
    }

    std::string get(std::string_view suffix, const char* fallback) const {
        return get<std::string>(suffix, std::string(fallback));
    }

    /// Name of the variable that gives `suffix` its value now: the library's own when it is set,
    /// else the global one. For messages.
    std::string name_of(std::string_view suffix) const {
        const std::string own = prefix_ + "_" + std::string(suffix);
        if (std::getenv(own.c_str()) != nullptr)
            return own;
        return std::string(kGlobalEnvPrefix) + "_" + std::string(suffix);
    }

private:
    std::string prefix_;
};

}  // namespace deep_jit
