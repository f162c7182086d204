// What the hot paths allocate: compile() of a kernel in memory nothing, launch() a fixed little.
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "host_support.hpp"

namespace {
std::atomic<long> allocations{0};

[[maybe_unused]] void* counted(std::size_t size, std::size_t align = 0) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    void* memory = align == 0 ? std::malloc(size == 0 ? 1 : size)
                              : std::aligned_alloc(align, (size + align - 1) / align * align);
    if (memory == nullptr)
        throw std::bad_alloc();
    return memory;
}
}  // namespace

// ThreadSanitizer has operators of its own.
#if !DJ_TEST_TSAN
// The compiler pairs these with its own declarations, but not always with each other.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, std::align_val_t align) {
    return counted(size, static_cast<std::size_t>(align));
}
void* operator new[](std::size_t size, std::align_val_t align) {
    return counted(size, static_cast<std::size_t>(align));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

template <typename Action>
long allocations_in(Action&& action) {
    const long before = allocations.load();
    action();
    return allocations.load() - before;
}

class HotPath : public HostTest {
protected:
    void SetUp() override {
        if (DJ_TEST_TSAN)
            GTEST_SKIP() << "allocations are not counted here";
    }

    HostJit jit_{config()};
};

TEST_F(HotPath, TheCounterCounts) {
    EXPECT_EQ(allocations_in([] { delete new int(1); }), 1);
    EXPECT_EQ(allocations_in([] { std::vector<long> v(100); }), 1);
}

TEST_F(HotPath, CompilingAgainAllocatesNothing) {
    const std::string source = store_source(1);
    const auto kernel = jit_.compile("hot", source);
    HostKernel again;
    EXPECT_EQ(allocations_in([&] {
                  for (int i = 0; i < 1000; ++i) again = jit_.compile("hot", source);
              }),
              0);
    EXPECT_EQ(again, kernel);
    // The same text elsewhere in memory is the same source.
    const std::string copy = source;
    EXPECT_EQ(allocations_in([&] { again = jit_.compile("hot", copy); }), 0);
    EXPECT_EQ(again, kernel);
}

TEST_F(HotPath, NorWithOptionsOfItsOwn) {
    const std::string source = store_source(2);
    const HostOptions options{.optimize_level = "2",
                              .fast_math = true,
                              .arch = "",
                              .compiler_flags = std::vector<std::string>{"-std=c++20", "-DA"},
                              .extra_compiler_flags = {"-DLONG_NAME_THAT_LIES_ON_THE_HEAP=1"}};
    const auto kernel = jit_.compile("hot", source, options);
    const auto plain = jit_.compile("hot", source);
    EXPECT_NE(kernel, plain);
    HostKernel first, second;
    EXPECT_EQ(allocations_in([&] {
                  for (int i = 0; i < 100; ++i) {
                      first = jit_.compile("hot", source, options);
                      second = jit_.compile("hot", source);
                  }
              }),
              0);
    EXPECT_EQ(first, kernel);
    EXPECT_EQ(second, plain);
}

TEST_F(HotPath, NorAmongManyKernelsNorWithChangedDefaults) {
    std::vector<std::string> sources;
    std::vector<HostKernel> kernels;
    for (int i = 0; i < 3; ++i) sources.push_back(store_source(10 + i) + std::string(5000, ' '));
    for (const auto& source : sources) kernels.push_back(jit_.compile("hot", source));
    jit_.default_compiler_options.extra_compiler_flags.push_back("-DOTHER");
    for (const auto& source : sources) kernels.push_back(jit_.compile("hot", source));
    jit_.default_compiler_options.extra_compiler_flags.pop_back();
    jit_.compile("hot", sources[0]);
    long wrong = 0;
    EXPECT_EQ(allocations_in([&] {
                  for (int i = 0; i < 300; ++i)
                      if (jit_.compile("hot", sources[i % 3]) != kernels[i % 3])
                          ++wrong;
              }),
              0);
    EXPECT_EQ(wrong, 0);
}

TEST_F(HotPath, AThreadsFirstCompileMakesItsCounterAndNoMore) {
    const std::string source = store_source(3);
    const auto kernel = jit_.compile("hot", source);
    HostKernel again;
    long first = -1, second = -1;
    std::thread([&] {
        first = allocations_in([&] { again = jit_.compile("hot", source); });
        second = allocations_in([&] { again = jit_.compile("hot", source); });
    }).join();
    EXPECT_LE(first, 2) << "the counter and what owns it";
    EXPECT_EQ(second, 0);
    EXPECT_EQ(again, kernel);
}

// A launch outlives the call, so it must be stored: see Kernel::launch.
TEST_F(HotPath, ALaunchAllocatesTheSameLittleWhateverItRuns) {
    const auto kernel = jit_.compile("hot", R"(
struct Big { char bytes[2000]; };
__global__ void k(int* out, Big) { atomicAdd(out, 1); }
)");
    struct Big {
        char bytes[2000];
    };
    const Big big{};
    const HostStream stream;
    int out = 0;
    const auto launch = [&](unsigned blocks, unsigned threads) {
        jit_.launch(kernel,
                    {.stream = stream, .grid_dim = dim3(blocks), .block_dim = dim3(threads)}, &out,
                    big);
        stream.synchronize();
    };
    launch(100, 10);
    launch(100, 10);
    out = 0;
    // Stacks of the pool's threads come at each one's first block, whenever that is.
    long small = 100, large = 100;
    for (int i = 0; i < 50; ++i) {
        small = std::min(small, allocations_in([&] { launch(1, 1); }));
        large = std::min(large, allocations_in([&] { launch(1000, 100); }));
    }
    EXPECT_EQ(out, 50 * (1 + 100000));
    EXPECT_LE(small, 5);
    EXPECT_EQ(large, small) << "running blocks and threads allocates nothing";
}

}  // namespace
