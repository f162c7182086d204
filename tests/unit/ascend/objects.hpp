// Makes device objects for tests, section by section.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deep_jit_test {

/// An ELF file of a device. Sections and symbols are given one by one.
class DeviceObject {
public:
    struct Function {
        std::string name;
        unsigned char binding = STB_GLOBAL;
        unsigned char visibility = STV_DEFAULT;
        unsigned char type = STT_FUNC;
        bool defined = true;
    };

    DeviceObject& section(const std::string& name, std::string_view bytes,
                          std::uint32_t type = SHT_PROGBITS) {
        sections_.push_back({name, std::string(bytes), type, 0});
        return *this;
    }
    DeviceObject& function(const Function& function) {
        functions_.push_back(function);
        return *this;
    }
    /// A function with the section that bisheng makes for each kernel: one record, "AIV".
    DeviceObject& kernel(const std::string& symbol) {
        constexpr std::string_view kRecord("\x01\0\x04\0\x03\0\0\0", 8);
        return function({symbol}).section(".ascend.meta." + symbol, kRecord);
    }
    DeviceObject& argument_bytes(const std::vector<std::uint32_t>& numbers) {
        return section("__CCE_KernelArgSize",
                       std::string_view(reinterpret_cast<const char*>(numbers.data()),
                                        numbers.size() * sizeof(numbers[0])));
    }
    DeviceObject& machine(std::uint16_t value) {
        machine_ = value;
        return *this;
    }

    std::string bytes() const {
        auto sections = sections_;
        std::string symbols(sizeof(Elf64_Sym), '\0'), names(1, '\0');
        for (const auto& function : functions_) {
            Elf64_Sym symbol{};
            symbol.st_name = static_cast<Elf64_Word>(names.size());
            symbol.st_info =
                static_cast<unsigned char>(ELF64_ST_INFO(function.binding, function.type));
            symbol.st_other = function.visibility;
            symbol.st_shndx = function.defined ? 1 : SHN_UNDEF;
            names += function.name + '\0';
            symbols.append(reinterpret_cast<const char*>(&symbol), sizeof(symbol));
        }
        // Section 0 is empty; the string tables come last.
        const auto count = static_cast<std::uint32_t>(sections.size());
        sections.push_back({".symtab", symbols, SHT_SYMTAB, count + 2});
        sections.push_back({".strtab", names, SHT_STRTAB, 0});
        sections.push_back({".shstrtab", "", SHT_STRTAB, 0});

        std::string section_names(1, '\0');
        std::vector<Elf64_Shdr> headers(1);
        for (const auto& section : sections) {
            Elf64_Shdr header{};
            header.sh_name = static_cast<Elf64_Word>(section_names.size());
            header.sh_type = section.type;
            header.sh_link = section.link;
            headers.push_back(header);
            section_names += section.name + '\0';
        }
        sections.back().bytes = section_names;

        Elf64_Ehdr file{};
        std::memcpy(file.e_ident, ELFMAG, SELFMAG);
        file.e_ident[EI_CLASS] = ELFCLASS64;
        file.e_ident[EI_DATA] = ELFDATA2LSB;
        file.e_ident[EI_VERSION] = EV_CURRENT;
        file.e_type = ET_EXEC;
        file.e_machine = machine_;
        file.e_version = EV_CURRENT;
        file.e_ehsize = sizeof(Elf64_Ehdr);
        file.e_shentsize = sizeof(Elf64_Shdr);
        file.e_shnum = static_cast<Elf64_Half>(headers.size());
        file.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
        std::string out(sizeof(file), '\0');
        for (std::size_t i = 0; i < sections.size(); ++i) {
            headers[i + 1].sh_offset = out.size();
            headers[i + 1].sh_size = sections[i].bytes.size();
            out += sections[i].bytes;
            out.resize((out.size() + 7) / 8 * 8);
        }
        file.e_shoff = out.size();
        out.append(reinterpret_cast<const char*>(headers.data()),
                   headers.size() * sizeof(headers[0]));
        std::memcpy(out.data(), &file, sizeof(file));
        return out;
    }

private:
    struct Section {
        std::string name;
        std::string bytes;
        std::uint32_t type;
        std::uint32_t link;
    };
    std::vector<Section> sections_{{".text", "code", SHT_PROGBITS, 0}};
    std::vector<Function> functions_;
    std::uint16_t machine_ = 0x1029;
};

}  // namespace deep_jit_test
