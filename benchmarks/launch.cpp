// What compiling, loading and launching cost on a GPU, each beside the bare driver call or the
// bare compiler in the same run.   usage: bench_launch [--json=FILE] [ROUNDS]
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "launch_kernels.hpp"
#include "rounds.hpp"
#include "temporary_cache.hpp"

namespace {

namespace driver = deep_jit::cuda::driver;
using benchmarks::BareLaunch;
using benchmarks::KernelPointer;
using benchmarks::Rounds;
using JIT = deep_jit::Runtime<deep_jit::CUDA>;

/// Launches between two synchronizations: fewer than the driver queues.
constexpr int kBatch = 256;

const benchmarks::Around kDrain{
    .after = [] { DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxSynchronize()); }};

CUstream provided = nullptr;

/// What the launches work with.
struct Setting {
    CUstream stream = nullptr;
    float* out = nullptr;
    const float* in = nullptr;
    int count = 1;
    float factor = 2;

    Setting() {
        CUdeviceptr memory = 0;
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuMemAlloc(&memory, 256));
        DJ_CUDA_DRIVER_CHECK(driver::lazy_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        in = out = reinterpret_cast<float*>(memory);
        provided = stream;
    }
    std::vector<void*> arguments() { return {&out, &in, &count, &factor}; }
};

/// Launches of a kernel of four arguments with `options()`, made at each call as users write it.
template <typename Options>
void add_launch(Rounds& rounds, const std::string& name, const std::string& reference, JIT& jit,
                const KernelPointer& kernel, Setting& s, Options options,
                benchmarks::Around around = kDrain) {
    rounds.add(
        name, reference, kBatch,
        [&jit, kernel, &s, options] {
            jit.launch(kernel, options(), s.out, s.in, s.count, s.factor);
        },
        std::move(around));
}

void add_plain(Rounds& rounds, JIT& jit, const KernelPointer& four, Setting& s) {
    rounds.add("bare", "", kBatch, BareLaunch(four, s.stream, s.arguments()), kDrain);
    add_launch(rounds, "launch()", "bare", jit, four, s, [&s] {
        return deep_jit::cuda::LaunchOptions{
            .stream = s.stream, .grid_dim = dim3(1), .block_dim = dim3(32)};
    });
    rounds.add(
        "compile() and launch()", "bare", kBatch,
        [&jit, &s, source = benchmarks::source_of_four()] {
            jit.launch(jit.compile("four", source),
                       {.stream = s.stream, .grid_dim = dim3(1), .block_dim = dim3(32)}, s.out,
                       s.in, s.count, s.factor);
        },
        kDrain);
    const auto without_stream = [] {
        return deep_jit::cuda::LaunchOptions{.grid_dim = dim3(1), .block_dim = dim3(32)};
    };
    rounds.add("bare, default stream", "", kBatch, BareLaunch(four, nullptr, s.arguments()),
               kDrain);
    add_launch(rounds, "current stream, no provider", "bare, default stream", jit, four, s,
               without_stream);
    add_launch(
        rounds, "current stream, of a provider", "bare", jit, four, s, without_stream,
        {.before = [] { deep_jit::cuda::set_current_stream_provider([] { return provided; }); },
         .after =
             [] {
                 deep_jit::cuda::set_current_stream_provider(nullptr);
                 kDrain.after();
             }});
}

/// With kCount integers as arguments.
template <std::size_t... I>
void add_ints(Rounds& rounds, JIT& jit, Setting& s, std::index_sequence<I...>) {
    static std::array<int, sizeof...(I) + 1> values{};
    const auto kernel = jit.compile("ints", benchmarks::source_of_ints(sizeof...(I)));
    const auto name = std::to_string(sizeof...(I)) + " arguments";
    rounds.add("bare, " + name, "", kBatch,
               BareLaunch(kernel, s.stream, std::vector<void*>{&values[I]...}), kDrain);
    rounds.add(
        "launch(), " + name, "bare, " + name, kBatch,
        [&jit, &s, kernel] {
            jit.launch(kernel, {.stream = s.stream, .grid_dim = dim3(1), .block_dim = dim3(32)},
                       values[I]...);
        },
        kDrain);
}

