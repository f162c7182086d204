// What a driver needs to know of a cubin: its architecture, and per kernel the name, parameter
// layout and resources. Read from the ELF alone. No global state; never reads outside the bytes.
//
// Encodings below were read off the output of ptxas 12.4, 12.9 and 13.0 for sm_50 to sm_121.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elf_image.hpp"

namespace stand_in {

struct CubinArch {
    int sm = 0;                ///< 90 for sm_90 and sm_90a
    bool accelerated = false;  ///< the "a" of sm_90a. Family targets ("100f") carry no mark.

    /// True if a device of this compute capability can run the code.
    bool runs_on(int major, int minor) const {
        if (accelerated)
            return sm == major * 10 + minor;
        return sm / 10 == major && sm % 10 <= minor;
    }
};

struct CubinParam {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
};

using CubinDim = std::array<std::uint32_t, 3>;

struct CubinKernel {
    std::string name;
    std::vector<CubinParam> params;
    std::uint32_t param_bytes = 0;  ///< size of the parameter block
    std::uint32_t registers = 0;    ///< per thread
    std::uint32_t static_smem = 0;  ///< without the part the system reserves
    std::uint32_t local_bytes = 0;  ///< per thread
    std::uint32_t const_bytes = 0;  ///< user constants of the module
    std::uint32_t max_threads = 0;  ///< from __launch_bounds__; 0: not given
    std::uint32_t max_cluster = 0;  ///< blocks, from __launch_bounds__; 0: not given
    CubinDim required_block{};      ///< from __block_size__; zeros: not given
    CubinDim cluster{};             ///< from __cluster_dims__; zeros: not given
    bool blocks_are_clusters = false;
};

struct Cubin {
    CubinArch arch;
    std::vector<CubinKernel> kernels;  ///< in the order of the symbol table

    /// Nothing, and the reason in `*why`, when the file is no complete executable cubin.
    static std::optional<Cubin> parse(std::string_view file, std::string* why = nullptr) {
        try {
            return read(file);
        } catch (const Damaged& damaged) {
            if (why != nullptr)
                *why = damaged.what();
            return std::nullopt;
        }
    }

private:
    enum : std::uint8_t { fmt_none = 1, fmt_byte = 2, fmt_half = 3, fmt_sized = 4 };
    enum : std::uint8_t {
        attr_max_threads = 0x05,
        attr_param_cbank = 0x0a,
        attr_required_block = 0x10,
        attr_frame_size = 0x11,
        attr_param_info = 0x17,
        attr_param_bytes = 0x19,
        attr_registers = 0x2f,
        attr_cluster = 0x3d,
        attr_max_cluster = 0x3f,
        attr_param_info_v2 = 0x45,
        attr_blocks_are_clusters = 0x5b,
    };
    static constexpr std::uint8_t compat_accelerated = 0x09;  ///< in .nv.compat
    static constexpr std::uint8_t entry_flag = 0x10;          ///< STO_CUDA_ENTRY in st_other
    static constexpr std::uint32_t reserved_smem = 1024;      ///< counted in .nv.shared from sm_90

    /// Calls `visit(attribute, value)` for each entry of an .nv.info or .nv.compat section.
    template <typename Visit>
    static void for_each_attribute(std::string_view bytes, Visit&& visit) {
        for (std::uint64_t at = 0; at < bytes.size();) {
            const auto format = read_at<std::uint8_t>(bytes, at, "an attribute");
            const auto attribute = read_at<std::uint8_t>(bytes, at + 1, "an attribute");
            const auto half = read_at<std::uint16_t>(bytes, at + 2, "an attribute");
            auto value = bytes.substr(at + 2, 2);
            at += 4;
            if (format == fmt_sized) {
                if (bytes.size() - at < half)
                    throw Damaged("an attribute is longer than its section");
                value = bytes.substr(at, half);
                at += half;
            } else if (format < fmt_none || format > fmt_sized) {
                throw Damaged("an attribute of unknown format");
            }
            visit(attribute, value);
        }
    }

