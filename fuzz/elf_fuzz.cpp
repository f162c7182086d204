// The readers of ELF files: the library's own, its look at CUBINs, and the stand-in driver's.
#include <deep_jit/backend/cuda/cubin.hpp>
#include <deep_jit/utils/elf.hpp>

#include "../tests/stand_in/cuda/cubin.hpp"
#include "fuzz.hpp"

using deep_jit::ElfView;
using namespace deep_jit_fuzz;

namespace {

bool lies_in(std::string_view part, std::string_view whole) {
    return part.empty() || (part.data() >= whole.data() &&
                            part.data() + part.size() <= whole.data() + whole.size());
}

/// Where the file's tables and sections end, or nothing when they are not all in it.
std::optional<std::uint64_t> extent_of(std::string_view file) {
    try {
        const auto end = stand_in::elf_extent([&](std::uint64_t offset, std::uint64_t size) {
            return offset > file.size() ? std::string() : std::string(file.substr(offset, size));
        });
        return end <= file.size() ? std::optional(end) : std::nullopt;
    } catch (const stand_in::Damaged&) {
        return std::nullopt;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto file = text_of(data, size);
    if (const auto elf = ElfView::parse(file)) {
        for (const auto& section : elf->sections())
            require(lies_in(section.bytes, file), "a section lies in the file");
        for (const bool dynamic : {false, true})
            for (const auto& symbol : elf->symbols(dynamic))
                require(symbol.name.size() <= size && contains(file, symbol.name),
                        "a symbol's name is in the file");
    }
    const bool complete = deep_jit::cuda::is_cubin(file);
    require((deep_jit::cuda::cubin_arch(file) != 0) <= complete, "only a CUBIN has one");
    if (complete) {
        if (const auto end = extent_of(file))
            require(!deep_jit::cuda::is_cubin(file.substr(0, *end - 1)), "a cut one is no CUBIN");
    }

    std::string why;
    const auto cubin = stand_in::Cubin::parse(file, &why);
    require(cubin.has_value() == why.empty(), "a refusal has a reason");
    if (cubin) {
        // The stand-in does not mind odd program headers, which it has no use for.
        require(!complete || cubin->arch.sm == deep_jit::cuda::cubin_arch(file),
                "both readers agree on what a CUBIN is for");
        for (const auto& kernel : cubin->kernels)
            for (const auto& param : kernel.params)
                require(param.size > 0 && param.offset + param.size <= kernel.param_bytes,
                        "a parameter lies in the parameter block");
    }
    return 0;
}
