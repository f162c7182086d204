// Kernels and argument sizes of device objects, also of damaged ones.
#include <deep_jit/backend/ascend/elf.hpp>

#include <random>

#include "unit/ascend/objects.hpp"
#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using ascend::read_object;
using Names = std::vector<std::string>;

Names kernels_of(const DeviceObject& object) {
    const auto info = read_object(object.bytes());
    return info ? info->kernels : Names{"no object"};
}

TEST(AscendElf, TheSectionNamesTheKernel) {
    EXPECT_EQ(kernels_of(DeviceObject().kernel("scale")), Names{"scale"});
    EXPECT_EQ(kernels_of(DeviceObject().kernel("_Z5scalePfi")), Names{"_Z5scalePfi"});
    // The section may be a note as well; of any other type it means nothing.
    EXPECT_EQ(kernels_of(DeviceObject().section(".ascend.meta.k", "", SHT_NOTE)), Names{"k"});
    EXPECT_EQ(kernels_of(DeviceObject().section(".ascend.meta.k", "x", SHT_STRTAB)), Names{});
}

TEST(AscendElf, TheHalvesOfAMixKernelAreOneKernel) {
    EXPECT_EQ(kernels_of(DeviceObject().kernel("gemm_mix_aic").kernel("gemm_mix_aiv")),
              Names{"gemm"});
    EXPECT_EQ(kernels_of(DeviceObject().kernel("gemm_mix_aiv")), Names{"gemm"});
    EXPECT_EQ(kernels_of(DeviceObject()
                             .kernel("b_mix_aiv")
                             .kernel("a_mix_aic")
                             .kernel("b_mix_aic")
                             .kernel("a_mix_aiv")),
              (Names{"a", "b"}));
    // One suffix is taken off, not two; and a name is never empty.
    EXPECT_EQ(kernels_of(DeviceObject().kernel("k_mix_aic_mix_aiv")), Names{"k_mix_aic"});
    EXPECT_EQ(kernels_of(DeviceObject().kernel("_mix_aic")), Names{"_mix_aic"});
    EXPECT_EQ(kernels_of(DeviceObject().kernel("k_mix_aicore")), Names{"k_mix_aicore"});
}

TEST(AscendElf, OtherSectionsWithTheNameAreNoKernels) {
    EXPECT_EQ(kernels_of(DeviceObject()
                             .kernel("k")
                             .section(".ascend.meta", "binary")
                             .section(".ascend.meta.", "nothing")
                             .section(".ascend.stack.size.record", "12345678")),
              Names{"k"});
}

TEST(AscendElf, HelpersWithoutASectionDoNotCount) {
    EXPECT_EQ(kernels_of(DeviceObject().kernel("k").function({"helper"})), Names{"k"});
}

TEST(AscendElf, WithoutSectionsTheVisibleFunctionsCount) {
    EXPECT_EQ(kernels_of(DeviceObject()
                             .function({"add_kernel"})
                             .function({"add_kernel$local", STB_LOCAL, STV_DEFAULT, STT_NOTYPE})
                             .function({"add_kernel__", STB_WEAK, STV_DEFAULT, STT_OBJECT})
                             .function({"hidden", STB_GLOBAL, STV_HIDDEN})
                             .function({"internal", STB_GLOBAL, STV_INTERNAL})
                             .function({"local", STB_LOCAL})
                             .function({"weak", STB_WEAK})
                             .function({"outside", STB_GLOBAL, STV_DEFAULT, STT_FUNC, false})
                             .function({""})),
              Names{"add_kernel"});
    EXPECT_EQ(kernels_of(DeviceObject().function({"a_mix_aic"}).function({"a_mix_aiv"})),
              Names{"a"});
    EXPECT_EQ(kernels_of(DeviceObject()), Names{});
    EXPECT_EQ(kernels_of(DeviceObject().function({"c"}).function({"a"}).function({"b"})),
              (Names{"a", "b", "c"}));
}

