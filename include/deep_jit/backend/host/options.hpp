// Compiler and launch options of the Host backend. Unset fields inherit from the runtime's
// defaults; vectors are appended to them.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <deep_jit/backend/host/device.hpp>
#include <deep_jit/backend/host/dim3.hpp>
#include <deep_jit/backend/host/stream.hpp>
#include <deep_jit/runtime/options.hpp>
#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/json.hpp>

namespace deep_jit::host {

struct CompilerOptions {
    std::optional<std::string> optimize_level = {};  ///< "0" to "3", "s", "fast": `-O<level>`
    std::optional<bool> fast_math = {};              ///< `-ffast-math`
    std::optional<bool> debug_info = {};             ///< `-g`
    std::optional<bool> dump_asm = {};               ///< keeps `kernel.s`; not part of the key
    std::optional<std::string> arch = {};  ///< `-march=<arch>`; "" for the compiler's default
    std::optional<std::vector<std::string>> compiler_flags =
        {};                                              ///< replaces the free-form defaults
    std::vector<std::string> extra_compiler_flags = {};  ///< such as `-DX=1`; appended

    static constexpr auto fields() {
        using O = CompilerOptions;
        return std::tuple(&O::optimize_level, &O::fast_math, &O::debug_info, &O::dump_asm, &O::arch,
                          &O::compiler_flags, &O::extra_compiler_flags);
    }

    /// Throws ConfigError for an environment variable with an invalid value.
    static CompilerOptions default_options(const Env& env, const Device&) {
        const bool debug = env.get<bool>("JIT_DEBUG", false);
        CompilerOptions out;
        out.optimize_level = "3";
        out.fast_math = false;
        out.debug_info = env.get<bool>("JIT_KERNEL_DEBUG_INFO", debug);
        out.dump_asm = env.get<bool>("JIT_DUMP_ASM", debug);
        // Portable by default: a cache may be shared between machines with different processors.
        out.arch = env.get<std::string>("JIT_ARCH", std::string());
        out.compiler_flags = std::vector<std::string>{
            "-std=c++" + env.get<std::string>("JIT_CPP_STANDARD", std::string("20"))};
        return out;
    }

    CompilerOptions override_with(const CompilerOptions& over) const {
        return override_options(*this, over);
    }

    /// Effective flags, in the order given to the compiler.
    std::vector<std::string> get_flags() const {
        std::vector<std::string> out{"-O" + optimize_level.value_or("3")};
        if (fast_math.value_or(false))
            out.emplace_back("-ffast-math");
        if (debug_info.value_or(false))
            out.emplace_back("-g");
        if (arch && !arch->empty())
            out.push_back("-march=" + *arch);
        if (compiler_flags)
            out.insert(out.end(), compiler_flags->begin(), compiler_flags->end());
        out.insert(out.end(), extra_compiler_flags.begin(), extra_compiler_flags.end());
        return out;
    }

    json to_json() const {
        json out = json::object();
        out["optimize_level"] = optimize_level;
        out["use_fast_math"] = fast_math;
        out["debug_info"] = debug_info;
        out["dump_asm"] = dump_asm;
        out["arch"] = arch;
        out["compiler_flags"] = compiler_flags;
        out["extra_compiler_flags"] = extra_compiler_flags;
        return out;
    }
};

struct LaunchOptions {
    std::optional<Stream> stream = {};       ///< unset: the process's default stream
    std::optional<int> num_smem_bytes = {};  ///< dynamic shared memory of a block, in bytes
    std::optional<dim3> grid_dim = {};       ///< blocks; required
    std::optional<dim3> block_dim = {};      ///< threads of a block; required, at most 1024
    std::optional<int> num_threads = {};     ///< CPU threads; unset: the CPUs this process may use

    /// `JIT_NUM_THREADS` sets `num_threads`. Throws ConfigError for an invalid value.
    static LaunchOptions default_options(const Env& env) {
        LaunchOptions out;
        out.num_smem_bytes = 0;
        out.num_threads = env.get<int>("JIT_NUM_THREADS");
        return out;
    }

    static constexpr auto fields() {
        using O = LaunchOptions;
        return std::tuple(&O::stream, &O::num_smem_bytes, &O::grid_dim, &O::block_dim,
                          &O::num_threads);
    }

    LaunchOptions override_with(const LaunchOptions& over) const {
        return override_options(*this, over);
    }
};

}  // namespace deep_jit::host
