// What lies in a linked object: as in a real one, where the facts about those are known.
#include <elf.h>

#include <algorithm>

#include "stand_in/cann/tools/device_object.hpp"
#include "unit/stand_in_cann/fixture.hpp"

namespace {

using namespace stand_in_test;

std::vector<std::string> meta_sections(const std::string& object) {
    std::vector<std::string> out;
    const ::stand_in::ElfImage elf(object);
    for (const auto& section : elf.sections())
        if (section.name.substr(0, 13) == ".ascend.meta.")
            out.emplace_back(section.name.substr(13));
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<std::string> global_functions(const std::string& object) {
    std::vector<std::string> out;
    const ::stand_in::ElfImage elf(object);
    for (const auto& symbol : dj_stand_in::symbols_of(elf))
        if (symbol.is_global_function())
            out.emplace_back(symbol.name);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());  // .dynsym is not among them
    return out;
}

/// The value of a record in a meta section: `type, length, payload`.
std::uint32_t meta_value(const std::string& object, const std::string& symbol, int type) {
    const ::stand_in::ElfImage elf(object);
    const auto* section = elf.find(".ascend.meta." + symbol);
    if (section == nullptr)
        return ~0u;
    for (std::size_t at = 0; at + 4 <= section->bytes.size();) {
        const auto record = ::stand_in::read_at<std::uint16_t>(section->bytes, at, "a record");
        const auto length = ::stand_in::read_at<std::uint16_t>(section->bytes, at + 2, "a record");
        if (record == type)
            return ::stand_in::read_at<std::uint32_t>(section->bytes, at + 4, "a record");
        at += 4u + length;
    }
    return ~0u;
}

std::vector<std::uint32_t> argument_sizes(const std::string& object) {
    const ::stand_in::ElfImage elf(object);
    const auto* section = elf.find("__CCE_KernelArgSize");
    std::vector<std::uint32_t> out;
    for (std::size_t at = 0; section != nullptr && at < section->bytes.size(); at += 4)
        out.push_back(::stand_in::read_at<std::uint32_t>(section->bytes, at, "a size"));
    return out;
}

using Names = std::vector<std::string>;

TEST(StandInObject, IsForAnotherMachine) {
    const ::stand_in::ElfImage elf(kernel_object("plain_add"));
    EXPECT_EQ(elf.header().e_machine, 0x1029);
}

TEST(StandInObject, OneKernel) {
    const auto& object = kernel_object("plain_add");
    EXPECT_EQ(meta_sections(object), Names{"plain_add"});
    EXPECT_EQ(global_functions(object), Names{"plain_add"});
    EXPECT_EQ(meta_value(object, "plain_add", 1), 3u);  // for a vector core
}

TEST(StandInObject, AMixKernelHasTwoSymbolsAndSections) {
    const auto& object = kernel_object("mix_scale");
    const Names both = {"mix_scale_mix_aic", "mix_scale_mix_aiv"};
    EXPECT_EQ(meta_sections(object), both);
    EXPECT_EQ(global_functions(object), both);
    EXPECT_EQ(meta_value(object, both[0], 3), 1u | 2u << 16);  // one cube to two vector cores
}

TEST(StandInObject, CoresOfAMixTemplate) {
    const auto object = build(
        "template <int N> __global__ __mix__(1, 1) void k(__gm__ int* p) { *p = N; }\n"
        "template __global__ void k<3>(__gm__ int*);\n"
        "extern \"C\" __global__ __cube__ void c(__gm__ int* p) { *p = 1; }\n");
    EXPECT_EQ(meta_sections(object),
              (Names{"_Z1kILi3EEvPi_mix_aic", "_Z1kILi3EEvPi_mix_aiv", "c"}));
    EXPECT_EQ(meta_value(object, "_Z1kILi3EEvPi_mix_aiv", 3), 1u | 1u << 16);
    EXPECT_EQ(meta_value(object, "c", 1), 2u);
}

TEST(StandInObject, SeveralKernelsAndFunctionsThatAreNone) {
    const auto object = build(
        "static void hidden(int* p) { ++*p; }\n"
        "void helper(int* p) { hidden(p); }\n"
        "extern \"C\" __global__ __aicore__ void one(__gm__ int* p) { helper(p); }\n"
        "__global__ __aicore__ void two(__gm__ int* p) { helper(p); }\n"
        "__global__ __aicore__ void two(__gm__ float* p) { *p = 1; }\n"
        "static __global__ __aicore__ void local(__gm__ int* p) { helper(p); }\n");
    EXPECT_EQ(meta_sections(object), (Names{"_Z3twoPf", "_Z3twoPi", "one"}));
    EXPECT_EQ(global_functions(object), (Names{"_Z3twoPf", "_Z3twoPi", "_Z6helperPi", "one"}));
    EXPECT_EQ(argument_sizes(object), (std::vector<std::uint32_t>{8, 8, 8}));
}

TEST(StandInObject, ArgumentSizes) {
    const auto size = [](const std::string& parameters) {
        const auto sizes = argument_sizes(
            build("extern \"C\" __global__ __aicore__ void k(" + parameters + ") {}\n"));
        return sizes.size() == 1 ? sizes[0] : ~0u;
    };
    EXPECT_EQ(size("char* a, char* b, char* c, char* d, char* e, int f, int g, int h"), 56u);
    EXPECT_EQ(size("int8_t a, int8_t b, int16_t c, float d"), 16u);
    EXPECT_EQ(size("bool a, double b"), 16u);
    EXPECT_EQ(size("int a"), 8u);
    EXPECT_EQ(size(""), 0u);
    EXPECT_EQ(argument_sizes(kernel_object("scalars")), std::vector<std::uint32_t>{64});
}

TEST(StandInObject, VectorFunctionFlag) {
    EXPECT_EQ(meta_value(kernel_object("plain_add"), "plain_add", 12), 1u);
    EXPECT_EQ(meta_value(kernel_object("vf_add"), "vf_add", 12), 2u);
    EXPECT_EQ(meta_value(kernel_object("simt_add"), "simt_add", 12), 3u);
}

}  // namespace
