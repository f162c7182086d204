// What is known of each kind of Ascend processor, where its ACL does not say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/str.hpp>

namespace deep_jit::ascend {

/// A kind of processor.
struct Soc {
    std::string_view arch;    ///< as `--npu-arch=dav-<arch>` takes it
    std::int64_t ubuf_bytes;  ///< of a vector core's unified buffer, as far as kernels may use it
};

/// The kind of processor that aclrtGetSocName calls `name`; nothing for one that is not known.
inline std::optional<Soc> find_soc(std::string_view name) {
    struct Row {
        std::string_view prefix;
        bool digit_follows;
        Soc soc;
    };
    // The first match counts. Ascend910B1 is a newer processor, plain Ascend910B an old one.
    static constexpr Row kRows[] = {
        {"Ascend950", false, {"3510", 221184}},   {"Ascend910B", true, {"2201", 196608}},
        {"Ascend910_93", true, {"2201", 196608}}, {"Ascend310B", false, {"3002", 253952}},
        {"Ascend310P", false, {"2002", 262144}},  {"Ascend910", false, {"1001", 262144}},
        {"Ascend035", false, {"3505", 0}},        {"Ascend031", false, {"3004", 0}},
        {"KirinX90", false, {"3003", 0}},         {"Kirin9030", false, {"3113", 0}},
    };
    for (const auto& row : kRows) {
        if (!name.starts_with(row.prefix))
            continue;
        const auto rest = name.substr(row.prefix.size());
        const bool digit = !rest.empty() && rest[0] >= '0' && rest[0] <= '9';
        // Of the last generation with underscores, only the above is known.
        if ((row.digit_follows && !digit) || (row.prefix == "Ascend910" && rest.starts_with("_")))
            continue;
        return row.soc;
    }
    return std::nullopt;
}

/// `text` without `dav-`: "dav-3510" and "3510" are the same. Throws ConfigError, with `what` in
/// front, for what cannot be an architecture.
inline std::string normalize_arch(std::string_view text, std::string_view what) {
    std::string_view out = text;
    if (out.starts_with("dav-"))
        out.remove_prefix(4);
    bool good = !out.empty() && out[0] != '-';
    for (const char c : out)
        good = good && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-');
    if (!good)
        deep_jit::detail::throw_error<ConfigError>(
            "{} has an invalid value '{}': expected an architecture such as 2201 or dav-3510", what,
            text);
    return std::string(out);
}

}  // namespace deep_jit::ascend
