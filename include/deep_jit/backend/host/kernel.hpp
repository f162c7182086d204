// A loaded kernel: a shared library with one entry, and its launch.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <deep_jit/backend/host/abi.hpp>
#include <deep_jit/backend/host/options.hpp>
#include <deep_jit/backend/host/task.hpp>
#include <deep_jit/runtime/arguments.hpp>
#include <deep_jit/runtime/backend_concept.hpp>
#include <deep_jit/utils/dynamic_library.hpp>
#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/uuid.hpp>

namespace deep_jit::host {

class Kernel {
public:
    /// Loads a kernel library from its bytes. Throws LoadError.
    explicit Kernel(const LoadRequest& request)
        : name_(request.key), library_(std::make_shared<DynamicLibrary>(open(request))) {
        entry_ = static_cast<const abi::KernelEntry*>(library_->find(abi::kEntryName));
        if (entry_ == nullptr || entry_->abi_version != abi::kVersion)
            deep_jit::detail::throw_error<LoadError>(
                "{} is not a kernel library of this version of the Host backend", request.key);
    }

    /// `<tag>.<digest>`.
    const std::string& name() const noexcept { return name_; }
    std::size_t num_params() const { return entry().num_params; }
    /// Bytes of parameter `index`.
    std::size_t param_size(std::size_t index) const { return entry().param_sizes[index]; }

    /// Gives the code back once no launch uses it; may be called again. A later launch is an
    /// error.
    void unload() noexcept {
        entry_ = nullptr;
        library_.reset();
    }

    /// Queues a launch. Throws LaunchError for what is missing or out of range, and for arguments
    /// that do not fit the kernel's parameters; then nothing runs.
    void launch(const LaunchOptions& defaults, const LaunchOptions& overrides,
                const Arguments& arguments) const {
        const auto pick = [&](auto field) -> const auto& {
            return (overrides.*field).has_value() ? overrides.*field : defaults.*field;
        };
        const abi::KernelEntry& entry = this->entry();
        const auto grid = checked("grid", pick(&LaunchOptions::grid_dim));
        const auto block = checked("block", pick(&LaunchOptions::block_dim));
        if (!fits(block, kMaxBlockThreads))
            fail("the block has {} x {} x {} threads; {} are the most", block.x, block.y, block.z,
                 kMaxBlockThreads);
        if (!fits(grid, kMaxGridBlocks))
            fail("the grid has {} x {} x {} blocks; {} are the most", grid.x, grid.y, grid.z,
                 kMaxGridBlocks);
        const int smem = pick(&LaunchOptions::num_smem_bytes).value_or(0);
        if (smem < 0)
            fail("the shared-memory size must not be negative: {}", smem);
        if (smem > kMaxSharedBytes)
            fail("the shared-memory size is {} bytes; {} are the most", smem, kMaxSharedBytes);
        const int threads = pick(&LaunchOptions::num_threads).value_or(Pool::default_threads());
        if (threads <= 0)
            fail("the number of threads must be positive: {}", threads);
        check_arguments(name_, arguments, entry.param_sizes, entry.num_params);
        const auto& stream = pick(&LaunchOptions::stream);
        auto task = std::make_shared<Task>(library_, entry, grid, block, arguments, threads);
        (stream ? *stream : Stream::default_stream()).submit(std::move(task), threads);
    }

private:
    const abi::KernelEntry& entry() const {
        if (entry_ == nullptr)
            throw LaunchError("Kernel " + name_ + " has been unloaded");
        return *entry_;
    }

    template <typename... Args>
    [[noreturn]] void fail(std::string_view pattern, const Args&... args) const {
        throw LaunchError("Kernel " + name_ + ": " + str::format(pattern, args...));
    }

    /// Whether x * y * z, which may overflow, is at most `limit`.
    static bool fits(const abi::Index3& dim, std::uint64_t limit) {
        return dim.x <= limit && dim.y <= limit / dim.x && dim.z <= limit / dim.x / dim.y;
    }

    abi::Index3 checked(std::string_view what, const std::optional<dim3>& dim) const {
        if (!dim)
            fail("the {} dimension must be specified", what);
        if (dim->x == 0 || dim->y == 0 || dim->z == 0)
            fail("the {} dimension must be positive: {} x {} x {}", what, dim->x, dim->y, dim->z);
        return {dim->x, dim->y, dim->z};
    }

    /// dlopen wants a file. An anonymous one is private, needs no disk, and holds exactly the
    /// bytes that were checked.
    static DynamicLibrary open(const LoadRequest& request) {
        std::string error;
        UniqueFd file(::memfd_create("deep_jit_kernel", MFD_CLOEXEC));
        if (file && fs_detail::write_all(file.get(), request.artifact) == 0)
            if (auto library = DynamicLibrary::try_open(unique_name(file.get()),
                                                        RTLD_NOW | RTLD_LOCAL, &error))
                return library;
        // No memfd, or none that may be executed.
        const auto copy = fallback_staging_parent() / ("deep_jit." + get_uuid() + ".so");
        DynamicLibrary library;
        if (try_write_file_sync(copy, request.artifact) == 0)
            library = DynamicLibrary::try_open(copy.string(), RTLD_NOW | RTLD_LOCAL, &error);
        safe_remove_all(copy);
        if (!library)
            deep_jit::detail::throw_error<LoadError>("Cannot load the kernel {}: {}", request.key,
                                                     error);
        return library;
    }

    /// A path to the open file that was never used before: the loader takes two libraries of one
    /// name for the same, and descriptor numbers come back. Repeated slashes make the difference.
    /// Random, not counted: a process may hold several copies of this function, each in a library
    /// that embeds the runtime.
    static std::string unique_name(int fd) {
        std::string name = "/proc/self/fd";
        for (const char digit : get_uuid()) {
            const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
            name.append(static_cast<std::size_t>(value) + 1, '/').append(".");
        }
        return name + "/" + std::to_string(fd);
    }

    std::string name_;
    std::shared_ptr<DynamicLibrary> library_;
    const abi::KernelEntry* entry_ = nullptr;
};

}  // namespace deep_jit::host
