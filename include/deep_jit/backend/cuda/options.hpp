// Options of the CUDA backend for compiling and launching.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

// dim3
#include <vector_types.h>

#include <deep_jit/backend/cuda/device.hpp>
#include <deep_jit/runtime/config.hpp>
#include <deep_jit/runtime/options.hpp>
#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/hash.hpp>
#include <deep_jit/utils/json.hpp>

namespace deep_jit::cuda {

/// Unset fields inherit from the runtime's `default_compiler_options`.
struct CompilerOptions {
    std::optional<std::string> optimize_level = {};  ///< for device and host code: "3" is -O3
    std::optional<bool> fast_math = {};
    /// Resource usage of kernels, printed after compilation.
    std::optional<bool> ptxas_verbose = {};
    std::optional<int> ptxas_register_usage_level = {};  ///< 0 to 10
    std::optional<bool> check_no_spills = {};            ///< spilled registers are a CompileError
    std::optional<bool> check_no_local_memory = {};      ///< so is any local memory
    std::optional<bool> with_line_info = {};             ///< with the path of the published source
    std::optional<bool> dump_ptx = {};                   ///< `kernel.ptx` beside the artifact
    std::optional<bool> dump_sass = {};                  ///< `kernel.sass`; neither is in the key
    std::optional<std::string> arch = {};                ///< such as "90a"; unset: of the device
    /// Replaces the default free-form flags.
    std::optional<std::vector<std::string>> nvcc_flags = {};
    std::vector<std::string> extra_nvcc_flags = {};  ///< appended to all others
    /// Python file, relative to the library root, that edits the CUBIN before it is published.
    std::optional<std::string> post_hook = {};
    /// "nvcc", "nvrtc", or "auto": NVCC where there is one, else NVRTC.
    std::optional<std::string> compiler = {};

    static constexpr auto fields() {
        using O = CompilerOptions;
        return std::tuple(&O::optimize_level, &O::fast_math, &O::ptxas_verbose,
                          &O::ptxas_register_usage_level, &O::check_no_spills,
                          &O::check_no_local_memory, &O::with_line_info, &O::dump_ptx,
                          &O::dump_sass, &O::arch, &O::nvcc_flags, &O::extra_nvcc_flags,
                          &O::post_hook, &O::compiler);
    }

    /// What the environment says. `arch` is set only by `JIT_ARCH`: the device is asked when a
    /// kernel is compiled without. Throws ConfigError for invalid values.
    static CompilerOptions default_options(const Env& env, const Device& /*device*/) {
        const auto flag = [&](std::string_view suffix, bool fallback = false) {
            return env.get<bool>(suffix, fallback);
        };
        const bool debug = flag("JIT_DEBUG");
        const bool dump_asm = flag("JIT_DUMP_ASM", debug);
        CompilerOptions out;
        out.optimize_level = "3";
        out.fast_math = false;
        out.ptxas_verbose = flag("JIT_PTXAS_VERBOSE", debug);
        out.ptxas_register_usage_level = 10;
        out.check_no_spills = flag("JIT_CHECK_NO_SPILLS");
        out.check_no_local_memory = flag("JIT_CHECK_NO_LOCAL_MEMORY");
        out.with_line_info = flag("JIT_WITH_LINEINFO", debug);
        out.dump_ptx = flag("JIT_DUMP_PTX", dump_asm);
        out.dump_sass = flag("JIT_DUMP_SASS", dump_asm);
        out.arch = arch_from(env);
        out.nvcc_flags = {
            "-std=c++" + env.get("JIT_CPP_STANDARD", "20"),
            "--compiler-options=-fPIC",
            "--compiler-options=-fconcepts",
            "--expt-relaxed-constexpr",
            "--expt-extended-lambda",
        };
        out.compiler = default_compiler(env);
        return out;
    }

    /// "nvcc", "nvrtc" or "auto", as `JIT_COMPILER` says. Throws ConfigError for anything else.
    static std::string default_compiler(const Env& env) {
        const auto text = str::to_lower(str::trim(env.get("JIT_COMPILER", "")));
        if (text.empty())
            return "nvcc";
        if (text != "nvcc" && text != "nvrtc" && text != "auto")
            deep_jit::detail::throw_error<ConfigError>(
                "Environment variable {} has an invalid value '{}': expected nvcc, nvrtc or auto",
                env.name_of("JIT_COMPILER"), env.get("JIT_COMPILER", ""));
        return text;
    }

    /// These options with the set fields of `other` in their place, and its extra flags appended.
    CompilerOptions override_with(const CompilerOptions& other) const {
        return override_options(*this, other);
    }