    static CubinDim read_dim(std::string_view value) {
        return {read_at<std::uint32_t>(value, 0, "a dimension"),
                read_at<std::uint32_t>(value, 4, "a dimension"),
                read_at<std::uint32_t>(value, 8, "a dimension")};
    }

    static CubinArch read_arch(const ElfImage& elf) {
        const auto& header = elf.header();
        const auto flags = header.e_flags;
        CubinArch arch;
        if (header.e_ident[EI_ABIVERSION] <= 7) {  // to CUDA 12: 0x5a0d5a is sm_90a
            arch.sm = static_cast<int>(flags & 0xff);
            arch.accelerated = (flags & 0x800) != 0;
        } else {  // 12.9 for sm_100 and up: 0x600640a is sm_100a; 13: the mark is in .nv.compat
            arch.sm = static_cast<int>((flags >> 8) & 0xff);
            arch.accelerated = (flags & 0x8) != 0;
        }
        if (arch.sm < 10)
            throw Damaged("no architecture in the ELF flags");
        if (const auto* compat = elf.find(".nv.compat"); compat != nullptr)
            for_each_attribute(compat->bytes, [&](std::uint8_t attribute, std::string_view value) {
                if (attribute == compat_accelerated)
                    arch.accelerated |= !value.empty() && value[0] == 1;
            });
        return arch;
    }

    static void read_kernel_info(CubinKernel& kernel, std::string_view bytes) {
        std::map<std::uint32_t, CubinParam> params;
        for_each_attribute(bytes, [&](std::uint8_t attribute, std::string_view value) {
            switch (attribute) {
                case attr_param_info:
                case attr_param_info_v2: {
                    const auto ordinal = read_at<std::uint16_t>(value, 4, "a parameter");
                    const auto offset = read_at<std::uint16_t>(value, 6, "a parameter");
                    const auto packed = read_at<std::uint32_t>(value, 8, "a parameter");
                    const auto size = attribute == attr_param_info ? packed >> 18 : packed & 0xffff;
                    if (!params.emplace(ordinal, CubinParam{offset, size}).second)
                        throw Damaged("a parameter is described twice");
                    break;
                }
                case attr_param_bytes:
                    kernel.param_bytes = read_at<std::uint16_t>(value, 0, "the parameter size");
                    break;
                case attr_max_threads: {
                    const auto dim = read_dim(value);
                    const auto threads = std::uint64_t{dim[0]} * dim[1];
                    if (dim[0] > 4096 || dim[1] > 4096 || dim[2] > 4096 || threads * dim[2] > 4096)
                        throw Damaged("impossible launch bounds");
                    kernel.max_threads = static_cast<std::uint32_t>(threads * dim[2]);
                    break;
                }
                case attr_required_block: kernel.required_block = read_dim(value); break;
                case attr_cluster: kernel.cluster = read_dim(value); break;
                case attr_max_cluster:
                    kernel.max_cluster = read_at<std::uint32_t>(value, 0, "a cluster bound");
                    break;
                case attr_blocks_are_clusters: kernel.blocks_are_clusters = true; break;
                default: break;
            }
        });
        for (const auto& [ordinal, param] : params) {
            if (ordinal != kernel.params.size())
                throw Damaged("a parameter is missing");
            if (param.size == 0 || std::uint64_t{param.offset} + param.size > kernel.param_bytes)
                throw Damaged("a parameter lies outside the parameter block");
            kernel.params.push_back(param);
        }
    }

