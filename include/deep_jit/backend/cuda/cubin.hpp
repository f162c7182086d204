// What can be told from a CUBIN's bytes without a driver.
#pragma once

#include <elf.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <deep_jit/utils/elf.hpp>

namespace deep_jit::cuda {

/// True for a complete ELF file of a CUDA device (machine 190): all its tables are in the file.
inline bool is_cubin(std::string_view bytes) {
    constexpr std::uint16_t kMachineCuda = 190;
    const auto elf = ElfView::parse(bytes);
    if (!elf || elf->machine() != kMachineCuda)
        return false;
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const auto fits = [&](std::uint64_t offset, std::uint64_t size) {
        return offset <= bytes.size() && size <= bytes.size() - offset;
    };
    if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
        (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) ||
        !fits(header.e_shoff, std::uint64_t(header.e_shnum) * sizeof(Elf64_Shdr)) ||
        !fits(header.e_phoff, std::uint64_t(header.e_phnum) * sizeof(Elf64_Phdr)))
        return false;
    for (std::uint16_t i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section;
        std::memcpy(&section, bytes.data() + header.e_shoff + i * sizeof(section), sizeof(section));
        if (section.sh_type != SHT_NULL && section.sh_type != SHT_NOBITS &&
            !fits(section.sh_offset, section.sh_size))
            return false;
    }
    return true;
}

/// Compute capability that a CUBIN was made for, as 10 * major + minor, or 0 when it is no CUBIN.
inline int cubin_arch(std::string_view bytes) {
    if (!is_cubin(bytes))
        return 0;
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    // The low byte of the flags up to CUDA 12; ABI version 8 moved it up by one byte.
    const bool moved = header.e_ident[EI_ABIVERSION] >= 8;
    return static_cast<int>((header.e_flags >> (moved ? 8 : 0)) & 0xff);
}

}  // namespace deep_jit::cuda
