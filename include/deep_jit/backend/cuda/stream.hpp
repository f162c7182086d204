// The stream of a launch that names none.
#pragma once

#include <link.h>

#include <atomic>
#include <cstdint>

#include <deep_jit/backend/cuda/driver.hpp>

namespace deep_jit::cuda {

/// Returns the calling thread's current stream.
using CurrentStreamProvider = CUstream (*)();

namespace detail {

/// PyTorch's stable C function for the current stream; writes a cudaStream_t, which is a CUstream.
using TorchCurrentStream = std::int32_t (*)(std::int32_t device_index, void** stream);

inline constinit std::atomic<CurrentStreamProvider> stream_provider{nullptr};
inline constinit std::atomic<TorchCurrentStream> torch_current_stream{nullptr};
/// How many libraries had been loaded when PyTorch was last looked for in vain.
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

/// PyTorch's function when PyTorch is in this process, else null. It is looked for again when a
/// library was loaded since. A library once found is kept loaded.
[[gnu::noinline]] inline TorchCurrentStream find_torch_current_stream() {
    const auto loaded = count_loaded_libraries();
    if (loaded == libraries_without_torch.load(std::memory_order_acquire))
        return nullptr;
    auto library = DynamicLibrary::try_open("libtorch_cuda.so",
                                            RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
    const auto found =
        reinterpret_cast<TorchCurrentStream>(library.find("aoti_torch_get_current_cuda_stream"));
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
/// of PyTorch's current stream; for CuPy, JAX and the like. Null: PyTorch's again.
inline void set_current_stream_provider(CurrentStreamProvider provider) {
    detail::stream_provider.store(provider, std::memory_order_release);
}

/// The stream that a launch without one uses: of the provider, if one is set; else PyTorch's
/// current stream of the calling thread, if PyTorch with CUDA is in this process; else the
/// default stream.
inline CUstream current_stream() {
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
            "PyTorch's current CUDA stream cannot be had (aoti_torch_get_current_cuda_stream "
            "failed); set LaunchOptions::stream");
    return static_cast<CUstream>(stream);
}

}  // namespace deep_jit::cuda
