// What the tests of the Host backend share: a cache root of their own, a compiler that counts how
// often it runs, and short ways to compile and launch.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <deep_jit/backend/host/backend.hpp>

#include "../support.hpp"

namespace deep_jit_test {

using HostJit = deep_jit::Runtime<deep_jit::Host>;
using HostKernel = std::shared_ptr<deep_jit::host::Kernel>;
using HostOptions = deep_jit::host::CompilerOptions;
using HostLaunch = deep_jit::host::LaunchOptions;
using HostStream = deep_jit::host::Stream;

/// The kernel of the README, as it stands there.
inline constexpr const char* kScaleSource = R"(
extern "C" __global__ void scale(float* output, const float* input, int count) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * 2.0f;
}
)";

/// A kernel that writes `value`; a different source, and so a different key, for each.
inline std::string store_source(int value) {
    return "__global__ void store(int* out) { *out = " + std::to_string(value) + "; }\n";
}

/// Launches one block of one thread and waits.
template <typename... Args>
void run_once(const HostJit& jit, const HostKernel& kernel, const Args&... args) {
    const HostStream stream;
    jit.launch(kernel, {.stream = stream, .grid_dim = dim3(1, 1, 1), .block_dim = dim3(1, 1, 1)},
               args...);
    stream.synchronize();
}

/// What a kernel of the form of `store_source` writes.
inline int stored_by(const HostJit& jit, const HostKernel& kernel) {
    int value = -1;
    run_once(jit, kernel, &value);
    return value;
}

/// Whether the kernel of kScaleSource gives the right numbers.
inline bool scales(const HostJit& jit, const HostKernel& kernel) {
    const int count = 1000;
    std::vector<float> input(count), output(count, -1.0f);
    for (int i = 0; i < count; ++i) input[i] = 0.25f * static_cast<float>(i);
    const HostStream stream;
    jit.launch(kernel, {.stream = stream, .grid_dim = dim3(8, 1, 1), .block_dim = dim3(128, 1, 1)},
               output.data(), static_cast<const float*>(input.data()), count);
    stream.synchronize();
    for (int i = 0; i < count; ++i)
        if (output[i] != static_cast<float>(i) / 2.0f)
            return false;
    return true;
}

/// A compiler script that notes what it is called for and calls the real one.
class CountingCompiler {
public:
    /// `before`: shell lines that run first; `$kind` is identity, compile or link.
    explicit CountingCompiler(const fs::path& path, std::string_view before = "",
                              std::string_view real = "c++")
        : path_(path), log_(path.string() + ".log") {
        make_script(path,
                    "#!/bin/sh\nkind=other\nfor argument in \"$@\"; do\n"
                    "  case $argument in\n    --version | -dumpmachine) kind=identity ;;\n"
                    "    -c) kind=compile ;;\n    -shared) kind=link ;;\n  esac\ndone\n"
                    "echo $kind >>" +
                        deep_jit::str::quote(log_.string()) + "\n" + std::string(before) +
                        "\nexec " + std::string(real) + " \"$@\"\n");
    }

    std::string path() const { return path_.string(); }
    std::size_t compiles() const { return count("compile"); }
    std::size_t links() const { return count("link"); }
    std::size_t identities() const { return count("identity"); }
    std::size_t runs() const { return fs::exists(log_) ? count_of(slurp(log_), "\n") : 0; }
    void reset() const { fs::remove(log_); }

private:
    std::size_t count(const std::string& kind) const {
        return fs::exists(log_) ? count_of(slurp(log_), kind + "\n") : 0;
    }

    fs::path path_;
    fs::path log_;
};

/// A test with a cache root, a home and a temporary directory of its own, all oddly named, and no
/// settings from outside.
class HostTest : public testing::Test {
protected:
    deep_jit::Config config(std::string signature = "") const {
        return {dir_.path(), "HOSTTEST", std::move(signature), include_dirs_, {"tracked/"}};
    }
    HostJit make() const { return HostJit(config()); }

    std::string log() const {
        return fs::exists(dir_ / "log") ? slurp(dir_ / "log") : std::string();
    }
    fs::path entry_of(HostJit& jit, const std::string& tag, std::string_view source,
                      const HostOptions& options = {}) const {
        return root_ / "cache" / (tag + "." + jit.cache_key(source, options));
    }
    std::vector<std::string> entries() const { return names_in(root_ / "cache"); }

    TempDir dir_;
    fs::path root_ = dir_ / "root";
    std::vector<fs::path> include_dirs_;

    ScopedEnv cache_env_{"DJ_JIT_CACHE_DIR", root_.string()};
    ScopedEnv home_env_{"HOME", (dir_ / "home").string()};
    ScopedEnv tmp_env_{"TMPDIR", make_dir("tmp")};
    ScopedEnv log_env_{"DJ_JIT_LOG_FILE", (dir_ / "log").string()};
    ScopedEnv compiler_env_{"DJ_JIT_HOST_COMPILER"};
    ScopedEnv cxx_env_{"CXX"};
    ScopedEnv debug_env_{"DJ_JIT_DEBUG"};

private:
    std::string make_dir(const char* name) const {
        fs::create_directories(dir_ / name);
        return (dir_ / name).string();
    }
};

}  // namespace deep_jit_test
