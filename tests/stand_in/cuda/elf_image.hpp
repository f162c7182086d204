// Strict, bounds-checked view of a 64-bit little-endian ELF file in memory. No global state.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stand_in {

/// The file is not what it claims to be. Caught by `Cubin::parse`, never seen outside.
struct Damaged : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Copies a `T` out of `bytes`; throws Damaged when it does not lie inside.
template <typename T>
T read_at(std::string_view bytes, std::uint64_t offset, const char* what) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
        throw Damaged(std::string(what) + " lies outside the file");
    T out;
    std::memcpy(&out, bytes.data() + offset, sizeof(T));
    return out;
}

struct ElfSection {
    std::string_view name;
    Elf64_Shdr header{};
    std::string_view bytes;  ///< empty for SHT_NOBITS
};

class ElfImage {
public:
    explicit ElfImage(std::string_view file) : file_(file), header_(checked_header(file)) {
        sections_.resize(header_.e_shnum);
        for (std::size_t i = 0; i < sections_.size(); ++i) {
            auto& header = sections_[i].header;
            header = read_at<Elf64_Shdr>(file, header_.e_shoff + i * sizeof(Elf64_Shdr),
                                         "a section header");
            if (header.sh_type == SHT_NULL || header.sh_type == SHT_NOBITS)
                continue;
            if (header.sh_offset > file.size() || header.sh_size > file.size() - header.sh_offset)
                throw Damaged("a section lies outside the file");
            sections_[i].bytes = file.substr(header.sh_offset, header.sh_size);
        }
        const auto segments = std::uint64_t{header_.e_phnum} * header_.e_phentsize;
        if (segments > 0 &&
            (header_.e_phoff > file.size() || segments > file.size() - header_.e_phoff))
            throw Damaged("the program headers lie outside the file");
        if (sections_[0].header.sh_type != SHT_NULL)
            throw Damaged("section 0 is not the null section");
        const auto names = strings(header_.e_shstrndx);
        for (auto& section : sections_) section.name = text(names, section.header.sh_name);
    }

    const Elf64_Ehdr& header() const { return header_; }
    const std::vector<ElfSection>& sections() const { return sections_; }

    const ElfSection* find(std::string_view name) const {
        for (const auto& section : sections_)
            if (section.name == name)
                return &section;
        return nullptr;
    }

    /// Bytes of the string table at section `index`.
    std::string_view strings(std::uint32_t index) const {
        if (index == 0 || index >= sections_.size() ||
            sections_[index].header.sh_type != SHT_STRTAB)
            throw Damaged("a string table is missing");
        const auto bytes = sections_[index].bytes;
        if (bytes.empty() || bytes.back() != '\0')
            throw Damaged("a string table does not end");
        return bytes;
    }

    static std::string_view text(std::string_view table, std::uint32_t offset) {
        if (offset >= table.size())
            throw Damaged("a name lies outside its string table");
        const auto rest = table.substr(offset);
        return rest.substr(0, rest.find('\0'));
    }

    static Elf64_Ehdr checked_header(std::string_view file) {
        const auto header = read_at<Elf64_Ehdr>(file, 0, "the ELF header");
        if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
            throw Damaged("not an ELF file");
        if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
            throw Damaged("not a 64-bit little-endian ELF file");
        if (header.e_ehsize != sizeof(Elf64_Ehdr) || header.e_shentsize != sizeof(Elf64_Shdr) ||
            header.e_shnum == 0)
            throw Damaged("the ELF header is damaged");
        if (header.e_shoff > file.max_size() / 2)
            throw Damaged("the section table lies outside the file");
        return header;
    }

private:
    std::string_view file_;
    Elf64_Ehdr header_;
    std::vector<ElfSection> sections_;
};

/// Size of an ELF file whose length nobody told us, from its headers. `read(offset, size)` returns
/// that part of the file, or fewer bytes when they cannot be read. Throws Damaged.
template <typename Read>
std::uint64_t elf_extent(Read&& read) {
    const std::string first = read(std::uint64_t{0}, std::uint64_t{sizeof(Elf64_Ehdr)});
    const auto header = ElfImage::checked_header(first);
    const std::uint64_t table_size = std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
    const std::string table = read(std::uint64_t{header.e_shoff}, table_size);
    std::uint64_t end = header.e_shoff + table_size;
    end = std::max<std::uint64_t>(
        end, header.e_phnum == 0
                 ? 0
                 : header.e_phoff + std::uint64_t{header.e_phnum} * header.e_phentsize);
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
        const auto section = read_at<Elf64_Shdr>(table, i * sizeof(Elf64_Shdr), "a section header");
        if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS)
            continue;
        if (section.sh_offset + section.sh_size < section.sh_offset)
            throw Damaged("a section lies outside the file");
        end = std::max<std::uint64_t>(end, section.sh_offset + section.sh_size);
    }
    return end;
}

}  // namespace stand_in