    /// Flags for NVCC, without include directories: digest component 3.
    std::vector<std::string> get_flags() const {
        std::vector<std::string> out;
        if (arch)
            out.push_back("--gpu-architecture=sm_" + *arch);
        if (optimize_level) {
            out.push_back("-O" + *optimize_level);
            out.push_back("--compiler-options=-O" + *optimize_level);
        }
        if (fast_math.value_or(false))
            out.emplace_back("--use_fast_math");
        if (ptxas_verbose.value_or(false))
            out.emplace_back("--ptxas-options=--verbose");
        if (ptxas_register_usage_level)
            out.push_back("--ptxas-options=--register-usage-level=" +
                          str::to_text(*ptxas_register_usage_level));
        if (check_no_spills.value_or(false))
            out.emplace_back("--ptxas-options=--warn-on-spills");
        if (check_no_local_memory.value_or(false))
            out.emplace_back("--ptxas-options=--warn-on-local-memory-usage");
        if (with_line_info.value_or(false))
            out.emplace_back("--generate-line-info");
        if (nvcc_flags)
            out.insert(out.end(), nvcc_flags->begin(), nvcc_flags->end());
        out.insert(out.end(), extra_nvcc_flags.begin(), extra_nvcc_flags.end());
        return out;
    }

    /// Digest component 4: path and content of the hook; empty without one. The file is read at
    /// each call. Throws ConfigError when it is missing or lies outside the library root.
    std::string get_post_hook_hash(const Config& config) const {
        if (!post_hook)
            return {};
        const auto content = deep_jit::read(config.get_python_path(*post_hook));
        return *post_hook + ":" + hash::get_hex_digest(content);
    }

    json to_json() const {
        json out = json::object();
        out["optimize_level"] = optimize_level;
        out["use_fast_math"] = fast_math;
        out["ptxas_verbose"] = ptxas_verbose;
        out["ptxas_register_usage_level"] = ptxas_register_usage_level;
        out["check_no_spills"] = check_no_spills;
        out["check_no_local_memory"] = check_no_local_memory;
        out["with_line_info"] = with_line_info;
        out["dump_ptx"] = dump_ptx;
        out["dump_sass"] = dump_sass;
        out["arch"] = arch;
        out["nvcc_flags"] = nvcc_flags;
        out["extra_nvcc_flags"] = extra_nvcc_flags;
        out["post_hook"] = post_hook;
        out["compiler"] = compiler;
        return out;
    }

private:
    static std::optional<std::string> arch_from(const Env& env) {
        auto text = env.get<std::string>("JIT_ARCH", std::string());
        if (text.empty())
            return std::nullopt;
        if (text.starts_with("sm_"))
            text.erase(0, 3);
        const auto digits = text.find_first_not_of("0123456789");
        const auto suffix = digits == std::string::npos ? std::string() : text.substr(digits);
        if (text.empty() || digits == 0 || !(suffix.empty() || suffix == "a" || suffix == "f"))
            deep_jit::detail::throw_error<ConfigError>(
                "Environment variable {} has an invalid value '{}': expected an architecture such "
                "as 89, 90a or 100f",
                env.name_of("JIT_ARCH"), env.get("JIT_ARCH", ""));
        return text;
    }
};

/// Unset fields inherit from the runtime's `default_launch_options`.
struct LaunchOptions {
    /// Unset: the current stream (see stream.hpp). Null is the default stream.
    std::optional<CUstream> stream = {};
    std::optional<int> num_smem_bytes = {};  ///< dynamic shared memory of a block
    std::optional<dim3> grid_dim = {};       ///< in blocks
    std::optional<dim3> block_dim = {};      ///< in threads
    /// In blocks; {1, 1, 1}: what the kernel itself declares.
    std::optional<dim3> cluster_dim = {};
    std::optional<bool> cooperative = {};  ///< all blocks run at once and may wait for each other
    /// The kernel may start before the one before it in the stream has ended.
    std::optional<bool> enable_pdl = {};
    /// Clusters of more than 8 blocks.
    std::optional<bool> nonportable_cluster_size_allowed = {};

    static constexpr auto fields() {
        using O = LaunchOptions;
        return std::tuple(&O::stream, &O::num_smem_bytes, &O::grid_dim, &O::block_dim,
                          &O::cluster_dim, &O::cooperative, &O::enable_pdl,
                          &O::nonportable_cluster_size_allowed);
    }

    /// Everything but stream, grid and block is set.
    static LaunchOptions default_options(const Env& /*env*/) {
        LaunchOptions out;
        out.num_smem_bytes = 0;
        out.cluster_dim = dim3(1, 1, 1);
        out.cooperative = false;
        out.enable_pdl = false;
        out.nonportable_cluster_size_allowed = false;
        return out;
    }

    LaunchOptions override_with(const LaunchOptions& other) const {
        return override_options(*this, other);
    }
};

}  // namespace deep_jit::cuda
