// Kernel arguments as every backend takes them: addresses, sizes and alignments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/no_ref_ptr.hpp>

namespace deep_jit {

struct ArgumentInfo {
    std::uint32_t size;   ///< bytes; 0: unknown (NoRefPtr), so not checked
    std::uint32_t align;  ///< bytes; 0: unknown
};

/// Arguments of one launch. Everything pointed to lives in the caller's frame.
struct Arguments {
    void* const* pointers;      ///< address of each argument's bytes
    const ArgumentInfo* infos;  ///< one for each
    std::size_t count;
};

/// Address of an argument's bytes: the object itself, or what a NoRefPtr points to.
template <typename T>
void* argument_pointer(const T& argument) {
    static_assert(!std::is_array_v<T>, "pass a pointer: a kernel takes no arrays");
    if constexpr (is_no_ref_ptr_v<T>)
        return argument.ptr;
    else
        return const_cast<void*>(static_cast<const volatile void*>(std::addressof(argument)));
}

namespace detail {

template <typename T>
inline constexpr ArgumentInfo kArgumentInfo =
    is_no_ref_ptr_v<T> ? ArgumentInfo{0, 0} : ArgumentInfo{sizeof(T), alignof(T)};

/// Never empty, so that it can be an array.
template <typename... Args>
inline constexpr ArgumentInfo kArgumentInfos[sizeof...(Args) + 1] = {kArgumentInfo<Args>...,
                                                                     ArgumentInfo{0, 0}};

/// Says what is wrong with an argument list: the kernel, the index and both sizes.
[[noreturn]] inline void throw_argument_mismatch(const std::string& kernel,
                                                 const Arguments& arguments,
                                                 const std::uint32_t* sizes, std::size_t count) {
    const auto bytes = [](std::uint32_t size) {
        return size == 0 ? std::string("?") : str::to_text(size);
    };
    std::string given, wanted;
    for (std::size_t i = 0; i < arguments.count; ++i)
        given += (i > 0 ? ", " : "") + bytes(arguments.infos[i].size);
    for (std::size_t i = 0; i < count; ++i) wanted += (i > 0 ? ", " : "") + bytes(sizes[i]);
    const std::string lists =
        str::format("The kernel takes {} argument(s) of ({}) bytes; given are {} of ({}) bytes.",
                    count, wanted, arguments.count, given);
    if (arguments.count < count)
        throw LaunchError(str::format("Kernel {}: argument {} ({} bytes) is missing. {}", kernel,
                                      arguments.count, bytes(sizes[arguments.count]), lists));
    if (arguments.count > count)
        throw LaunchError(str::format("Kernel {}: argument {} ({} bytes) is one too many. {}",
                                      kernel, count, bytes(arguments.infos[count].size), lists));
    for (std::size_t i = 0; i < count; ++i)
        if (arguments.infos[i].size != 0 && arguments.infos[i].size != sizes[i])
            throw LaunchError(
                str::format("Kernel {}: argument {} has {} bytes, but the kernel's parameter has "
                            "{} bytes. {}",
                            kernel, i, arguments.infos[i].size, sizes[i], lists));
    throw LaunchError("Kernel " + kernel + ": wrong arguments");
}

}  // namespace detail

/// Throws LaunchError unless there are `count` arguments of these sizes (bytes).
inline void check_arguments(const std::string& kernel, const Arguments& arguments,
                            const std::uint32_t* sizes, std::size_t count) {
    bool good = arguments.count == count;
    for (std::size_t i = 0; good && i < count; ++i)
        good = arguments.infos[i].size == sizes[i] || arguments.infos[i].size == 0;
    if (!good) [[unlikely]]
        detail::throw_argument_mismatch(kernel, arguments, sizes, count);
}

}  // namespace deep_jit
