// What names a compiled kernel: the five components of its cache digest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <deep_jit/utils/hash.hpp>

namespace deep_jit {

/// One byte string for a list, such that different lists give different strings.
inline std::string encode_list(const std::vector<std::string>& values) {
    std::string out;
    for (const auto& value : values) {
        const auto size = static_cast<std::uint64_t>(value.size());
        for (int i = 0; i < 8; ++i) out += static_cast<char>(size >> (8 * i));
        out += value;
    }
    return out;
}

/// Start of every digest of a runtime: components 1 (the library's extra signature) and 2 (the
/// hash of the compiler's identity).
inline hash::FNV1a digest_base(std::string_view extra_signature, std::string_view compiler_hash) {
    return hash::FNV1a().update(extra_signature).update(compiler_hash);
}

/// The digest: components 3 (effective flags, one by one), 4 (post-compilation hook, empty when
/// there is none) and 5 (the parser's digest of the source and its tracked includes).
inline std::string kernel_digest(hash::FNV1a base, const std::vector<std::string>& flags,
                                 std::string_view hook, std::string_view source_digest) {
    return base.update(encode_list(flags)).update(hook).update(source_digest).get_hex_digest();
}

}  // namespace deep_jit