void add_shared_memory(Rounds& rounds, JIT& jit, Setting& s, int kibibytes) {
    const int bytes = kibibytes * 1024;
    // A kernel of its own: the first launch raises its limit, for the bare call too.
    const auto kernel =
        jit.compile("four", benchmarks::source_of_four(0, "smem" + std::to_string(kibibytes)));
    const auto options = [&s, bytes] {
        return deep_jit::cuda::LaunchOptions{.stream = s.stream,
                                             .num_smem_bytes = bytes,
                                             .grid_dim = dim3(1),
                                             .block_dim = dim3(32)};
    };
    jit.launch(kernel, options(), s.out, s.in, s.count, s.factor);
    const auto name = std::to_string(kibibytes) + " KiB shared memory";
    rounds.add("bare, " + name, "", kBatch,
               BareLaunch(kernel, s.stream, s.arguments(), 1, static_cast<unsigned int>(bytes)),
               kDrain);
    add_launch(rounds, "launch(), " + name, "bare, " + name, jit, kernel, s, options);
}

void add_attributes(Rounds& rounds, JIT& jit, const KernelPointer& four, Setting& s) {
    const auto add = [&](const std::string& name, const BareLaunch& bare, auto options) {
        rounds.add("bare, " + name, "", kBatch, bare, kDrain);
        add_launch(rounds, "launch(), " + name, "bare, " + name, jit, four, s, options);
    };
    CUlaunchAttributeValue value{};
    value.clusterDim.x = 2;
    value.clusterDim.y = value.clusterDim.z = 1;
    add("cluster of 2",
        BareLaunch(four, s.stream, s.arguments(), 2)
            .with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value),
        [&s] {
            return deep_jit::cuda::LaunchOptions{.stream = s.stream,
                                                 .grid_dim = dim3(2),
                                                 .block_dim = dim3(32),
                                                 .cluster_dim = dim3(2)};
        });
    std::memset(&value, 0, sizeof(value));
    value.programmaticStreamSerializationAllowed = 1;
    const BareLaunch bare(four, s.stream, s.arguments());
    add("PDL", bare.with(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, value), [&s] {
        return deep_jit::cuda::LaunchOptions{
            .stream = s.stream, .grid_dim = dim3(1), .block_dim = dim3(32), .enable_pdl = true};
    });
    std::memset(&value, 0, sizeof(value));
    value.cooperative = 1;
    add("cooperative", bare.with(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value), [&s] {
        return deep_jit::cuda::LaunchOptions{
            .stream = s.stream, .grid_dim = dim3(1), .block_dim = dim3(32), .cooperative = true};
    });
}

/// compile() of kernels that are in memory.
void add_compile(Rounds& rounds, JIT& jit) {
    for (const std::size_t bytes : {128, 512, 2048, 8192}) {
        auto source = benchmarks::source_of_four(bytes);
        jit.compile("four", source);
        rounds.add("compile() in memory, " + std::to_string(bytes) + " B", "", kBatch,
                   [&jit, source = std::move(source)] { jit.compile("four", source); });
    }
}

