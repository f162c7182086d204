// The argument area of a launch, laid out as bisheng's kernels expect it.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

#include <deep_jit/runtime/arguments.hpp>

namespace deep_jit::ascend {

/// Most bytes of arguments that a kernel can take.
inline constexpr std::size_t kMaxArgumentBytes = 4096;

/// Writes the arguments to `out` and returns how many bytes they take; 0 without any. Each starts
/// at a multiple of its alignment and of 4, the whole is a multiple of 8, gaps are zero. Throws
/// LaunchError, naming `kernel`, for what cannot be passed.
inline std::size_t pack_arguments(const std::string& kernel, const Arguments& arguments,
                                  unsigned char (&out)[kMaxArgumentBytes]) {
    const auto fail = [&](std::size_t index, const char* reason) {
        throw LaunchError(
            str::format("Cannot launch kernel {}: argument {} {}", kernel, index, reason));
    };
    std::size_t end = 0;
    const auto fill_to = [&](std::size_t position) {
        std::memset(out + end, 0, position - end);
        end = position;
    };
    for (std::size_t i = 0; i < arguments.count; ++i) {
        const auto [size, own_align] = arguments.infos[i];
        if (arguments.pointers[i] == nullptr) [[unlikely]]
            fail(i, "must not be null: there are no bytes to pass");
        if (size == 0) [[unlikely]]
            fail(i,
                 "is a NoRefPtr, whose size is not known; pass the value itself, or a pointer to "
                 "device memory");
        const std::size_t align = own_align < 4 ? 4 : own_align;
        const std::size_t start = (end + align - 1) / align * align;
        if (start + size > kMaxArgumentBytes) [[unlikely]]
            fail(i, "does not fit: all arguments together may have 4096 bytes");
        fill_to(start);
        std::memcpy(out + end, arguments.pointers[i], size);
        end += size;
    }
    fill_to((end + 7) / 8 * 8);
    return end;
}

}  // namespace deep_jit::ascend
