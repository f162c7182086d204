// What the fuzz targets share: a property that ends the program when it does not hold, and inputs
// cut in pieces.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace deep_jit_fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// Aborts, which the fuzzer reports with the input, unless `holds`.
inline void require(bool holds, const char* property) {
    if (holds)
        return;
    std::fprintf(stderr, "does not hold: %s\n", property);
    std::abort();
}

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// Runs `action`; false when it throws E. Anything else that it throws ends the program.
template <typename E, typename Action>
bool succeeds(Action&& action) {
    try {
        action();
        return true;
    } catch (const E&) {
        return false;
    }
}

}  // namespace deep_jit_fuzz