/// A kernel that is on disk, for a runtime that has not seen it.
void add_disk(Rounds& rounds, JIT& jit, const deep_jit::Config& config) {
    static const auto source = benchmarks::source_of_four(512, "disk");
    static const auto cubin =
        deep_jit::read(jit.compile_without_load("four", source) / "kernel.cubin");
    static CUlibrary library = nullptr;
    rounds.add("bare cuLibraryLoadData", "", 1,
               [] {
                   CUkernel kernel = nullptr;
                   DJ_CUDA_DRIVER_CHECK(driver::lazy_cuLibraryLoadData(
                       &library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
                   DJ_CUDA_DRIVER_CHECK(driver::lazy_cuLibraryGetKernel(&kernel, library, "f"));
               },
               {.after = [] { DJ_CUDA_DRIVER_CHECK(driver::lazy_cuLibraryUnload(library)); }});
    // The driver loads lazily: that only took note of the bytes. This also puts the kernel into the
    // context, which compile() does so that no first launch has to.
    rounds.add(
        "bare cuLibraryLoadData, and its parameters", "bare cuLibraryLoadData", 1,
        [] {
            CUkernel kernel = nullptr;
            std::size_t offset = 0, size = 0;
            DJ_CUDA_DRIVER_CHECK(driver::lazy_cuLibraryLoadData(&library, cubin.data(), nullptr,
                                                                nullptr, 0, nullptr, nullptr, 0));
            DJ_CUDA_DRIVER_CHECK(driver::lazy_cuLibraryGetKernel(&kernel, library, "f"));
            DJ_CUDA_DRIVER_CHECK(driver::lazy_cuKernelGetParamInfo(kernel, 0, &offset, &size));
        },
        {.after = [] { DJ_CUDA_DRIVER_CHECK(driver::lazy_cuLibraryUnload(library)); }});
    static std::optional<JIT> fresh;
    const auto forget = [] { fresh.reset(); };
    rounds.add("new runtime", "", 1, [config] { fresh.emplace(config); }, {.after = forget});
    rounds.add("new runtime and compile(), on disk", "bare cuLibraryLoadData, and its parameters",
               1,
               [config] {
                   fresh.emplace(config);
                   fresh->compile("four", source);
               },
               {.after = forget});
    rounds.add("compile(), on disk", "bare cuLibraryLoadData, and its parameters", 1,
               [] { fresh->compile("four", source); },
               {.before = [config] { fresh.emplace(config); }, .after = forget});
}

/// A kernel that nobody has compiled yet, beside the same command line.
void add_cold(Rounds& rounds, JIT& jit, const std::filesystem::path& scratch) {
    static int number = 0;
    static std::string source;
    const auto renew = [] {
        source = benchmarks::source_of_four(512, "cold" + std::to_string(++number));
    };
    std::filesystem::create_directories(scratch);
    rounds.add("bare nvcc", "", 1,
               [&jit, scratch] {
                   auto options = jit.default_compiler_options;
                   options.arch = jit.device.get_arch();
                   std::vector<std::string> command = {jit.backend.toolkit.nvcc.get().string(),
                                                       "kernel.cu", "--cubin", "--output-file",
                                                       "kernel.cubin"};
                   for (const auto& flag : options.get_flags()) command.push_back(flag);
                   const auto result = deep_jit::call_external_command(command, scratch);
                   if (!result.ok())
                       throw std::runtime_error(result.output);
               },
               {.before = [renew, scratch] {
                   renew();
                   deep_jit::write_file_sync(scratch / "kernel.cu", source);
               }});
    rounds.add("compile_without_load(), cold", "bare nvcc", 1,
               [&jit] { jit.compile_without_load("four", source); }, {.before = renew});
    rounds.add("compile(), cold", "bare nvcc", 1, [&jit] { jit.compile("four", source); },
               {.before = renew});
}

/// Compiles what is needed on all CPUs, before anything is measured.
void prepare(JIT& jit) {
    std::vector<std::string> four = {
        benchmarks::source_of_four(), benchmarks::source_of_four(512, "disk"),
        benchmarks::source_of_four(0, "smem16"), benchmarks::source_of_four(0, "smem100")};
    for (const std::size_t bytes : {128, 512, 2048, 8192})
        four.push_back(benchmarks::source_of_four(bytes));
    std::vector<std::thread> threads;
    for (const auto& source : four)
        threads.emplace_back([&] { jit.compile_without_load("four", source); });
    for (const int count : {0, 16, 64})
        threads.emplace_back(
            [&jit, count] { jit.compile_without_load("ints", benchmarks::source_of_ints(count)); });
    for (auto& thread : threads) thread.join();
}

int run(const std::string& json_path, int launch_rounds) {
    const benchmarks::TemporaryCache cache;
    const deep_jit::Config config("/", "BENCHMARK");
    JIT jit(config);
    try {
        std::printf("%s\n", jit.device.get_prop().name);
    } catch (const deep_jit::ToolchainError& error) {
        std::printf("skipped: %s\n", error.what());
        return 0;
    }
    CUcontext context = nullptr;
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuDevicePrimaryCtxRetain(&context, 0));
    DJ_CUDA_DRIVER_CHECK(driver::lazy_cuCtxSetCurrent(context));
    prepare(jit);

    Setting setting;
    const auto four = jit.compile("four", benchmarks::source_of_four());
    Rounds launches("launches"), compiling("compile()"), disk("from disk"), cold("cold");
    add_plain(launches, jit, four, setting);
    add_ints(launches, jit, setting, std::make_index_sequence<0>());
    add_ints(launches, jit, setting, std::make_index_sequence<16>());
    add_ints(launches, jit, setting, std::make_index_sequence<64>());
    add_shared_memory(launches, jit, setting, 16);
    add_shared_memory(launches, jit, setting, 100);
    add_attributes(launches, jit, four, setting);
    add_compile(compiling, jit);
    add_disk(disk, jit, config);
    add_cold(cold, jit, cache.path() / "scratch");

    auto out = deep_jit::json::object();
    const auto measure = [&](Rounds& rounds, int warm_up, int count) {
        rounds.run(warm_up, count);
        rounds.print();
        rounds.write_to(out);
    };
    measure(launches, launch_rounds / 10 + 1, launch_rounds);
    measure(compiling, launch_rounds / 10 + 1, launch_rounds);
    measure(disk, 3, launch_rounds / 5 + 1);
    measure(cold, 1, launch_rounds / 40 + 1);
    if (!json_path.empty())
        deep_jit::write_file_sync(json_path, out.dump(2) + "\n");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::string json_path;
    int rounds = 200;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument.starts_with("--json="))
            json_path = argument.substr(7);
        else
            rounds = std::atoi(argv[i]);
    }
    try {
        return run(json_path, rounds);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
