// The stream of a launch that names none.
#pragma once

#include <link.h>

#include <atomic>
#include <cstdint>

#include <deep_jit/backend/ascend/acl.hpp>
#include <deep_jit/utils/dynamic_library.hpp>
#include <deep_jit/utils/exception.hpp>

namespace deep_jit::ascend {

/// Returns the calling thread's current stream.
using CurrentStreamProvider = aclrtStream (*)();

namespace detail {

/// torch_npu's C function for the current stream. It waits until what torch_npu has queued itself
/// is in the stream, so that a launch cannot overtake it.
using TorchCurrentStream = std::int32_t (*)(std::int32_t device_index, void** stream);

inline constinit std::atomic<CurrentStreamProvider> stream_provider{nullptr};
inline constinit std::atomic<TorchCurrentStream> torch_current_stream{nullptr};
/// How many libraries had been loaded when torch_npu was last looked for in vain.
inline constinit std::atomic<std::uint64_t> libraries_without_torch{0};

/// Number of libraries loaded into this process so far, unloaded ones included; about 10 ns.
inline std::uint64_t count_loaded_libraries() {
    std::uint64_t count = 0;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            *static_cast<std::uint64_t*>(out) = info->dlpi_adds;
            return 1;
        },
        &count);
    return count;
}

/// torch_npu's function when torch_npu is in this process, else null. It is looked for again when
/// a library was loaded since. A library once found is kept loaded.
[[gnu::noinline]] inline TorchCurrentStream find_torch_current_stream() {
    const auto loaded = count_loaded_libraries();
    if (loaded == libraries_without_torch.load(std::memory_order_acquire))
        return nullptr;
    constexpr const char* kName = "aoti_torch_get_current_npu_stream";
    auto library = DynamicLibrary::try_open("libtorch_npu.so",
                                            RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
    auto found = reinterpret_cast<TorchCurrentStream>(library.find(kName));
    if (found == nullptr)
        found = reinterpret_cast<TorchCurrentStream>(::dlsym(RTLD_DEFAULT, kName));
    // On the default stream it would run at the wrong time, now and then.
    if (found == nullptr && library)
        deep_jit::detail::throw_error<LaunchError>(
            "This torch_npu does not tell its current stream: it has no {} (torch_npu 26.1.0 and "
            "newer have it). Set LaunchOptions::stream, or give "
            "deep_jit::ascend::set_current_stream_provider a function that returns "
            "c10_npu::getCurrentNPUStream().stream()",
            kName);
    if (found != nullptr) {
        library.release();
        torch_current_stream.store(found, std::memory_order_release);
    } else {
        libraries_without_torch.store(loaded, std::memory_order_release);
    }
    return found;
}

}  // namespace detail

/// Launches without a stream of their own go to what `provider` returns, in every runtime, instead
/// of torch_npu's current stream. Null: torch_npu's again.
inline void set_current_stream_provider(CurrentStreamProvider provider) {
    detail::stream_provider.store(provider, std::memory_order_release);
}

/// The stream that a launch without one uses: of the provider, if one is set; else torch_npu's
/// current stream of the calling thread, if torch_npu is in this process; else the default stream.
/// Throws LaunchError when torch_npu does not tell.
inline aclrtStream current_stream() {
    if (const auto provider = detail::stream_provider.load(std::memory_order_acquire))
        return provider();
    auto torch = detail::torch_current_stream.load(std::memory_order_acquire);
    if (torch == nullptr)
        torch = detail::find_torch_current_stream();
    if (torch == nullptr)
        return nullptr;
    void* stream = nullptr;
    constexpr std::int32_t kCurrentDevice = -1;
    if (torch(kCurrentDevice, &stream) != 0) [[unlikely]]
        throw LaunchError(
            "torch_npu's current stream cannot be had (aoti_torch_get_current_npu_stream failed); "
            "set LaunchOptions::stream");
    return stream;
}

}  // namespace deep_jit::ascend
