// What both halves of the example share.
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <deep_jit/runtime/config.hpp>

/// The kernel. The Host and the CUDA backend take the same text.
inline constexpr const char* kScaleSource = R"(
extern "C" __global__ void scale(float* output, const float* input, int count) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * 2.0f;
}
)";

inline constexpr int kCount = 1'000'000;

inline std::vector<float> make_input() {
    std::vector<float> input(kCount);
    for (int i = 0; i < kCount; ++i) input[i] = 0.25f * static_cast<float>(i % 4099);
    return input;
}

inline bool check(const char* backend, const std::vector<float>& input,
                  const std::vector<float>& output) {
    for (int i = 0; i < kCount; ++i)
        if (output[i] != input[i] * 2.0f) {
            std::printf("%s: WRONG at %d: %g * 2 is not %g\n", backend, i, input[i], output[i]);
            return false;
        }
    std::printf("%s: scaled %d floats, the result is right\n", backend, kCount);
    return true;
}

class Timer {
public:
    double milliseconds() const {
        return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
    }

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point start_ = Clock::now();
};

/// Prints how long `compile` takes: cold, from disk, and from memory.
template <typename Jit>
void time_compilation(const char* backend, const deep_jit::Config& config) {
    const auto find_entry = [](Jit& jit) -> std::string {
        const auto name = "scale." + jit.cache_key(kScaleSource);
        for (const auto& root : jit.disk_cache.paths)
            if (std::filesystem::exists(root / "cache" / name))
                return root / "cache" / name;
        return "";
    };

    const Timer first;
    Jit jit(config);
    const bool cold = find_entry(jit).empty();
    jit.compile("scale", kScaleSource);
    const double first_ms = first.milliseconds();

    const Timer second;
    Jit(config).compile("scale", kScaleSource);
    const double second_ms = second.milliseconds();

    constexpr int kRepeats = 100'000;
    const Timer repeated;
    for (int i = 0; i < kRepeats; ++i) jit.compile("scale", kScaleSource);
    const double memory_ns = repeated.milliseconds() * 1e6 / kRepeats;

    const auto entry = find_entry(jit);
    std::printf("%s: entry       %s\n", backend, entry.empty() ? "(not kept)" : entry.c_str());
    if (cold)
        std::printf("%s: cold        %9.3f ms: the compiler ran\n", backend, first_ms);
    else
        std::printf("%s: first use   %9.3f ms: compiled nothing, the entry was there\n", backend,
                    first_ms);
    std::printf("%s: disk hit    %9.3f ms: another runtime of this process\n", backend, second_ms);
    std::printf("%s: memory hit  %9.0f ns: the same runtime again\n", backend, memory_ns);
}
