// What a cache key costs: a source that includes a tree of 800 tracked headers, 10 MB together.
#include <cstdio>
#include <filesystem>
#include <string>

#include "null_backend.hpp"
#include "report.hpp"
#include "temporary_cache.hpp"

namespace {

using Runtime = deep_jit::Runtime<benchmarks::NullBackend>;

constexpr int kFiles = 800;
constexpr std::size_t kBytes = 10'000'000 / kFiles;

std::string name_of(int index) { return "tree/header_" + std::to_string(index) + ".cuh"; }

std::string include_of(int index) {
    return index < kFiles ? "#include <" + name_of(index) + ">\n" : std::string();
}

/// Header i includes 3i + 1 to 3i + 3 and, as real trees do, two that others include as well.
void write_tree(const std::filesystem::path& root) {
    std::filesystem::create_directories(root / "tree");
    for (int i = 0; i < kFiles; ++i) {
        std::string text = "#pragma once\n";
        for (int child = 1; child <= 3; ++child) text += include_of(3 * i + child);
        text += include_of(i + kFiles / 3) + include_of(i + kFiles / 2);
        for (int line = 0; text.size() < kBytes; ++line)
            text += "template <int N> __device__ float function_" + std::to_string(i) + "_" +
                    std::to_string(line) + "(float x) { return x * N; }\n";
        deep_jit::write_file_sync(root / name_of(i), text);
    }
}

}  // namespace

int main(int argc, char** argv) {
    benchmarks::Report report(argc, argv);
    const benchmarks::TemporaryCache cache;
    const auto root = cache.path() / "include";
    write_tree(root);
    const deep_jit::Config config("/", "BENCHMARK", "", {root}, {"tree/"});
    const std::string source = include_of(0) + "__global__ void kernel(float* x) { *x = 1; }\n";

    std::string all;
    const double reading =
        report.add("read 800 files (10 MB), no more", benchmarks::samples(15, 1, [&] {
                       all.clear();
                       std::string text;
                       for (int i = 0; i < kFiles; ++i) {
                           deep_jit::try_read(root / name_of(i), text);
                           all += text;
                       }
                   }));
    const double hashing =
        report.add("digest of 10 MB in memory",
                   benchmarks::samples(15, 1, [&] { deep_jit::hash::get_hex_digest(all); }));

    report.add("key, cold: a new runtime",
               benchmarks::samples(15, 1, [&] { Runtime(config).cache_key(source); }),
               reading + hashing, "reading and digesting alone");
    Runtime runtime(config);
    const auto key = runtime.cache_key(source);
    report.add("key, warm: the same runtime",
               benchmarks::samples(15, 1000, [&] { runtime.cache_key(source); }));
    report.add("key, warm: another source with the same headers",
               benchmarks::samples(15, 1000, [&, n = 0]() mutable {
                   runtime.cache_key(source + std::to_string(n++));
               }));
    if (Runtime(config).cache_key(source) != key) {
        std::puts("keys differ");
        return 1;
    }
    return 0;
}
