// Device objects are host objects in disguise: the machine in the ELF header is that of an NPU, so
// that nobody takes them for anything else.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "stand_in/cuda/elf_image.hpp"

namespace dj_stand_in {

inline constexpr Elf64_Half kDeviceMachine = 0x1029;
#if defined(__aarch64__)
inline constexpr Elf64_Half kHostMachine = EM_AARCH64;
#else
inline constexpr Elf64_Half kHostMachine = EM_X86_64;
#endif

inline Elf64_Half machine_of(std::string_view elf) {
    return stand_in::read_at<Elf64_Half>(elf, offsetof(Elf64_Ehdr, e_machine), "the machine");
}

inline void set_machine(std::string& elf, Elf64_Half machine) {
    std::memcpy(elf.data() + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof(machine));
}

struct Symbol {
    std::string_view name;
    Elf64_Sym entry{};
    std::uint64_t offset = 0;  ///< of the entry, in the file

    bool is_function() const {
        return ELF64_ST_TYPE(entry.st_info) == STT_FUNC && entry.st_shndx != SHN_UNDEF;
    }
    unsigned binding() const { return ELF64_ST_BIND(entry.st_info); }
    unsigned visibility() const { return ELF64_ST_VISIBILITY(entry.st_other); }
    /// What ACL takes for a kernel.
    bool is_global_function() const {
        return is_function() && binding() == STB_GLOBAL && visibility() == STV_DEFAULT;
    }
};

inline std::vector<Symbol> symbols_of(const stand_in::ElfImage& elf) {
    std::vector<Symbol> out;
    for (const auto& section : elf.sections()) {
        if (section.header.sh_type != SHT_SYMTAB)
            continue;
        const auto names = elf.strings(section.header.sh_link);
        for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.bytes.size();
             at += sizeof(Elf64_Sym)) {
            Symbol symbol;
            symbol.entry = stand_in::read_at<Elf64_Sym>(section.bytes, at, "a symbol");
            symbol.name = elf.text(names, symbol.entry.st_name);
            symbol.offset = section.header.sh_offset + at;
            out.push_back(symbol);
        }
    }
    return out;
}

/// `name` without the ending of a mix kernel's symbol.
inline std::string_view kernel_name(std::string_view symbol) {
    for (const std::string_view ending : {"_mix_aic", "_mix_aiv"})
        if (symbol.size() > ending.size() && symbol.substr(symbol.size() - ending.size()) == ending)
            return symbol.substr(0, symbol.size() - ending.size());
    return symbol;
}

}  // namespace dj_stand_in
