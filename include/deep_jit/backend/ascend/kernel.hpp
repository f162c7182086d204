// A kernel loaded from a device object. Where the object came from is of no concern here.
#pragma once

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <deep_jit/backend/ascend/device.hpp>
#include <deep_jit/backend/ascend/driver.hpp>
#include <deep_jit/backend/ascend/elf.hpp>

namespace deep_jit::ascend {

namespace detail {

/// The name as the source has it, for messages.
inline std::string demangle(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
    return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

/// A kernel on one device: ACL copies it there when it is first asked for its function.
struct LoadedKernel {
    aclrtBinHandle library = nullptr;
    std::atomic<aclrtFuncHandle> function{nullptr};
};

/// Device of the calling thread; 0, made its own, when it has none.
inline int provide_device() {
    const int device = driver::current_device();
    if (device >= 0)
        return device;
    driver::check<LoadError>(driver::lazy_aclrtSetDevice(0), "aclrtSetDevice");
    return 0;
}

}  // namespace detail

/// One kernel. It is loaded on the device that was current, and on others when it is first
/// launched there.
class Kernel {
public:
    /// Of the device that it was loaded on.
    aclrtBinHandle library_handle = nullptr;
    aclrtFuncHandle kernel_handle = nullptr;

    const std::string& name() const { return name_; }
    /// Bytes of all parameters, rounded up to 8; nothing when the object does not say, or is not
    /// asked.
    std::optional<std::uint32_t> argument_bytes() const { return argument_bytes_; }

    /// Loads the one kernel of `object`; `key` is for messages. Launches compare the size of their
    /// arguments with what the object says, unless `check_arguments` is false. A thread without a
    /// device gets device 0. Throws LoadError, or ToolchainError when there is no ACL or no device.
    static std::shared_ptr<Kernel> load(std::string_view object, const std::string& key,
                                        bool check_arguments = true) {
        const auto info = read_object(object);
        if (!info)
            fail_load(key, str::format("its {} bytes are no complete ELF file of a device",
                                       object.size()));
        const std::shared_ptr<Kernel> out(new Kernel);
        out->name_ = only_kernel(*info, key);
        if (info->argument_bytes && check_arguments)
            out->argument_bytes_ = (*info->argument_bytes + 7) / 8 * 8;
        out->key_ = key;
        driver::initialize();
        std::uint32_t count = 0;
        driver::check<ToolchainError>(driver::lazy_aclrtGetDeviceCount(&count),
                                      "aclrtGetDeviceCount");
        const int device = detail::provide_device();
        out->num_devices_ = std::max(static_cast<int>(count), device + 1);
        out->loaded_ =
            std::make_unique<detail::LoadedKernel[]>(static_cast<std::size_t>(out->num_devices_));
        out->device_ = device;
        // Needed again only for another device.
        if (out->num_devices_ > 1)
            out->object_ = object;
        auto& loaded = out->loaded_[static_cast<std::size_t>(device)];
        out->load_here(loaded, object);
        out->library_handle = loaded.library;
        out->kernel_handle = loaded.function.load(std::memory_order_relaxed);
        return out;
    }

    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;
    ~Kernel() { unload(); }

    /// Gives ACL its memory back; the kernel can no longer be launched. No launch may be under
    /// way. Does nothing the second time, at the process's end, and in a forked child.
    void unload() noexcept {
        kernel_handle = nullptr;
        library_handle = nullptr;
        if (loaded_ == nullptr || driver::is_shut_down() || ::getpid() != owner_)
            return;
        const auto unload = driver::lazy_aclrtBinaryUnLoad.try_get();
        const auto get_device = driver::lazy_aclrtGetDevice.try_get();
        const auto set_device = driver::lazy_aclrtSetDevice.try_get();
        if (unload == nullptr || get_device == nullptr || set_device == nullptr)
            return;
        std::int32_t before = -1;
        if (get_device(&before) != acl::kSuccess)
            before = -1;
        // An error has no consequence: the memory goes with the process.
        std::int32_t now = before;
        for (int device = 0; device < num_devices_; ++device) {
            auto& loaded = loaded_[static_cast<std::size_t>(device)];
            loaded.function.store(nullptr, std::memory_order_release);
            if (loaded.library == nullptr)
                continue;
            // It has to be the device that it was loaded on.
            if (now == device || set_device(device) == acl::kSuccess) {
                now = device;
                unload(loaded.library);
            }
            loaded.library = nullptr;
        }
        if (before >= 0 && now != before)
            set_device(before);
    }

private:
    friend class Launch;
    Kernel() = default;

    [[noreturn]] static void fail_load(const std::string& key, const std::string& reason) {
        throw LoadError(str::format("Cannot load kernel {}: {}", key, reason), {{}, {}, {}, key});
    }

    static const std::string& only_kernel(const ObjectInfo& info, const std::string& key) {
        if (info.kernels.size() == 1)
            return info.kernels[0];
        std::string names;
        for (const auto& name : info.kernels)
            names += (names.empty() ? ": " : ", ") + detail::demangle(name);
        fail_load(key, str::format("expected exactly one kernel, but there are {}{}. A source must "
                                   "define or instantiate one __global__ function; helpers are "
                                   "static or inline",
                                   info.kernels.size(), names));
    }

    /// Loads on the current device.
    void load_here(detail::LoadedKernel& loaded, std::string_view object) const {
        aclrtBinHandle library = nullptr;
        auto code =
            driver::lazy_aclrtBinaryLoadFromData(object.data(), object.size(), nullptr, &library);
        if (code != acl::kSuccess) {
            const auto text = driver::error_text(code);
            fail_load(key_, str::format("aclrtBinaryLoadFromData: {} ({})", text, here()));
        }
        aclrtFuncHandle function = nullptr;
        code = driver::lazy_aclrtBinaryGetFunction(library, name_.c_str(), &function);
        if (code != acl::kSuccess || function == nullptr) {
            const auto text = driver::error_text(code);
            driver::lazy_aclrtBinaryUnLoad(library);
            fail_load(key_, str::format("ACL does not find its kernel '{}': "
                                        "aclrtBinaryGetFunction: {} ({})",
                                        name_, text, here()));
        }
        loaded.library = library;
        loaded.function.store(function, std::memory_order_release);
    }

    static std::string here() { return describe_device(driver::current_device()); }

    /// The function on `device`, which is current; loaded there now if need be.
    aclrtFuncHandle function_on(int device) const {
        if (device < 0 || device >= num_devices_)
            return nullptr;
        auto& loaded = loaded_[static_cast<std::size_t>(device)];
        if (const auto function = loaded.function.load(std::memory_order_acquire)) [[likely]]
            return function;
        const std::lock_guard lock(load_mutex_);
        if (loaded.function.load(std::memory_order_acquire) == nullptr)
            load_here(loaded, object_);
        return loaded.function.load(std::memory_order_acquire);
    }

    std::string name_;
    std::string key_;
    std::string object_;
    std::optional<std::uint32_t> argument_bytes_;
    int device_ = 0;
    int num_devices_ = 0;
    pid_t owner_ = ::getpid();
    std::unique_ptr<detail::LoadedKernel[]> loaded_;
    mutable std::mutex load_mutex_;
};

}  // namespace deep_jit::ascend
