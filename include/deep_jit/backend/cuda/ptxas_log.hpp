// Reads what ptxas says of the resources that functions use.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <deep_jit/utils/str.hpp>

namespace deep_jit::cuda {

/// Bytes that one function spills or keeps in local memory.
struct FunctionUsage {
    std::uint64_t spill_stores = 0;
    std::uint64_t spill_loads = 0;
    std::uint64_t stack = 0;  ///< local memory: the stack frame

    bool spills() const { return spill_stores + spill_loads > 0; }
};

namespace detail {

/// The number in front of `unit` in a line, or 0: 8 for ("0 bytes a, 8 bytes b", " bytes b").
inline std::uint64_t number_before(std::string_view line, std::string_view unit) {
    const auto at = line.find(unit);
    if (at == std::string_view::npos)
        return 0;
    auto start = at;
    while (start > 0 && line[start - 1] >= '0' && line[start - 1] <= '9') --start;
    std::uint64_t value = 0;
    for (const char c : line.substr(start, at - start))
        value = value * 10 + static_cast<std::uint64_t>(c - '0');
    return value;
}

/// The text after `before`, up to `end`.
inline std::string text_after(std::string_view line, std::string_view before, char end) {
    const auto at = line.find(before);
    if (at == std::string_view::npos)
        return {};
    const auto rest = line.substr(at + before.size());
    return std::string(str::trim(rest.substr(0, rest.find(end))));
}

}  // namespace detail

/// Usage by (mangled) function name, from the warnings of --warn-on-spills and
/// --warn-on-local-memory-usage and from the lines of --verbose, whichever are there. The latter
/// also come when warnings are turned off.
inline std::map<std::string, FunctionUsage> parse_ptxas_log(std::string_view log) {
    std::map<std::string, FunctionUsage> out;
    std::string current;
    for (const auto& line : str::split(log, '\n')) {
        if (auto name = detail::text_after(line, "Function properties for ", '\n'); !name.empty())
            current = std::move(name);
        auto function = detail::text_after(line, "function '", '\'');
        if (function.empty())
            function = current;
        FunctionUsage usage;
        usage.spill_stores = detail::number_before(line, " bytes spill stores");
        usage.spill_loads = detail::number_before(line, " bytes spill loads");
        usage.stack = detail::number_before(line, " bytes stack frame");
        if (const auto size = detail::text_after(line, "size of stack frame: ", '\n');
            !size.empty())
            usage.stack = detail::number_before(size, " bytes");
        auto& known = out[function];
        known.spill_stores = std::max(known.spill_stores, usage.spill_stores);
        known.spill_loads = std::max(known.spill_loads, usage.spill_loads);
        known.stack = std::max(known.stack, usage.stack);
    }
    return out;
}

}  // namespace deep_jit::cuda
