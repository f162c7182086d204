// What a kernel costs the first time: compiled, or found on disk; each beside what cannot be
// avoided, in the same run. Host backend.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <deep_jit/backend/host/backend.hpp>

#include "report.hpp"
#include "temporary_cache.hpp"

namespace {

namespace fs = std::filesystem;
using Runtime = deep_jit::Runtime<deep_jit::Host>;

constexpr int kKernels = 15;

/// Never the same twice.
std::string new_source() {
    static int count = 0;
    return "extern \"C\" __global__ void scale(float* output, const float* input, int count) {\n"
           "    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);\n"
           "    if (index < count)\n"
           "        output[index] = input[index] * " +
           std::to_string(++count) + ".0f;\n}\n";
}

/// The compiler as one would call it by hand for the same library.
void compile_by_hand(const Runtime& runtime, const fs::path& directory, const std::string& source) {
    fs::create_directories(directory);
    deep_jit::write_file_sync(directory / "kernel.cpp", deep_jit::host::prelude_text() + source +
                                                            deep_jit::host::entry_text("scale"));
    std::vector<std::string> command{runtime.backend.compiler_info.path.get().string()};
    for (const auto& flag : runtime.default_compiler_options.get_flags()) command.push_back(flag);
    for (const char* argument :
         {"-fPIC", "-fvisibility=hidden", "-shared", "kernel.cpp", "-o", "kernel.so"})
        command.emplace_back(argument);
    if (const auto result = deep_jit::call_external_command(command, directory); !result.ok())
        throw std::runtime_error(result.output);
}

void measure_cold(benchmarks::Report& report, const deep_jit::Config& config,
                  const fs::path& scratch) {
    Runtime runtime(config);
    runtime.compile("scale", new_source());
    std::vector<double> by_hand, cold;
    for (int i = 0; i < kKernels; ++i) {
        const auto source = new_source();
        by_hand.push_back(benchmarks::time_of(
            [&] { compile_by_hand(runtime, scratch / std::to_string(i), source); }));
        cold.push_back(benchmarks::time_of([&] { runtime.compile("scale", source); }));
    }
    const double reference = report.add("cold: the bare compiler", by_hand);
    report.add("cold: compile()", cold, reference, "the bare compiler");
}

void measure_disk_hits(benchmarks::Report& report, const deep_jit::Config& config) {
    std::vector<std::string> sources;
    std::vector<fs::path> libraries;
    Runtime writer(config);
    for (int i = 0; i < kKernels; ++i) {
        sources.push_back(new_source());
        libraries.push_back(writer.compile_without_load("scale", sources.back()) / "kernel.so");
    }
    std::vector<double> bare, hits, construction, first;
    for (int round = 0; round < 20; ++round) {
        for (const auto& library : libraries) {
            void* handle = nullptr;
            bare.push_back(benchmarks::time_of([&] {
                handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
                ::dlsym(handle, deep_jit::host::abi::kEntryName);
            }));
            ::dlclose(handle);
        }
        std::optional<Runtime> runtime;
        const double made = benchmarks::time_of([&] { runtime.emplace(config); });
        construction.push_back(made);
        for (std::size_t i = 0; i < sources.size(); ++i) {
            const double hit = benchmarks::time_of([&] { runtime->compile("scale", sources[i]); });
            // The first one asks who the compiler is.
            if (i == 0)
                first.push_back(made + hit);
            else
                hits.push_back(hit);
        }
    }
    const double reference = report.add("disk: bare dlopen and dlsym of the library", bare);
    report.add("disk: compile() of what another process compiled", hits, reference,
               "the bare dlopen");
    report.add("construction of a runtime", construction);
    report.add("construction and the first disk hit", first, reference, "the bare dlopen");
}

}  // namespace

int main(int argc, char** argv) {
    try {
        benchmarks::Report report(argc, argv);
        const benchmarks::TemporaryCache cache;
        const deep_jit::Config config("/", "BENCHMARK");
        measure_cold(report, config, cache.path() / "by_hand");
        measure_disk_hits(report, config);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
