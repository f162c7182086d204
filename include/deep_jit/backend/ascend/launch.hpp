// Launching: options merged without a copy, arguments packed on the stack, one call of ACL.
#pragma once

#include <cstdint>
#include <string>

#include <deep_jit/backend/ascend/kernel.hpp>
#include <deep_jit/backend/ascend/options.hpp>
#include <deep_jit/backend/ascend/pack.hpp>
#include <deep_jit/backend/ascend/stream.hpp>
#include <deep_jit/runtime/arguments.hpp>

namespace deep_jit::ascend {

/// One launch. Lives on the stack of Runtime::launch.
class Launch {
public:
    /// Throws LaunchError for options or arguments that cannot be right.
    Launch(const Kernel& kernel, const LaunchOptions& defaults, const LaunchOptions& overrides,
           const Arguments& arguments)
        : kernel_(kernel) {
        const auto pick = [&](auto field) -> const auto& {
            return (overrides.*field).has_value() ? overrides.*field : defaults.*field;
        };
        const auto& blocks = pick(&LaunchOptions::num_blocks);
        const auto& ubuf = pick(&LaunchOptions::num_ubuf_bytes);
        const auto& timeout = pick(&LaunchOptions::num_launch_timeout_secs);
        const auto& stream = pick(&LaunchOptions::stream);
        if (kernel.kernel_handle == nullptr) [[unlikely]]
            fail("it has been unloaded");
        if (!blocks) [[unlikely]]
            fail("the block count must be specified");
        if (*blocks <= 0) [[unlikely]]
            fail("the block count must be positive: " + str::to_text(*blocks));
        if (ubuf.value_or(0) < 0) [[unlikely]]
            fail("the dynamic UB size must not be negative: " + str::to_text(*ubuf));
        if (timeout && (*timeout < 0 || *timeout > kMaxTimeoutSecs)) [[unlikely]]
            fail(
                str::format("the launch timeout is out of range: {} seconds; it may be 0 (none) "
                            "to {}",
                            *timeout, kMaxTimeoutSecs));
        num_blocks_ = static_cast<std::uint32_t>(*blocks);
        if (timeout)
            add(acl::LaunchAttributeId::kTimeoutSeconds).timeout_seconds =
                static_cast<std::uint16_t>(*timeout);
        if (ubuf.value_or(0) > 0)
            add(acl::LaunchAttributeId::kDynamicUbufBytes).dynamic_ubuf_bytes =
                static_cast<std::uint32_t>(*ubuf);
        size_ = pack_arguments(kernel.name_, arguments, packed_);
        // Some objects say 8 where there are none.
        if (kernel.argument_bytes_ && size_ != *kernel.argument_bytes_ &&
            !(arguments.count == 0 && *kernel.argument_bytes_ == 8)) [[unlikely]]
            fail_size(arguments);
        if (size_ == 0) {
            // ACL refuses an empty argument area. The kernel does not look at it.
            size_ = 8;
            std::memset(packed_, 0, size_);
        }
        stream_ = stream ? *stream : current_stream();
    }

    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

    /// Throws LaunchError when ACL refuses it; with `blocking`, also when the kernel fails. A
    /// thread without a device gets `device`, a number or something that gives one.
    template <typename DefaultDevice>
    void run(bool blocking, DefaultDevice&& default_device) {
        auto code = launch();
        if (code == acl::kNoDeviceSet && driver::current_device() < 0) [[unlikely]] {
            driver::check<LaunchError>(driver::lazy_aclrtSetDevice(default_device()),
                                       "aclrtSetDevice");
            code = launch();
        }
        if (code != acl::kSuccess) [[unlikely]]
            fail_launch("aclrtLaunchKernelWithHostArgs", code);
        if (!blocking) [[likely]]
            return;
        code = driver::lazy_aclrtSynchronizeDevice();
        if (code != acl::kSuccess)
            fail_run(code);
    }

private:
    aclError launch() {
        aclrtFuncHandle function = kernel_.kernel_handle;
        // The function of one device is of no use on another.
        if (kernel_.num_devices_ > 1) {
            std::int32_t device = -1;
            const auto code = driver::lazy_aclrtGetDevice(&device);
            if (code != acl::kSuccess) [[unlikely]]
                return code;
            function = kernel_.function_on(device);
        }
        acl::LaunchConfig config{attributes_, num_attributes_};
        return driver::lazy_aclrtLaunchKernelWithHostArgs(function, num_blocks_, stream_, &config,
                                                          packed_, size_, nullptr, 0);
    }

    acl::LaunchAttributeValue& add(acl::LaunchAttributeId id) {
        auto& attribute = attributes_[num_attributes_++];
        attribute.id = id;
        attribute.value = {};
        return attribute.value;
    }

    [[noreturn, gnu::cold, gnu::noinline]] void fail(const std::string& reason) const {
        throw LaunchError(
            str::format("Cannot launch kernel {}: {}", detail::demangle(kernel_.name_), reason));
    }

    [[noreturn, gnu::cold, gnu::noinline]] void fail_size(const Arguments& arguments) const {
        std::string given;
        for (std::size_t i = 0; i < arguments.count; ++i)
            given += (i > 0 ? ", " : "") + str::to_text(arguments.infos[i].size);
        fail(str::format(
            "wrong arguments: its parameters take {} bytes, the {} argument(s) given take {}, "
            "their sizes are ({}). (JIT_CHECK_ARGUMENTS=0 turns this check off)",
            *kernel_.argument_bytes_, arguments.count, size_, given));
    }

    [[noreturn, gnu::cold, gnu::noinline]] void fail_run(aclError code) const {
        const std::string text = driver::error_text(code);
        throw LaunchError(str::format(
            "Kernel {} failed: aclrtSynchronizeDevice, because of ASCEND_LAUNCH_BLOCKING: {} ({})",
            detail::demangle(kernel_.name_), text, describe()));
    }

    [[noreturn, gnu::cold, gnu::noinline]] void fail_launch(const char* call, aclError code) const {
        std::string text = driver::error_text(code);
        text = str::format("{}: {} ({})", call, text, describe());
        if (acl::is_kernel_failure(code))
            text += ". It may come from an earlier kernel: launches are asynchronous";
        fail(text);
    }

    std::string describe() const {
        std::string out = str::format("{} blocks, {} bytes of arguments, stream {}", num_blocks_,
                                      size_, static_cast<const void*>(stream_));
        for (std::size_t i = 0; i < num_attributes_; ++i) {
            const auto& value = attributes_[i].value;
            if (attributes_[i].id == acl::LaunchAttributeId::kTimeoutSeconds)
                out += str::format(", timeout {} s", value.timeout_seconds);
            else
                out += str::format(", {} bytes of dynamic UB", value.dynamic_ubuf_bytes);
        }
        return out + ", " + describe_device(driver::current_device());
    }

    const Kernel& kernel_;
    aclrtStream stream_ = nullptr;
    std::uint32_t num_blocks_ = 0;
    std::size_t size_ = 0;
    std::size_t num_attributes_ = 0;
    acl::LaunchAttribute attributes_[2];
    alignas(8) unsigned char packed_[kMaxArgumentBytes];
};

}  // namespace deep_jit::ascend
