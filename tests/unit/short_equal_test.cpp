#include <memory>
#include <string>

#include <deep_jit/utils/short_equal.hpp>

#include "support.hpp"

namespace {

using deep_jit::str::short_equal;

/// Exactly these bytes on the heap: a read past the end shows under AddressSanitizer.
struct Exact {
    explicit Exact(const std::string& text)
        : bytes(std::make_unique<char[]>(text.size())), size(text.size()) {
        text.copy(bytes.get(), size);
    }
    std::string_view view() const { return {bytes.get(), size}; }
    std::unique_ptr<char[]> bytes;
    std::size_t size;
};

TEST(ShortEqual, EveryByteAndTheLengthCount) {
    for (std::size_t size = 0; size < 200; ++size) {
        std::string text;
        for (std::size_t i = 0; i < size; ++i) text.push_back(static_cast<char>(i * 37 % 251));
        const Exact one(text);
        EXPECT_TRUE(short_equal(one.view(), Exact(text).view())) << size;
        EXPECT_FALSE(short_equal(one.view(), Exact(text + '\0').view())) << size;
        EXPECT_FALSE(short_equal(Exact('\0' + text).view(), one.view())) << size;
        for (std::size_t i = 0; i < size; ++i)
            for (const int bit : {1, 0x80}) {
                std::string other = text;
                other[i] = static_cast<char>(other[i] ^ bit);
                EXPECT_FALSE(short_equal(one.view(), Exact(other).view())) << size << " " << i;
            }
    }
}

TEST(ShortEqual, EmptyViewsWithoutMemory) {
    EXPECT_TRUE(short_equal({}, {}));
    EXPECT_TRUE(short_equal({}, ""));
    EXPECT_FALSE(short_equal({}, "a"));
}

}  // namespace
