// Texts that the CUDA backend reads or rewrites: the version that NVCC tells, the architecture that
// people set, definitions on their way through NVCC's shell, the includes that a source begins
// with.
#include <stdlib.h>

#include <deep_jit/backend/cuda/nvcc.hpp>
#include <deep_jit/backend/cuda/nvrtc_pch.hpp>

#include "fuzz.hpp"

using deep_jit::ConfigError;
using deep_jit::ToolchainError;
using namespace deep_jit_fuzz;
namespace cuda = deep_jit::cuda;

namespace {

bool is_new_enough(const std::string& version) {
    return succeeds<ToolchainError>([&] { cuda::check_nvcc_version("nvcc", version); });
}

/// What a shell makes of a word in double quotes that the flag is put into.
std::string as_a_shell_reads(const std::string& flag) {
    std::string out;
    for (std::size_t i = 0; i < flag.size();) {
        if (flag.compare(i, 17, "${DJ_NVCC_DOLLAR}") == 0) {
            out += '$';
            i += 17;
        } else if (flag.compare(i, 20, "${DJ_NVCC_BACKQUOTE}") == 0) {
            out += '`';
            i += 20;
        } else {
            require(flag[i] != '$' && flag[i] != '`', "a shell finds nothing to replace");
            out += flag[i++];
        }
    }
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(text_of(data, size));
    is_new_enough(text);
    if (!contains(text, "release ")) {
        require(!is_new_enough(text), "a text without a release is no version");
        require(is_new_enough(text + "\nrelease 12.9, V12.9.41\n"), "12.9 is new enough");
        require(is_new_enough(text + "\nrelease 13.0, V13.0.88\n"), "13.0 is new enough");
        require(!is_new_enough(text + "\nrelease 12.8, V12.8.93\n"), "12.8 is not");
        require(!is_new_enough(text + "\nrelease 11.10\n"), "11.10 is not");
    }

    const auto directives = cuda::nvrtc::detail::leading_directives(text);
    require(text.starts_with(directives), "leading directives are at the start");
    require(directives.empty() || contains(directives, "include"), "and include something");

    const std::string value = text.substr(0, text.find('\0'));
    ::setenv("FUZZ_JIT_ARCH", value.c_str(), 1);
    const cuda::Device device;
    succeeds<ConfigError>([&] {
        const auto options = cuda::CompilerOptions::default_options(deep_jit::Env("FUZZ"), device);
        require(options.arch.has_value() != value.empty(), "empty means unset");
        if (options.arch)
            require(contains(value, *options.arch) &&
                        options.get_flags().front() == "--gpu-architecture=sm_" + *options.arch,
                    "an architecture is taken as it was given");
    });

    const std::vector<std::string> flags{"-DX=" + value, "-D", value, "-O3", value + "$"};
    std::vector<std::string> environment;
    const auto out = cuda::detail::protect_definitions(flags, environment);
    require(out.size() == flags.size(), "each flag stays one");
    for (const std::size_t i : {0, 2})
        require(as_a_shell_reads(out[i]) == flags[i], "a definition arrives as it was given");
    require(out[3] == "-O3", "other flags stay as they are");
    return 0;
}
