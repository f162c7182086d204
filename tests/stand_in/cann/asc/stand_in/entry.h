// What bisheng puts behind a source: how the runtime calls the kernels, and the sections that tell
// of them.
#pragma once
#pragma GCC system_header

#include <utility>

#include "abi.h"

#pragma GCC visibility push(hidden)

namespace dj_stand_in {

/// Offsets of a kernel's arguments: each at a multiple of its alignment, and of 4.
template <typename... Params>
struct Layout {
    static constexpr uint32_t kCount = sizeof...(Params);
    Param params[kCount + 1]{};
    uint32_t bytes = 0;

    constexpr Layout() {
        constexpr uint32_t sizes[] = {sizeof(Params)..., 0};
        constexpr uint32_t aligns[] = {alignof(Params)..., 1};
        uint32_t end = 0;
        for (uint32_t i = 0; i < kCount; ++i) {
            const uint32_t align = (aligns[i] + 3) / 4 * 4;
            params[i].offset = (end + align - 1) / align * align;
            params[i].bytes = sizes[i];
            end = params[i].offset + sizes[i];
        }
        bytes = (end + 7) / 8 * 8;
    }
};

template <typename T>
struct Argument {
    static_assert(__is_trivially_copyable(T), "a kernel's argument is copied as bytes");
    alignas(T) char bytes[sizeof(T)];
    explicit Argument(const char* from) { __builtin_memcpy(bytes, from, sizeof(T)); }
    operator T() const { return *reinterpret_cast<const T*>(bytes); }
};

template <auto Kernel, typename Type = decltype(Kernel)>
struct Entry;

template <auto Kernel, typename... Params>
struct Entry<Kernel, void (*)(Params...)> {
    static constexpr Layout<Params...> layout{};

    static void run(Core* on, const void* arguments) {
        core = on;
        block_idx = on->block_idx;
        block_num = on->block_num;
        call(static_cast<const char*>(arguments), std::make_index_sequence<sizeof...(Params)>());
    }

private:
    template <size_t... Index>
    static void call([[maybe_unused]] const char* arguments, std::index_sequence<Index...>) {
        Kernel(Argument<Params>(arguments + layout.params[Index].offset)...);
    }
};

/// Records of a meta section.
struct MetaWord {
    uint16_t type;
    uint16_t length = 4;
    uint32_t value;
};
struct MetaRatio {
    uint16_t type = 3;
    uint16_t length = 4;
    uint16_t cube;
    uint16_t vector;
};
struct MetaSummary {
    uint16_t type = 16;
    uint16_t length = 12;
    uint32_t count;
    uint32_t bytes[2];
};
struct Meta {
    MetaWord kernel_type;
    MetaRatio ratio;
    MetaWord vf_flag;
    MetaSummary summary;
};

}  // namespace dj_stand_in

#pragma GCC visibility pop

extern "C" {
extern const dj_stand_in::KernelEntry __start_dj_kernels __attribute__((weak));
extern const dj_stand_in::KernelEntry __stop_dj_kernels __attribute__((weak));
__attribute__((weak, used)) extern const dj_stand_in::KernelTable dj_stand_in_kernel_table = {
    dj_stand_in::kAbiVersion, __NPU_ARCH__, &__start_dj_kernels, &__stop_dj_kernels};
}

#define DJ_STAND_IN_SECTION(name) __attribute__((used, section(name)))

/// `id`: unique in the file.
#define DJ_STAND_IN_KERNEL(id, name, kernel, cube, vector, vf) \
    DJ_STAND_IN_SECTION("dj_kernels")                          \
    static const dj_stand_in::KernelEntry dj_entry_##id = {    \
        name,                                                  \
        &dj_stand_in::Entry<kernel>::run,                      \
        dj_stand_in::Entry<kernel>::layout.params,             \
        dj_stand_in::Entry<kernel>::layout.kCount,             \
        dj_stand_in::Entry<kernel>::layout.bytes,              \
        cube,                                                  \
        vector,                                                \
        vf};                                                   \
    DJ_STAND_IN_SECTION("__CCE_KernelArgSize")                 \
    static const uint32_t dj_argument_bytes_##id = dj_stand_in::Entry<kernel>::layout.bytes;

/// One per symbol: two for a mix kernel.
#define DJ_STAND_IN_META(id, symbol, kernel, type, cube, vector, vf) \
    DJ_STAND_IN_SECTION(".ascend.meta." symbol)                      \
    static const dj_stand_in::Meta dj_meta_##id = {                  \
        {1, 4, type},                                                \
        {3, 4, cube, vector},                                        \
        {12, 4, vf},                                                 \
        {16,                                                         \
         12,                                                         \
         dj_stand_in::Entry<kernel>::layout.kCount,                  \
         {dj_stand_in::Entry<kernel>::layout.bytes, 0}}};
