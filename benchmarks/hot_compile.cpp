// What compile() costs for a kernel that is in memory: by the size of the source, with and without
// options, by the number of kernels loaded, by the number of threads. The kernels are of a backend
// that compiles nothing; a hot compile() never gets to the backend.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <vector>

#include "null_backend.hpp"
#include "report.hpp"
#include "temporary_cache.hpp"

namespace {

thread_local std::int64_t allocations = 0;

}  // namespace

// Not inlined, or GCC takes malloc and free for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size))
        return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using Runtime = deep_jit::Runtime<benchmarks::NullBackend>;
using Options = benchmarks::NullCompilerOptions;

/// A runtime with `count` kernels of `bytes` bytes each.
struct Loaded {
    Loaded(std::size_t bytes, std::size_t count, const Options& options)
        : runtime(deep_jit::Config("/", "BENCHMARK")) {
        for (std::size_t i = 0; i < count; ++i) {
            // As generated sources are: alike, and different somewhere in the middle.
            std::string source(bytes, ' ');
            for (std::size_t at = 0; at < bytes; ++at)
                source[at] = static_cast<char>('a' + at * 7 % 23);
            source.replace(bytes / 2, 8, deep_jit::str::to_hex(i).substr(8));
            sources.push_back(std::move(source));
            runtime.compile("kernel", sources.back(), options);
        }
    }
    Runtime runtime;
    std::vector<std::string> sources;
};

/// Made once for each set of parameters, before the threads start.
Loaded& loaded(std::size_t bytes, std::size_t count, bool with_options) {
    static std::map<std::tuple<std::size_t, std::size_t, bool>, std::unique_ptr<Loaded>> all;
    auto& slot = all[{bytes, count, with_options}];
    if (slot == nullptr) {
        Options options;
        if (with_options)
            options = {.optimize_level = "2", .extra_flags = {"-DTILE=128", "-DSTAGES=4"}};
        slot = std::make_unique<Loaded>(bytes, count, options);
    }
    return *slot;
}

Loaded* current = nullptr;

void prepare(const benchmark::State& state) {
    current = &loaded(static_cast<std::size_t>(state.range(0)),
                      static_cast<std::size_t>(state.range(2)), state.range(1) != 0);
}

/// One kernel again and again, or, with `cycle`, all that are loaded in turn.
void hot_compile(benchmark::State& state, bool cycle) {
    auto& runtime = current->runtime;
    const auto& sources = current->sources;
    Options options;
    if (state.range(1) != 0)
        options = {.optimize_level = "2", .extra_flags = {"-DTILE=128", "-DSTAGES=4"}};
    std::size_t next = sources.size() / 2;
    const auto before = allocations;
    for (auto _ : state) {
        benchmark::DoNotOptimize(runtime.compile("kernel", sources[next], options));
        if (cycle && ++next == sources.size())
            next = 0;
    }
    state.counters["allocations"] = benchmark::Counter(static_cast<double>(allocations - before),
                                                       benchmark::Counter::kAvgIterations);
    state.SetItemsProcessed(state.iterations());
}

void sizes(benchmark::internal::Benchmark* it) {
    it->ArgNames({"bytes", "options", "loaded"})->Setup(prepare);
    for (const int options : {0, 1})
        for (const int bytes : {128, 512, 2048, 8192}) it->Args({bytes, options, 1});
}
void table(benchmark::internal::Benchmark* it) {
    it->ArgNames({"bytes", "options", "loaded"})->Setup(prepare);
    for (const int count : {1, 100, 1000}) it->Args({512, 0, count});
}
void threads(benchmark::internal::Benchmark* it) {
    it->ArgNames({"bytes", "options", "loaded"})->Setup(prepare)->UseRealTime();
    it->Args({512, 0, 100});
    for (const int count : {1, 2, 8}) it->Threads(count);
}

BENCHMARK_CAPTURE(hot_compile, size, false)->Apply(sizes);
BENCHMARK_CAPTURE(hot_compile, table, false)->Apply(table);
BENCHMARK_CAPTURE(hot_compile, cycle, true)->Apply(table);
BENCHMARK_CAPTURE(hot_compile, threads, false)->Apply(threads);

/// Prints the medians of repeated runs, which is all that is of interest.
class MedianReporter : public benchmark::BenchmarkReporter {
public:
    explicit MedianReporter(benchmarks::Report& report) : report_(report) {}
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const auto& run : runs) {
            if (run.run_type != Run::RT_Aggregate || run.aggregate_name != "median")
                continue;
            report_.add(run.run_name.str(), run.GetAdjustedRealTime());
            if (run.counters.at("allocations").value > 0)
                report_.add_number("  allocations a call", run.counters.at("allocations").value,
                                   "");
        }
    }

private:
    benchmarks::Report& report_;
};

}  // namespace

int main(int argc, char** argv) {
    const benchmarks::TemporaryCache cache;
    benchmarks::Report report(argc, argv);
    // What the caller says comes last, and counts.
    std::vector<char*> arguments{argv[0]};
    std::string defaults[] = {"--benchmark_repetitions=5", "--benchmark_min_time=0.1",
                              "--benchmark_report_aggregates_only=true"};
    for (auto& argument : defaults) arguments.push_back(argument.data());
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data()))
        return 1;
    MedianReporter medians(report);
    benchmark::RunSpecifiedBenchmarks(&medians);
    benchmark::Shutdown();
    return 0;
}
