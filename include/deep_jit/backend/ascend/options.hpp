// Options of the Ascend backend for compiling and launching.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <deep_jit/backend/ascend/acl.hpp>
#include <deep_jit/backend/ascend/device.hpp>
#include <deep_jit/backend/ascend/soc.hpp>
#include <deep_jit/runtime/options.hpp>
#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/json.hpp>

namespace deep_jit::ascend {

/// Unset fields inherit from the runtime's `default_compiler_options`.
struct CompilerOptions {
    std::optional<std::string> optimize_level = {};  ///< "2" is -O2
    std::optional<std::string> arch = {};            ///< "2201" or "dav-2201"; unset: of the device
    std::optional<bool> debug_info = {};  ///< source lines, with the source inside the object
    std::optional<bool> dump_asm = {};    ///< `asm/` beside the artifact; not in the key
    std::optional<std::vector<std::string>> bisheng_flags = {};  ///< replaces the free-form ones
    std::optional<std::vector<std::string>> linker_flags = {};   ///< replaces those of ld.lld
    std::vector<std::string> extra_bisheng_flags = {};           ///< appended to all others
    std::vector<std::string> extra_linker_flags = {};            ///< appended to all others

    static constexpr auto fields() {
        using O = CompilerOptions;
        return std::tuple(&O::optimize_level, &O::arch, &O::debug_info, &O::dump_asm,
                          &O::bisheng_flags, &O::linker_flags, &O::extra_bisheng_flags,
                          &O::extra_linker_flags);
    }

    /// What the environment says. `arch` is set only by `JIT_ARCH`: the device is asked when a
    /// kernel is compiled without. Throws ConfigError for invalid values.
    static CompilerOptions default_options(const Env& env, const Device& /*device*/) {
        CompilerOptions out;
        out.optimize_level = "2";
        const auto arch = env.get<std::string>("JIT_ARCH", std::string());
        if (!arch.empty())
            out.arch = normalize_arch(arch, "Environment variable " + env.name_of("JIT_ARCH"));
        out.debug_info = env.get<bool>("JIT_KERNEL_DEBUG_INFO", false);
        out.dump_asm = env.get<bool>("JIT_DUMP_ASM", false);
        out.bisheng_flags = {"--cce-aicore-only", "-mllvm", "-enable-hiipu-vf-loop-unroll"};
        out.linker_flags = {"-m", "aicorelinux", "-Ttext", "0", "--no-mmap-output-file"};
        return out;
    }

    /// These options with the set fields of `other` in their place, and its extra flags appended.
    CompilerOptions override_with(const CompilerOptions& other) const {
        return override_options(*this, other);
    }

    /// Flags for bisheng, without include directories. Throws ConfigError for an `arch` that
    /// cannot be one.
    std::vector<std::string> get_bisheng_flags() const {
        std::vector<std::string> out;
        if (optimize_level)
            out.push_back("-O" + *optimize_level);
        if (arch)
            out.push_back("--npu-arch=dav-" + normalize_arch(*arch, "CompilerOptions::arch"));
        if (debug_info.value_or(false))
            out.insert(out.end(), {"-g", "-gdwarf-5", "-gembed-source", "-gline-tables-only"});
        if (bisheng_flags)
            out.insert(out.end(), bisheng_flags->begin(), bisheng_flags->end());
        out.insert(out.end(), extra_bisheng_flags.begin(), extra_bisheng_flags.end());
        return out;
    }

    /// Flags for ld.lld.
    std::vector<std::string> get_linker_flags() const {
        std::vector<std::string> out;
        if (linker_flags)
            out = *linker_flags;
        out.insert(out.end(), extra_linker_flags.begin(), extra_linker_flags.end());
        return out;
    }

    /// Digest component 3: the flags of both, and how many of them are bisheng's.
    std::vector<std::string> get_flags() const {
        auto out = get_bisheng_flags();
        const auto linker = get_linker_flags();
        out.insert(out.begin(), str::to_text(out.size()));
        out.insert(out.end(), linker.begin(), linker.end());
        return out;
    }

    json to_json() const {
        json out = json::object();
        out["optimize_level"] = optimize_level;
        out["arch"] = arch;
        out["debug_info"] = debug_info;
        out["dump_asm"] = dump_asm;
        out["bisheng_flags"] = bisheng_flags;
        out["linker_flags"] = linker_flags;
        out["extra_bisheng_flags"] = extra_bisheng_flags;
        out["extra_linker_flags"] = extra_linker_flags;
        return out;
    }
};

/// Most seconds that ACL takes as a launch's timeout.
inline constexpr int kMaxTimeoutSecs = std::numeric_limits<std::uint16_t>::max();

/// Unset fields inherit from the runtime's `default_launch_options`.
struct LaunchOptions {
    /// Unset: the current stream (see stream.hpp). Null is the default stream.
    std::optional<aclrtStream> stream = {};
    std::optional<int> num_blocks = {};               ///< required
    std::optional<int> num_ubuf_bytes = {};           ///< dynamic unified buffer; Ascend 950 only
    std::optional<int> num_launch_timeout_secs = {};  ///< 0: no limit

    static constexpr auto fields() {
        using O = LaunchOptions;
        return std::tuple(&O::stream, &O::num_blocks, &O::num_ubuf_bytes,
                          &O::num_launch_timeout_secs);
    }

    /// Everything but stream and blocks is set. Throws ConfigError for an invalid
    /// `JIT_LAUNCH_TIMEOUT`.
    static LaunchOptions default_options(const Env& env) {
        LaunchOptions out;
        out.num_ubuf_bytes = 0;
        out.num_launch_timeout_secs = env.get<int>("JIT_LAUNCH_TIMEOUT", 10);
        if (*out.num_launch_timeout_secs < 0 || *out.num_launch_timeout_secs > kMaxTimeoutSecs)
            deep_jit::detail::throw_error<ConfigError>(
                "Environment variable {} has an invalid value '{}': the launch timeout is out of "
                "range, which is 0 to {} seconds",
                env.name_of("JIT_LAUNCH_TIMEOUT"), env.get("JIT_LAUNCH_TIMEOUT", ""),
                kMaxTimeoutSecs);
        return out;
    }

    LaunchOptions override_with(const LaunchOptions& other) const {
        return override_options(*this, other);
    }
};

}  // namespace deep_jit::ascend
