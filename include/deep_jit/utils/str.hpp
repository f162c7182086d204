// String helpers that the rest of the runtime needs: `{}` formatting, joining, trimming.
//
// `std::format` is not used on purpose: GCC 11 and 12 do not have it. Nothing here depends on the
// process's locale.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace deep_jit::str {

/// Text of one value: strings and paths as they are, `true`/`false`, numbers in decimal,
/// pointers as `0x...`, enumerations as their number, an empty optional as `unset`.
template <typename T>
std::string to_text(const T& value) {
    using D = std::decay_t<T>;
    if constexpr (std::is_same_v<D, bool>) {
        return value ? "true" : "false";
    } else if constexpr (std::is_same_v<D, char>) {
        return std::string(1, value);
    } else if constexpr (std::is_same_v<D, std::filesystem::path>) {
        return value.string();
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
        return std::string(std::string_view(value));
    } else if constexpr (std::is_enum_v<D>) {
        return to_text(static_cast<std::underlying_type_t<D>>(value));
    } else if constexpr (std::is_integral_v<D>) {
        char buffer[24];
        const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
        return std::string(buffer, end);
    } else if constexpr (std::is_floating_point_v<D>) {
        char buffer[64];
        const auto end =
            std::to_chars(buffer, buffer + sizeof(buffer), static_cast<double>(value)).ptr;
        return std::string(buffer, end);
    } else if constexpr (std::is_pointer_v<D>) {
        char buffer[24];
        const auto bits = reinterpret_cast<std::uintptr_t>(value);
        const auto end = std::to_chars(buffer, buffer + sizeof(buffer), bits, 16).ptr;
        return "0x" + std::string(buffer, end);
    } else {
        static_assert(std::is_same_v<D, std::optional<typename D::value_type>>,
                      "deep_jit::str::format cannot print this type");
        return value.has_value() ? to_text(*value) : "unset";
    }
}

namespace detail {

/// Fills the `{}` of `pattern` one after the other; `{{` and `}}` are literal braces.
inline std::string fill(std::string_view pattern, const std::string* values, std::size_t count) {
    std::string out;
    std::size_t next = 0;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char c = pattern[i];
        const char following = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
        if (c == '{' && following == '}') {
            out += next < count ? values[next] : std::string("{}");
            ++next;
            ++i;
        } else if ((c == '{' && following == '{') || (c == '}' && following == '}')) {
            out += c;
            ++i;
        } else {
            out += c;
        }
    }
    return out;
}

}  // namespace detail

/// `std::format` with plain `{}` placeholders only.
template <typename... Args>
std::string format(std::string_view pattern, const Args&... args) {
    if constexpr (sizeof...(Args) == 0) {
        return detail::fill(pattern, nullptr, 0);
    } else {
        const std::string values[] = {to_text(args)...};
        return detail::fill(pattern, values, sizeof...(Args));
    }
}

/// Elements of `values`, with `separator` between them.
template <typename Range = std::vector<std::string>>
std::string join(const Range& values, std::string_view separator = " ") {
    std::string out;
    bool first = true;
    for (const auto& value : values) {
        if (!first)
            out += separator;
        first = false;
        out += to_text(value);
    }
    return out;
}

inline bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

inline std::string_view trim(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}

/// Pieces between `separator`s, empty ones included: N separators give N + 1 pieces.
inline std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> out;
    std::size_t start = 0;
    while (true) {
        const auto end = text.find(separator, start);
        out.emplace_back(text.substr(start, end - start));
        if (end == std::string_view::npos)
            return out;
        start = end + 1;
    }
}

/// ASCII lower case, whatever the locale.
inline std::string to_lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z')
            c = static_cast<char>(c - 'A' + 'a');
    return out;
}

inline bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// 16 lower-case hexadecimal digits.
inline std::string to_hex(std::uint64_t value) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out(16, '0');
    for (int i = 15; i >= 0; --i, value >>= 4)
        out[static_cast<std::size_t>(i)] = kDigits[value & 15];
    return out;
}

/// The text as a POSIX shell would need it typed. For messages only: no shell is ever run.
inline std::string quote(std::string_view text) {
    bool plain = !text.empty();
    for (const char c : text)
        plain = plain && (is_word_char(c) ||
                          std::string_view("-+=/.,:@%").find(c) != std::string_view::npos);
    if (plain)
        return std::string(text);
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'')
            out += "'\\''";
        else
            out += c;
    }
    return out + "'";
}

}  // namespace deep_jit::str