    static Cubin read(std::string_view file) {
        const ElfImage elf(file);
        const auto& header = elf.header();
        const auto os_abi = header.e_ident[EI_OSABI];
        if (header.e_machine != EM_CUDA || (os_abi != 0x33 && os_abi != 0x41))
            throw Damaged("an ELF file, but no cubin");
        // A relocatable one is linked by the driver.
        if (header.e_type != ET_EXEC && header.e_type != ET_REL)
            throw Damaged("a cubin of unknown type");
        Cubin cubin;
        cubin.arch = read_arch(elf);
        std::map<std::uint32_t, std::size_t> kernel_of_symbol;
        for (const auto& section : elf.sections())
            if (section.header.sh_type == SHT_SYMTAB)
                read_symbols(elf, section, cubin, kernel_of_symbol);
        if (const auto* info = elf.find(".nv.info"); info != nullptr)
            read_module_info(cubin, info->bytes, kernel_of_symbol);
        return cubin;
    }

    static void read_symbols(const ElfImage& elf, const ElfSection& table, Cubin& cubin,
                             std::map<std::uint32_t, std::size_t>& kernel_of_symbol) {
        if (table.header.sh_entsize != sizeof(Elf64_Sym) ||
            table.bytes.size() % sizeof(Elf64_Sym) != 0)
            throw Damaged("the symbol table is damaged");
        const auto names = elf.strings(table.header.sh_link);
        for (std::uint32_t i = 0; i < table.bytes.size() / sizeof(Elf64_Sym); ++i) {
            const auto symbol = read_at<Elf64_Sym>(table.bytes, i * sizeof(Elf64_Sym), "a symbol");
            const auto name = ElfImage::text(names, symbol.st_name);
            if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || (symbol.st_other & entry_flag) == 0)
                continue;
            if (name.empty() || symbol.st_shndx == 0 || symbol.st_shndx >= elf.sections().size())
                throw Damaged("a kernel without code");
            const auto& code = elf.sections()[symbol.st_shndx];
            if (code.name != ".text." + std::string(name) || symbol.st_size > code.bytes.size() ||
                symbol.st_value > code.bytes.size() - symbol.st_size)
                throw Damaged("a kernel lies outside its code section");
            kernel_of_symbol[i] = cubin.kernels.size();
            cubin.kernels.push_back(read_kernel(elf, std::string(name), cubin.arch));
        }
    }

    static CubinKernel read_kernel(const ElfImage& elf, std::string name, const CubinArch& arch) {
        CubinKernel kernel;
        kernel.name = std::move(name);
        const auto* info = elf.find(".nv.info." + kernel.name);
        if (info == nullptr)
            throw Damaged("a kernel without a description");
        read_kernel_info(kernel, info->bytes);
        if (const auto* shared = elf.find(".nv.shared." + kernel.name); shared != nullptr) {
            auto size = shared->header.sh_size;
            if (arch.sm >= 90 && size >= reserved_smem)
                size -= reserved_smem;
            if (size > 1u << 20)
                throw Damaged("impossible size of shared memory");
            kernel.static_smem = static_cast<std::uint32_t>(size);
        }
        if (const auto* constants = elf.find(".nv.constant3"); constants != nullptr)
            kernel.const_bytes = static_cast<std::uint32_t>(constants->bytes.size());
        return kernel;
    }

    /// `.nv.info` holds pairs (symbol, value) for all functions.
    static void read_module_info(Cubin& cubin, std::string_view bytes,
                                 const std::map<std::uint32_t, std::size_t>& kernel_of_symbol) {
        for_each_attribute(bytes, [&](std::uint8_t attribute, std::string_view value) {
            if (attribute != attr_registers && attribute != attr_frame_size)
                return;
            const auto symbol = read_at<std::uint32_t>(value, 0, "a resource entry");
            const auto number = read_at<std::uint32_t>(value, 4, "a resource entry");
            const auto found = kernel_of_symbol.find(symbol);
            if (found == kernel_of_symbol.end())
                return;
            auto& kernel = cubin.kernels[found->second];
            (attribute == attr_registers ? kernel.registers : kernel.local_bytes) = number;
        });
    }
};

}  // namespace stand_in
