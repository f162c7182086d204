// Reads the symbols of a 64-bit little-endian ELF file. Every offset is checked, so that a
// damaged file gives fewer symbols or none, never a read outside the file.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deep_jit {

struct ElfSymbol {
    std::string name;
    std::uint8_t type = 0;        ///< STT_...
    std::uint8_t binding = 0;     ///< STB_...
    std::uint8_t visibility = 0;  ///< STV_...
    std::uint8_t other = 0;       ///< whole st_other byte; vendors use the upper bits
    bool defined = false;
    std::uint64_t value = 0;
    std::uint64_t size = 0;
    std::uint16_t section = 0;
};

struct ElfSection {
    std::string name;
    std::uint32_t type = 0;
    std::uint32_t link = 0;
    std::uint32_t info = 0;
    std::uint64_t entry_size = 0;
    std::string_view bytes;  ///< within the file; none for SHT_NULL and SHT_NOBITS
};

/// View of an ELF file in memory, which must outlive it.
class ElfView {
public:
    /// Nothing unless `file` starts with a complete ELF64 little-endian header.
    static std::optional<ElfView> parse(std::string_view file) {
        ElfView view(file);
        const auto header = view.at<Elf64_Ehdr>(0);
        if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
            header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
            return std::nullopt;
        view.header_ = *header;
        return view;
    }

    std::uint16_t machine() const { return header_.e_machine; }
    std::uint32_t flags() const { return header_.e_flags; }
    std::uint8_t abi_version() const { return header_.e_ident[EI_ABIVERSION]; }

    /// True when there are sections, and all tables and all bytes of sections are in the file.
    bool complete() const {
        if (header_.e_shnum == 0 || header_.e_shentsize != sizeof(Elf64_Shdr) ||
            (header_.e_phnum != 0 && header_.e_phentsize != sizeof(Elf64_Phdr)) ||
            !fits(header_.e_shoff, std::uint64_t(header_.e_shnum) * sizeof(Elf64_Shdr)) ||
            !fits(header_.e_phoff, std::uint64_t(header_.e_phnum) * sizeof(Elf64_Phdr)))
            return false;
        for (std::uint16_t i = 0; i < header_.e_shnum; ++i) {
            const auto section = header_at(i);
            if (has_bytes(*section) && !fits(section->sh_offset, section->sh_size))
                return false;
        }
        return true;
    }

    std::vector<ElfSection> sections() const {
        std::vector<ElfSection> out;
        const auto names = header_at(header_.e_shstrndx);
        const auto name_bytes = names ? bytes_of(*names) : std::string_view();
        for (std::uint16_t i = 0; i < header_.e_shnum; ++i) {
            const auto section = header_at(i);
            if (!section)
                break;
            out.push_back({text_at(name_bytes, section->sh_name), section->sh_type,
                           section->sh_link, section->sh_info, section->sh_entsize,
                           bytes_of(*section)});
        }
        return out;
    }

    /// Symbols of every SHT_SYMTAB (or, with `dynamic`, SHT_DYNSYM) section.
    std::vector<ElfSymbol> symbols(bool dynamic = false) const {
        std::vector<ElfSymbol> out;
        const auto wanted = static_cast<std::uint32_t>(dynamic ? SHT_DYNSYM : SHT_SYMTAB);
        const auto all = sections();
        for (const auto& section : all) {
            if (section.type != wanted)
                continue;
            const auto names =
                section.link < all.size() ? all[section.link].bytes : std::string_view();
            for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= section.bytes.size();
                 at += sizeof(Elf64_Sym)) {
                Elf64_Sym symbol;
                std::memcpy(&symbol, section.bytes.data() + at, sizeof(symbol));
                out.push_back({text_at(names, symbol.st_name),
                               static_cast<std::uint8_t>(ELF64_ST_TYPE(symbol.st_info)),
                               static_cast<std::uint8_t>(ELF64_ST_BIND(symbol.st_info)),
                               static_cast<std::uint8_t>(ELF64_ST_VISIBILITY(symbol.st_other)),
                               symbol.st_other, symbol.st_shndx != SHN_UNDEF, symbol.st_value,
                               symbol.st_size, symbol.st_shndx});
            }
        }
        return out;
    }

private:
    explicit ElfView(std::string_view file) : file_(file) {}

    template <typename T>
    std::optional<T> at(std::uint64_t offset) const {
        if (offset > file_.size() || file_.size() - offset < sizeof(T))
            return std::nullopt;
        T out;
        std::memcpy(&out, file_.data() + offset, sizeof(T));
        return out;
    }

    std::optional<Elf64_Shdr> header_at(std::uint64_t index) const {
        if (index >= header_.e_shnum || header_.e_shentsize < sizeof(Elf64_Shdr) ||
            header_.e_shoff > file_.size())
            return std::nullopt;
        return at<Elf64_Shdr>(header_.e_shoff + index * header_.e_shentsize);
    }

    std::string_view bytes_of(const Elf64_Shdr& section) const {
        if (!has_bytes(section) || !fits(section.sh_offset, section.sh_size))
            return {};
        return file_.substr(section.sh_offset, section.sh_size);
    }

    /// The offset and size of other sections say nothing about the file.
    static bool has_bytes(const Elf64_Shdr& section) {
        return section.sh_type != SHT_NULL && section.sh_type != SHT_NOBITS;
    }

    bool fits(std::uint64_t offset, std::uint64_t size) const {
        return offset <= file_.size() && size <= file_.size() - offset;
    }

    static std::string text_at(std::string_view names, std::uint32_t offset) {
        if (offset >= names.size())
            return {};
        const auto rest = names.substr(offset);
        return std::string(rest.substr(0, rest.find('\0')));
    }

    std::string_view file_;
    Elf64_Ehdr header_{};
};

}  // namespace deep_jit
