// Equality of strings that are mostly short, as flags are: up to 64 bytes without calling memcmp.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace deep_jit::str {

namespace detail {

template <typename Word>
Word load(const char* p) {
    Word word;
    std::memcpy(&word, p, sizeof(word));
    return word;
}

/// `size` is at least that of a word and at most that of two, which then overlap.
template <typename Word>
bool two_words_differ(const char* a, const char* b, std::size_t size) {
    const std::size_t last = size - sizeof(Word);
    return ((load<Word>(a) ^ load<Word>(b)) | (load<Word>(a + last) ^ load<Word>(b + last))) != 0;
}

}  // namespace detail

inline bool short_equal(std::string_view left, std::string_view right) {
    std::size_t size = left.size();
    if (size != right.size())
        return false;
    const char* a = left.data();
    const char* b = right.data();
    if (size > 64)
        return std::memcmp(a, b, size) == 0;
    for (; size > 16; size -= 16, a += 16, b += 16)
        if (detail::two_words_differ<std::uint64_t>(a, b, 16))
            return false;
    if (size >= 8)
        return !detail::two_words_differ<std::uint64_t>(a, b, size);
    if (size >= 4)
        return !detail::two_words_differ<std::uint32_t>(a, b, size);
    if (size >= 2)
        return !detail::two_words_differ<std::uint16_t>(a, b, size);
    return size == 0 || *a == *b;
}

}  // namespace deep_jit::str