TEST(AscendElf, ArgumentBytes) {
    const auto bytes_of = [](const DeviceObject& object) {
        return read_object(object.bytes())->argument_bytes;
    };
    EXPECT_EQ(bytes_of(DeviceObject().kernel("k")), std::nullopt);
    EXPECT_EQ(bytes_of(DeviceObject().kernel("k").argument_bytes({56})), 56U);
    EXPECT_EQ(bytes_of(DeviceObject().argument_bytes({0x12345678}).kernel("k")), 0x12345678U);
    // One for each half of a mix kernel; different ones say nothing.
    EXPECT_EQ(bytes_of(DeviceObject().argument_bytes({24, 24})), 24U);
    EXPECT_EQ(bytes_of(DeviceObject().argument_bytes({24, 32})), std::nullopt);
    EXPECT_EQ(bytes_of(DeviceObject().argument_bytes({})), std::nullopt);
    EXPECT_EQ(bytes_of(DeviceObject().section("__CCE_KernelArgSize", "abc")), std::nullopt);
}

TEST(AscendElf, WhatIsNoDeviceObject) {
    EXPECT_FALSE(read_object(""));
    EXPECT_FALSE(
        read_object("\x7f"
                    "ELF"));
    EXPECT_FALSE(read_object(std::string(1000, 'x')));
    EXPECT_FALSE(read_object(slurp("/bin/true")));
    EXPECT_FALSE(read_object(DeviceObject().kernel("k").machine(EM_X86_64).bytes()));
    EXPECT_FALSE(read_object(DeviceObject().kernel("k").machine(EM_AARCH64).bytes()));
    auto narrow = DeviceObject().kernel("k").bytes();
    narrow[EI_CLASS] = ELFCLASS32;
    EXPECT_FALSE(read_object(narrow));
}

/// In memory that ends where the object ends, so that a sanitizer sees any step beyond.
std::optional<ascend::ObjectInfo> read_exactly(std::string_view bytes) {
    const std::vector<char> copy(bytes.begin(), bytes.end());
    return read_object({copy.data(), copy.size()});
}

TEST(AscendElf, ASectionOfTypeNullHasNoBytes) {
    // It may claim any: what comes behind the file must not become names of sections.
    auto bytes = DeviceObject().function({"visible"}).kernel("k").bytes();
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    char* const at = bytes.data() + header.e_shoff + header.e_shstrndx * sizeof(Elf64_Shdr);
    Elf64_Shdr names;
    std::memcpy(&names, at, sizeof(names));
    names.sh_type = SHT_NULL;
    std::memcpy(at, &names, sizeof(names));
    EXPECT_EQ(read_exactly(bytes)->kernels, (Names{"k", "visible"}));
    names.sh_size = bytes.size() - names.sh_offset + 4;
    std::memcpy(at, &names, sizeof(names));
    EXPECT_EQ(read_exactly(bytes)->kernels, (Names{"k", "visible"}));
    EXPECT_EQ(read_exactly(bytes + "more")->kernels, (Names{"k", "visible"}));
}

TEST(AscendElf, ATruncatedObjectIsNone) {
    const auto whole =
        DeviceObject().kernel("a_mix_aic").kernel("a_mix_aiv").argument_bytes({56, 56}).bytes();
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(read_exactly(std::string_view(whole).substr(0, size)).has_value()) << size;
    EXPECT_EQ(read_exactly(whole)->kernels, Names{"a"});
}

TEST(AscendElf, MutatedObjectsAreReadWithoutHarm) {
    const auto whole =
        DeviceObject().kernel("a_mix_aic").kernel("a_mix_aiv").argument_bytes({56, 56}).bytes();
    std::mt19937 random(20260110);
    std::size_t read = 0;
    constexpr int kRounds = 20000;
    for (int round = 0; round < kRounds; ++round) {
        auto bytes = whole;
        for (auto changes = random() % 8 + 1; changes > 0; --changes) {
            static constexpr unsigned char kOdd[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
            bytes[random() % bytes.size()] =
                static_cast<char>(random() % 2 == 0 ? kOdd[random() % 5] : random() % 256);
        }
        if (const auto info = read_exactly(bytes)) {
            ++read;
            for (const auto& name : info->kernels) EXPECT_LT(name.size(), whole.size());
        }
    }
    // Many changes leave the tables alone.
    EXPECT_GT(read, std::size_t{kRounds / 10});
}

}  // namespace
