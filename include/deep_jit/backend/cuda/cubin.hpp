// What can be told from a CUBIN's bytes without a driver.
#pragma once

#include <cstdint>
#include <string_view>

#include <deep_jit/utils/elf.hpp>

namespace deep_jit::cuda {

/// True for a complete ELF file of a CUDA device (machine 190): all its tables are in the file.
inline bool is_cubin(std::string_view bytes) {
    constexpr std::uint16_t kMachineCuda = 190;
    const auto elf = ElfView::parse(bytes);
    return elf && elf->machine() == kMachineCuda && elf->complete();
}

/// Compute capability that a CUBIN was made for, as 10 * major + minor, or 0 when it is no CUBIN.
inline int cubin_arch(std::string_view bytes) {
    if (!is_cubin(bytes))
        return 0;
    const auto elf = ElfView::parse(bytes);
    // The low byte of the flags up to CUDA 12; ABI version 8 moved it up by one byte.
    return static_cast<int>((elf->flags() >> (elf->abi_version() >= 8 ? 8 : 0)) & 0xff);
}

}  // namespace deep_jit::cuda
