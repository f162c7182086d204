#include <string>

#include <gtest/gtest.h>
#include <deep_jit/version.hpp>

TEST(Version, PartsAndTextAgree) {
    const auto text = std::to_string(DEEP_JIT_VERSION_MAJOR) + "." +
                      std::to_string(DEEP_JIT_VERSION_MINOR) + "." +
                      std::to_string(DEEP_JIT_VERSION_PATCH);
    EXPECT_EQ(text, DEEP_JIT_VERSION_STRING);
    static_assert(DEEP_JIT_VERSION >= 100);
}

TEST(Version, IsThePackagesVersion) {
    EXPECT_STREQ(DEEP_JIT_VERSION_STRING, DEEP_JIT_PROJECT_VERSION);
}
