#include <cstdint>
#include <string>
#include <vector>

#include <deep_jit/runtime/arguments.hpp>
#include <deep_jit/utils/exception.hpp>

#include "support.hpp"

namespace {

using namespace deep_jit;
using deep_jit_test::message_of;

struct TensorMap : NoRefPtr {
    char padding[64] = {};
};

TEST(Arguments, TheAddressIsThatOfTheObject) {
    const int number = 5;
    EXPECT_EQ(argument_pointer(number), static_cast<const void*>(&number));
    float values[4];
    float* const pointer = values;
    EXPECT_EQ(argument_pointer(pointer), static_cast<const void*>(&pointer));
    const volatile double other = 1;
    EXPECT_EQ(argument_pointer(other), &other);
}

TEST(Arguments, ANoRefPtrPassesItsPointer) {
    int storage = 0;
    const NoRefPtr plain{&storage};
    EXPECT_EQ(argument_pointer(plain), &storage);
    TensorMap map;
    map.ptr = &storage;
    EXPECT_EQ(argument_pointer(map), &storage);
    EXPECT_TRUE(is_no_ref_ptr_v<const TensorMap&>);
    EXPECT_FALSE(is_no_ref_ptr_v<int*>);
}

struct alignas(32) Wide {
    char bytes[96];
};

TEST(Arguments, SizesAndAlignments) {
    const auto* infos = detail::kArgumentInfos<char, double, Wide, TensorMap, int*, bool>;
    const std::uint32_t sizes[] = {1, 8, 96, 0, sizeof(int*), 1};
    const std::uint32_t aligns[] = {1, alignof(double), 32, 0, alignof(int*), 1};
    for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(infos[i].size, sizes[i]) << i;
        EXPECT_EQ(infos[i].align, aligns[i]) << i;
    }
}

TEST(Arguments, TheListMustFitTheKernel) {
    const std::uint32_t sizes[] = {8, 4, 1};
    void* const pointers[] = {nullptr, nullptr, nullptr, nullptr};
    const auto check = [&](const std::vector<ArgumentInfo>& infos, std::size_t count) {
        check_arguments("scale", Arguments{pointers, infos.data(), infos.size()}, sizes, count);
    };
    EXPECT_NO_THROW(check({{8, 8}, {4, 4}, {1, 1}}, 3));
    EXPECT_NO_THROW(check({{8, 8}, {0, 0}, {1, 1}}, 3)) << "of unknown size";
    EXPECT_NO_THROW(check({}, 0));
    const auto wrong = message_of<LaunchError>([&] { check({{8, 8}, {8, 8}, {1, 1}}, 3); });
    EXPECT_CONTAINS(wrong, "scale");
    EXPECT_CONTAINS(wrong, "argument 1 has 8 bytes");
    EXPECT_CONTAINS(wrong, "4 bytes");
    const auto few = message_of<LaunchError>([&] { check({{8, 8}}, 3); });
    EXPECT_CONTAINS(few, "argument 1 (4 bytes) is missing");
    EXPECT_CONTAINS(few, "takes 3 argument(s) of (8, 4, 1) bytes; given are 1 of (8) bytes");
    const auto none = message_of<LaunchError>([&] { check({}, 1); });
    EXPECT_CONTAINS(none, "argument 0 (8 bytes) is missing");
    const auto many = message_of<LaunchError>([&] { check({{8, 8}, {0, 0}}, 1); });
    EXPECT_CONTAINS(many, "argument 1 (? bytes) is one too many");
}

TEST(Exceptions, TypesAndParts) {
    const CompileError error("text", {"g++ 'a b'", "log", "/src", "tag.0"});
    const Error& base = error;
    EXPECT_STREQ(base.what(), "text");
    EXPECT_EQ(base.command(), "g++ 'a b'");
    EXPECT_EQ(base.log(), "log");
    EXPECT_EQ(base.source_path(), "/src");
    EXPECT_EQ(base.key(), "tag.0");
    EXPECT_TRUE((std::is_base_of_v<std::runtime_error, Error>));
    EXPECT_EQ(LoadError("x").log(), "");
}

TEST(Exceptions, Macros) {
    int evaluated = 0;
    EXPECT_NO_THROW(DJ_HOST_ASSERT(++evaluated == 1));
    EXPECT_EQ(evaluated, 1);
    const auto plain = message_of<Error>([] { DJ_HOST_ASSERT(1 == 2); });
    EXPECT_CONTAINS(plain, "1 == 2");
    EXPECT_CONTAINS(plain, "arguments_test.cpp");
    EXPECT_CONTAINS(message_of<Error>([] { DJ_HOST_ASSERT(false, "got {} of {}", 1, "x"); }),
                    "got 1 of x");
    EXPECT_EQ(message_of<Error>([] { DJ_PANIC("bad {}", 7); }), "bad 7");
    if (evaluated == 1)
        DJ_HOST_ASSERT(true);
    else
        FAIL() << "the macro swallowed an else";
    EXPECT_EQ(detail::errno_text(ENOENT), "No such file or directory (errno 2)");
}

}  // namespace
