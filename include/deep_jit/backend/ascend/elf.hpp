// What a device object says of its kernels.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <deep_jit/utils/elf.hpp>

namespace deep_jit::ascend {

/// A device object, as far as loading and launching need it.
struct ObjectInfo {
    /// Names of the kernels, sorted, as ACL knows them: the two halves of a mix kernel are one.
    std::vector<std::string> kernels;
    /// Bytes of the argument area; nothing when the object does not say.
    std::optional<std::uint32_t> argument_bytes;
};

/// Name of a kernel without what tells the halves of a mix kernel (cube and vector) apart.
inline std::string_view kernel_base_name(std::string_view symbol) {
    for (const std::string_view suffix : {"_mix_aic", "_mix_aiv"})
        if (symbol.size() > suffix.size() && symbol.ends_with(suffix))
            return symbol.substr(0, symbol.size() - suffix.size());
    return symbol;
}

namespace detail {

inline constexpr std::string_view kMetaPrefix = ".ascend.meta.";

inline void add_kernel(std::vector<std::string>& kernels, std::string_view symbol) {
    const auto name = kernel_base_name(symbol);
    const auto at = std::lower_bound(kernels.begin(), kernels.end(), name);
    if (at == kernels.end() || *at != name)
        kernels.emplace(at, name);
}

/// `__CCE_KernelArgSize` has one number for each kernel symbol. They count if all are the same.
inline std::optional<std::uint32_t> same_number(std::string_view bytes) {
    if (bytes.empty() || bytes.size() % sizeof(std::uint32_t) != 0)
        return std::nullopt;
    std::uint32_t first;
    std::memcpy(&first, bytes.data(), sizeof(first));
    for (std::size_t at = sizeof(first); at < bytes.size(); at += sizeof(first))
        if (std::memcmp(bytes.data() + at, &first, sizeof(first)) != 0)
            return std::nullopt;
    return first;
}

}  // namespace detail

/// Reads a device object; nothing when it is none: no complete ELF64 file, or one for the host.
///
/// The compiler makes a section `.ascend.meta.<symbol>` for each `__global__` function. Objects
/// without any such section have kernels too: all their visible functions count, as for ACL.
/// Never reads outside `object`, whatever is in it.
inline std::optional<ObjectInfo> read_object(std::string_view object) {
    const auto elf = ElfView::parse(object);
    if (!elf || elf->machine() == EM_X86_64 || elf->machine() == EM_AARCH64 || !elf->complete())
        return std::nullopt;
    ObjectInfo out;
    for (const auto& section : elf->sections()) {
        const std::string_view name = section.name;
        if ((section.type == SHT_PROGBITS || section.type == SHT_NOTE) &&
            name.size() > detail::kMetaPrefix.size() && name.starts_with(detail::kMetaPrefix))
            detail::add_kernel(out.kernels, name.substr(detail::kMetaPrefix.size()));
        if (name == "__CCE_KernelArgSize")
            out.argument_bytes = detail::same_number(section.bytes);
    }
    if (!out.kernels.empty())
        return out;
    for (const auto& symbol : elf->symbols())
        if (symbol.type == STT_FUNC && symbol.binding == STB_GLOBAL && symbol.defined &&
            !symbol.name.empty() && symbol.visibility != STV_HIDDEN &&
            symbol.visibility != STV_INTERNAL)
            detail::add_kernel(out.kernels, symbol.name);
    return out;
}

}  // namespace deep_jit::ascend
