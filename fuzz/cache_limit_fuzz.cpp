// The size limit of a cache, as people write it.
#include <deep_jit/cache/limit.hpp>

#include "fuzz.hpp"

using deep_jit::CacheLimit;
using deep_jit::ConfigError;
using namespace deep_jit_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(text_of(data, size));
    CacheLimit limit;
    if (!succeeds<ConfigError>([&] { limit = CacheLimit::parse(text, "X"); }))
        return 0;
    // Written out in bytes and entries it reads the same.
    std::string plain;
    if (limit.bytes != CacheLimit::kUnlimited)
        plain = std::to_string(limit.bytes);
    if (limit.entries != CacheLimit::kUnlimited)
        plain += (plain.empty() ? "" : ",") + std::to_string(limit.entries) + " entries";
    require(CacheLimit::parse(plain, "X") == limit, "parse(write(x)) == x");
    require(CacheLimit::parse("  " + text + "\n", "X") == limit, "blanks do not count");
    require(text.find_first_of("0123456789") != std::string::npos || limit.unlimited(),
            "a limit has a number");
    return 0;
}
