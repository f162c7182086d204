// What the tests with the real NVRTC share. They need no GPU.
#pragma once

#include <string>
#include <vector>

#include <deep_jit/backend/cuda/backend.hpp>

#include "unit/support.hpp"

namespace deep_jit_test {

class CudaNvrtc : public testing::Test {
protected:
    explicit CudaNvrtc(std::string_view name = "plain") : temp(name) {}

    void SetUp() override {
        try {
            library = deep_jit::cuda::find_nvrtc(deep_jit::Env("CUDATEST"));
            deep_jit::cuda::nvrtc::Api::open(library.path);
        } catch (const deep_jit::ToolchainError& error) {
            GTEST_SKIP() << error.what();
        }
        log.set((temp / "log").string());
        cache.set((temp / "cache").string());
    }

    deep_jit::Runtime<deep_jit::CUDA> make(std::vector<fs::path> include_dirs = {},
                                           std::vector<std::string> prefixes = {}) const {
        return deep_jit::Runtime<deep_jit::CUDA>(deep_jit::Config(
            temp.path(), "CUDATEST", "", std::move(include_dirs), std::move(prefixes)));
    }
    fs::path compile(std::string_view source,
                     const deep_jit::cuda::CompilerOptions& options = {}) const {
        return make().compile_without_load("kernel", source, options);
    }
    std::string ptx_of(std::string_view source,
                       deep_jit::cuda::CompilerOptions options = {}) const {
        options.dump_ptx = true;
        return slurp(compile(source, options) / "kernel.ptx");
    }
    std::string compile_failure(std::string_view source,
                                const deep_jit::cuda::CompilerOptions& options = {}) const {
        return message_of<deep_jit::CompileError>([&] { compile(source, options); });
    }
    std::string logged() const { return fs::exists(temp / "log") ? slurp(temp / "log") : ""; }
    bool has_cccl() const {
        for (const auto& directory : library.include_dirs)
            if (fs::exists(directory / "cuda/std/cstdint"))
                return true;
        return false;
    }

    TempDir temp;
    deep_jit::cuda::NvrtcLibrary library;
    ScopedEnv cache{"CUDATEST_JIT_CACHE_DIR"}, log{"CUDATEST_JIT_LOG_FILE"};
    ScopedEnv arch{"CUDATEST_JIT_ARCH", "90a"}, compiler{"CUDATEST_JIT_COMPILER", "nvrtc"};
};

inline constexpr const char* kNvrtcScale = R"(
extern "C" __global__ void scale(float* output, const float* input, int count) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * 2.0f;
}
)";

}  // namespace deep_jit_test
