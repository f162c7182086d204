// The unset-inherits model of compiler and launch options, written once for every backend.
//
// An options type is an aggregate of std::optional fields (unset: inherit) and std::vector fields
// (appended to the inherited ones), with a static `fields()` that returns a tuple of pointers to
// all its members, in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <deep_jit/utils/hash.hpp>
#include <deep_jit/utils/short_equal.hpp>

namespace deep_jit {

namespace detail {

template <typename T>
inline constexpr bool is_optional_v = false;
template <typename T>
inline constexpr bool is_optional_v<std::optional<T>> = true;

template <typename Options, typename Visit>
constexpr void for_each_field(Visit&& visit) {
    std::apply([&](auto... field) { (visit(field), ...); }, Options::fields());
}

inline void hash_value(hash::FastHash& hash, const std::string& value) { hash.add(value); }
template <typename T>
    requires std::is_integral_v<T>
void hash_value(hash::FastHash& hash, T value) { hash.add(static_cast<std::uint64_t>(value)); }
template <typename T>
void hash_value(hash::FastHash& hash, const std::vector<T>& values) {
    hash.add(static_cast<std::uint64_t>(values.size()));
    for (const auto& value : values) hash_value(hash, value);
}

template <typename T>
bool same_value(const T& a, const T& b) {
    return a == b;
}
inline bool same_value(const std::string& a, const std::string& b) {
    return str::short_equal(a, b);
}
template <typename T>
bool same_value(const std::vector<T>& a, const std::vector<T>& b) {
    if (a.size() != b.size())
        return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!same_value(a[i], b[i]))
            return false;
    return true;
}
template <typename T>
bool same_value(const std::optional<T>& a, const std::optional<T>& b) {
    return a.has_value() == b.has_value() && (!a.has_value() || same_value(*a, *b));
}

}  // namespace detail

/// `base` with every set field of `over` in its place, and its vectors appended.
template <typename Options>
Options override_options(const Options& base, const Options& over) {
    Options out = base;
    detail::for_each_field<Options>([&](auto field) {
        if constexpr (detail::is_optional_v<std::decay_t<decltype(out.*field)>>) {
            if ((over.*field).has_value())
                out.*field = over.*field;
        } else {
            (out.*field).insert((out.*field).end(), (over.*field).begin(), (over.*field).end());
        }
    });
    return out;
}

/// Adds the fields that are set, each with its position. Options without any add nothing.
template <typename Options>
void hash_options(hash::FastHash& hash, const Options& options) {
    std::uint64_t position = 0;
    detail::for_each_field<Options>([&](auto field) {
        ++position;
        const auto& value = options.*field;
        if constexpr (detail::is_optional_v<std::decay_t<decltype(value)>>) {
            if (value.has_value()) {
                hash.add(position);
                detail::hash_value(hash, *value);
            }
        } else if (!value.empty()) {
            hash.add(position);
            detail::hash_value(hash, value);
        }
    });
}

/// Whether every field is unset or empty.
template <typename Options>
bool no_options(const Options& options) {
    // No branch for each field.
    bool any = false;
    detail::for_each_field<Options>([&](auto field) {
        const auto& value = options.*field;
        if constexpr (detail::is_optional_v<std::decay_t<decltype(value)>>)
            any |= value.has_value();
        else
            any |= !value.empty();
    });
    return !any;
}

/// Field by field. (A defaulted operator== would do the same, but only where every field type has
/// one.)
template <typename Options>
bool same_options(const Options& a, const Options& b) {
    bool same = true;
    detail::for_each_field<Options>(
        [&](auto field) { same = same && detail::same_value(a.*field, b.*field); });
    return same;
}

}  // namespace deep_jit
