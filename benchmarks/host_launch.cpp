// What a launch of the Host backend costs beside plain C++: an empty kernel, small and large grids,
// barriers.
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <deep_jit/backend/host/backend.hpp>

#include "report.hpp"
#include "temporary_cache.hpp"

namespace {

using Runtime = deep_jit::Runtime<deep_jit::Host>;

constexpr const char* kEmpty = "extern \"C\" __global__ void empty(int) {}\n";
constexpr const char* kScale = R"(
extern "C" __global__ void scale(float* output, const float* input, int count) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * 2.0f;
}
)";
constexpr const char* kBarriers = R"(
extern "C" __global__ void barriers(int* output, int count) {
    int value = static_cast<int>(threadIdx.x);
    for (int i = 0; i < count; ++i) {
        value ^= i;
        __syncthreads();
    }
    output[threadIdx.x] = value;
}
)";

/// The same in plain C++. Not inlined, as the kernel is not.
[[gnu::noinline]] void scale_loop(float* output, const float* input, int begin, int end) {
    for (int i = begin; i < end; ++i) output[i] = input[i] * 2.0f;
}

void scale_with_threads(float* output, const float* input, int count, int num_threads) {
    std::vector<std::thread> threads;
    for (int t = 0; t < num_threads; ++t)
        threads.emplace_back(scale_loop, output, input, count / num_threads * t,
                             t + 1 == num_threads ? count : count / num_threads * (t + 1));
    for (auto& thread : threads) thread.join();
}

void wait() { deep_jit::host::Stream::default_stream().synchronize(); }

void measure_empty(benchmarks::Report& report, Runtime& jit) {
    const auto kernel = jit.compile("empty", kEmpty);
    const auto launch = [&] { jit.launch(kernel, {.grid_dim = dim3(1), .block_dim = dim3(1)}, 0); };
    report.add("empty kernel: launch and synchronize", benchmarks::samples(51, 200, [&] {
                   launch();
                   wait();
               }));
    std::vector<double> queued;
    for (int i = 0; i < 51; ++i) {
        constexpr int kLaunches = 1000;
        queued.push_back(benchmarks::time_of([&] {
                             for (int n = 0; n < kLaunches; ++n) launch();
                             wait();
                         }) /
                         kLaunches);
    }
    report.add("empty kernel: one of 1000 launches in a row", queued);
}

void measure_grid(benchmarks::Report& report, Runtime& jit, int blocks, int calls) {
    const auto kernel = jit.compile("scale", kScale);
    const int count = blocks * 256;
    const std::vector<float> input(static_cast<std::size_t>(count), 1.5f);
    std::vector<float> output(input.size());
    float* const out = output.data();
    const float* const in = input.data();
    const auto name = "scale, " + std::to_string(blocks) + " x 256 threads: ";
    const int cpus = jit.device.get_num_sms();
    const double loop =
        report.add(name + "plain loop",
                   benchmarks::samples(31, calls, [&] { scale_loop(out, in, 0, count); }));
    report.add(name + "std::thread for each CPU",
               benchmarks::samples(31, std::min(calls, 100),
                                   [&] { scale_with_threads(out, in, count, cpus); }),
               loop, "plain loop");
    report.add(name + "launch, one thread",
               benchmarks::samples(31, calls,
                                   [&] {
                                       jit.launch(kernel,
                                                  {.grid_dim = dim3(unsigned(blocks)),
                                                   .block_dim = dim3(256),
                                                   .num_threads = 1},
                                                  out, in, count);
                                       wait();
                                   }),
               loop, "plain loop");
    report.add(name + "launch",
               benchmarks::samples(31, calls,
                                   [&] {
                                       jit.launch(kernel,
                                                  {.grid_dim = dim3(unsigned(blocks)),
                                                   .block_dim = dim3(256)},
                                                  out, in, count);
                                       wait();
                                   }),
               loop, "plain loop");
}

/// Cost of one thread at one barrier: the difference between many barriers and none.
void measure_barriers(benchmarks::Report& report, Runtime& jit) {
    const auto kernel = jit.compile("barriers", kBarriers);
    for (const int threads : {32, 256, 1024}) {
        std::vector<int> output(static_cast<std::size_t>(threads));
        const auto run = [&](int count) {
            return benchmarks::median(benchmarks::samples(31, 10, [&] {
                jit.launch(kernel,
                           {.grid_dim = dim3(1), .block_dim = dim3(static_cast<unsigned>(threads))},
                           output.data(), count);
                wait();
            }));
        };
        constexpr int kBarrierCount = 100;
        const double without = run(0);
        report.add("barrier, a thread of a block of " + std::to_string(threads),
                   (run(kBarrierCount) - without) / kBarrierCount / threads);
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        benchmarks::Report report(argc, argv);
        const benchmarks::TemporaryCache cache;
        Runtime jit(deep_jit::Config("/", "BENCHMARK"));
        std::printf("%d CPUs\n", jit.device.get_num_sms());
        measure_empty(report, jit);
        measure_grid(report, jit, 1, 200);
        measure_grid(report, jit, 64, 200);
        measure_grid(report, jit, 16384, 3);
        measure_barriers(report, jit);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
