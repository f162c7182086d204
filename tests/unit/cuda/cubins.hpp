// CUBINs for tests: made by the real NVCC, once a source, and kept for later runs.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <deep_jit/backend/cuda/toolkit.hpp>
#include <deep_jit/utils/command.hpp>
#include <deep_jit/utils/hash.hpp>
#include <deep_jit/utils/uuid.hpp>

#include "unit/support.hpp"

namespace deep_jit_test {

/// Where they are kept.
inline fs::path cubin_directory() { return DEEP_JIT_TEST_CUBINS; }

/// The CUBIN of `source` for sm_<arch>. Throws ToolchainError where there is no NVCC.
inline std::string cubin_of(const std::string& source, const std::string& arch = "90a",
                            const std::vector<std::string>& flags = {}) {
    const auto nvcc = deep_jit::cuda::find_cuda_toolkit(deep_jit::Env("CUBINS")).nvcc;
    deep_jit::hash::FNV1a hash;
    // Another compiler has another time.
    const auto time = fs::last_write_time(nvcc).time_since_epoch().count();
    for (const auto& part : {nvcc.string(), deep_jit::str::to_text(time), arch, source})
        hash.update(part + '\0');
    for (const auto& flag : flags) hash.update(flag + '\0');
    const auto kept = cubin_directory() / (hash.get_hex_digest() + ".cubin");
    if (fs::exists(kept))
        return slurp(kept);

    const TempDir temp("cubin");
    write(temp / "kernel.cu", source);
    std::vector<std::string> command = {nvcc.string(),  "kernel.cu",  "--cubin",         "-o",
                                        "kernel.cubin", "-std=c++20", "-arch=sm_" + arch};
    command.insert(command.end(), flags.begin(), flags.end());
    const auto result = deep_jit::call_external_command(command, temp.path());
    if (!result.ok())
        throw std::runtime_error("NVCC failed:\n" + result.output);
    const auto bytes = slurp(temp / "kernel.cubin");
    // Several tests may do this at once.
    const auto unfinished = kept.string() + "." + deep_jit::get_uuid();
    write(unfinished, bytes);
    fs::rename(unfinished, kept);
    return bytes;
}

/// True where CUBINs can be made.
inline bool have_nvcc() {
    try {
        deep_jit::cuda::find_cuda_toolkit(deep_jit::Env("CUBINS"));
        return true;
    } catch (const deep_jit::ToolchainError&) {
        return false;
    }
}

}  // namespace deep_jit_test
