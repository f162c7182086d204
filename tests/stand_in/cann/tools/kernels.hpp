// Which kernels a source has, and the text behind it that makes them callable and known.
#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "device_object.hpp"

namespace dj_stand_in {

struct KernelSource {
    std::string symbol;
    std::string expression;  ///< what names it in C++
    int cube_cores = 0;
    int vector_cores = 1;
    bool mix = false;
};

/// `void my::scale<float>(float*, int)` -> `my::scale<float>`: up to the parameters, and without
/// the return type that a template instance has.
inline std::string without_signature(const std::string& text) {
    std::size_t end = text.size(), start = 0;
    int depth = 0;
    for (std::size_t i = text.size(); i-- > 0;) {
        depth += text[i] == ')' ? 1 : text[i] == '(' ? -1 : 0;
        if (depth == 0) {
            end = i;
            break;
        }
    }
    int angles = 0;
    for (std::size_t i = 0; i < end; ++i) {
        angles += text[i] == '<' || text[i] == '(' ? 1 : text[i] == '>' || text[i] == ')' ? -1 : 0;
        if (text[i] == ' ' && angles == 0)
            start = i + 1;
    }
    return text.substr(start, end - start);
}

inline std::string expression_of(const std::string& symbol) {
    if (symbol.rfind("_Z", 0) != 0)
        return "&::" + symbol;
    const std::unique_ptr<char, void (*)(void*)> plain(
        abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, nullptr), std::free);
    const std::string text = plain != nullptr ? plain.get() : symbol;
    const auto name = without_signature(text);
    if (name.find('<') != std::string::npos)
        return "&::" + name;
    // Overloads are told apart by their type.
    return "static_cast<void (*)" + text.substr(text.find(name) + name.size()) + ">(&::" + name +
           ")";
}

/// From the object of the first pass; see words.h.
inline std::vector<KernelSource> find_kernels(const std::string& object) {
    const stand_in::ElfImage elf(object);
    std::vector<KernelSource> out;
    for (const auto& symbol : symbols_of(elf)) {
        if (!symbol.is_function() || symbol.binding() == STB_LOCAL ||
            symbol.visibility() != STV_PROTECTED)
            continue;
        KernelSource kernel;
        kernel.symbol = symbol.name;
        kernel.expression = expression_of(kernel.symbol);
        const auto kind = elf.sections().at(symbol.entry.st_shndx).header.sh_addralign;
        kernel.mix = kind >= 256;
        if (kind == 128 || kind == 256 || kind == 1024 || kind == 2048)
            kernel.cube_cores = 1;
        kernel.vector_cores = kind == 128 || kind == 256 ? 0 : kind == 2048 ? 2 : 1;
        out.push_back(std::move(kernel));
    }
    return out;
}

/// `vf_flag`: see abi.h.
inline std::string kernels_text(const std::vector<KernelSource>& kernels, int vf_flag) {
    std::string out = "\n# 1 \"<kernels>\"\n#include \"stand_in/entry.h\"\n";
    int id = 0;
    for (const auto& kernel : kernels) {
        const auto cores = std::to_string(kernel.cube_cores) + ", " +
                           std::to_string(kernel.vector_cores) + ", " + std::to_string(vf_flag);
        const auto expression = "(" + kernel.expression + ")";
        out += "DJ_STAND_IN_KERNEL(" + std::to_string(id) + ", \"" + kernel.symbol + "\", " +
               expression + ", " + cores + ")\n";
        const auto add_meta = [&](const std::string& symbol, int type, int part) {
            out += "DJ_STAND_IN_META(" + std::to_string(id) + "_" + std::to_string(part) + ", \"" +
                   symbol + "\", " + expression + ", " + std::to_string(type) + ", " + cores +
                   ")\n";
        };
        if (!kernel.mix)
            add_meta(kernel.symbol, kernel.cube_cores > 0 ? 2 : 3, 0);
        if (kernel.mix && kernel.cube_cores > 0)
            add_meta(kernel.symbol + "_mix_aic", 4, 0);
        if (kernel.mix && kernel.vector_cores > 0)
            add_meta(kernel.symbol + "_mix_aiv", kernel.cube_cores > 0 ? 4 : 5, 1);
        if (kernel.mix) {
            // The symbols that a device object has instead of the function's own.
            const std::string body = "() { __builtin_trap(); }\n";
            const std::string head = "extern \"C\" __attribute__((used)) void ";
            if (kernel.cube_cores > 0)
                out += head + kernel.symbol + "_mix_aic" + body;
            if (kernel.vector_cores > 0)
                out += head + kernel.symbol + "_mix_aiv" + body;
        }
        ++id;
    }
    return out;
}

/// Makes a device object of the second pass's object: instances of templates are ordinary
/// functions, a mix kernel's own function is not seen.
inline void disguise(std::string& object, const std::vector<KernelSource>& kernels) {
    const stand_in::ElfImage elf(object);
    std::vector<std::pair<std::uint64_t, Elf64_Sym>> changes;
    for (const auto& symbol : symbols_of(elf))
        for (const auto& kernel : kernels)
            if (symbol.name == kernel.symbol) {
                auto entry = symbol.entry;
                entry.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
                if (kernel.mix)
                    entry.st_other = STV_HIDDEN;
                changes.emplace_back(symbol.offset, entry);
            }
    for (const auto& [offset, entry] : changes)
        std::memcpy(object.data() + offset, &entry, sizeof(entry));
    set_machine(object, kDeviceMachine);
}

}  // namespace dj_stand_in
