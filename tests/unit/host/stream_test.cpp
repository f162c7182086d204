// Streams: order, asynchrony, waiting, and what becomes of them when processes fork or end.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

/// Waits for `*gate`, then appends `value` to the list whose length is `list[0]`.
const std::string kAppend = R"(
__global__ void append(const int* gate, int* list, int value) {
    while (gate && __atomic_load_n(gate, __ATOMIC_ACQUIRE) == 0) {}
    list[++list[0]] = value;
}
)";
/// Opens one gate and waits for another.
const std::string kMeet = R"(
__global__ void meet(int* mine, const int* other) {
    __atomic_store_n(mine, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(other, __ATOMIC_ACQUIRE) == 0) {}
}
)";

class HostStreamTest : public HostTest {
protected:
    HostJit jit_{config()};
    HostStream stream_;
    int gate_ = 0;
    std::vector<int> list_ = std::vector<int>(300);

    HostKernel append() { return jit_.compile("append", kAppend); }
    HostKernel meet() { return jit_.compile("meet", kMeet); }

    static HostLaunch on(const HostStream& stream) {
        return {.stream = stream, .grid_dim = dim3(1), .block_dim = dim3(1)};
    }
    void launch(const HostStream& stream, int value, bool gated) {
        jit_.launch(append(), on(stream), gated ? static_cast<const int*>(&gate_) : nullptr,
                    list_.data(), value);
    }
    void open() { __atomic_store_n(&gate_, 1, __ATOMIC_RELEASE); }
};

TEST_F(HostStreamTest, InOrderAndAsynchronous) {
    for (int i = 0; i < 200; ++i) launch(stream_, i, i == 0);
    EXPECT_FALSE(stream_.idle());
    EXPECT_EQ(__atomic_load_n(list_.data(), __ATOMIC_ACQUIRE), 0) << "nothing ran ahead";
    open();
    stream_.synchronize();
    EXPECT_TRUE(stream_.idle());
    ASSERT_EQ(list_[0], 200);
    for (int i = 0; i < 200; ++i) EXPECT_EQ(list_[static_cast<std::size_t>(i) + 1], i);
}

TEST_F(HostStreamTest, CopiesAreTheSameStream) {
    const HostStream copy = stream_;
    EXPECT_EQ(copy, stream_);
    launch(stream_, 1, true);
    EXPECT_FALSE(copy.idle());
    launch(copy, 2, false);
    open();
    copy.synchronize();
    EXPECT_TRUE(stream_.idle());
    EXPECT_EQ(list_[2], 2);
}

TEST_F(HostStreamTest, StreamsRunAtOnce) {
    // Each kernel waits for the other, whichever is started first, on whatever pool there is.
    const HostStream other;
    for (int i = 0; i < 20; ++i) {
        int gates[2] = {0, 0};
        jit_.launch(meet(), on(stream_), &gates[0], static_cast<const int*>(&gates[1]));
        jit_.launch(meet(), on(other), &gates[1], static_cast<const int*>(&gates[0]));
        while (!stream_.idle() || !other.idle()) ::usleep(50);
        EXPECT_EQ(gates[0] + gates[1], 2);
    }
}

TEST_F(HostStreamTest, ManyStreamsRunAtOnce) {
    // A ring: each kernel waits for the next one, which was launched later.
    constexpr int kStreams = 12;
    std::vector<HostStream> streams(kStreams);
    std::vector<int> gates(kStreams);
    for (int i = 0; i < kStreams; ++i)
        jit_.launch(meet(), on(streams[i]), &gates[i],
                    static_cast<const int*>(&gates[(i + 1) % kStreams]));
    for (const auto& stream : streams)
        while (!stream.idle()) ::usleep(50);
    for (const int gate : gates) EXPECT_EQ(gate, 1);
}

TEST_F(HostStreamTest, SynchronizeWaitsForWhatWasLaunchedBefore) {
    // Every kernel launches the next one before it ends, so that the stream is never idle.
    struct Chain {
        HostJit& jit;
        HostKernel kernel;
        HostStream stream;
        std::atomic<int> links{0};
        std::atomic<bool> stop{false};

        void launch() { jit.launch(kernel, on(stream), &Chain::next, static_cast<void*>(this)); }
        static void next(void* self) {
            auto& chain = *static_cast<Chain*>(self);
            ::usleep(1000);
            if (++chain.links < 10000 && !chain.stop)
                chain.launch();
        }
    };
    const auto kernel = jit_.compile(
        "chain", "__global__ void k(void (*next)(void*), void* chain) { next(chain); }");
    Chain chain{.jit = jit_, .kernel = kernel, .stream = stream_};
    chain.launch();
    stream_.synchronize();
    EXPECT_LT(chain.links, 10000);
    chain.stop = true;
    while (!stream_.idle()) stream_.synchronize();
    EXPECT_GE(chain.links, 1);
}

TEST_F(HostStreamTest, SeveralThreadsLaunchAndWait) {
    const auto kernel = jit_.compile("count", "__global__ void k(int* out) { atomicAdd(out, 1); }");
    int out = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 100; ++i) {
                jit_.launch(kernel, {.stream = stream_, .grid_dim = dim3(4), .block_dim = dim3(2)},
                            &out);
                if (i % 10 == 0)
                    stream_.synchronize();
            }
        });
    for (auto& thread : threads) thread.join();
    stream_.synchronize();
    EXPECT_EQ(out, 8 * 100 * 8);
}

TEST_F(HostStreamTest, TheHandleMayGoWhileKernelsRun) {
    {
        std::optional<HostStream> handle;
        handle.emplace();
        launch(*handle, 1, true);
        launch(*handle, 2, false);
    }
    open();
    while (__atomic_load_n(list_.data(), __ATOMIC_ACQUIRE) < 2) ::usleep(50);
    EXPECT_EQ(list_[1], 1);
    EXPECT_EQ(list_[2], 2);
}

TEST_F(HostStreamTest, AForkedChildStartsClean) {
    launch(stream_, 1, true);
    launch(stream_, 2, false);
    const auto result = run_child([&] {
        if (!stream_.idle())
            return 1;
        stream_.synchronize();
        // Streams and kernels of the parent serve the child, with threads of its own.
        launch(stream_, 7, false);
        stream_.synchronize();  // the kernel's list is not for two streams at once
        launch(HostStream::default_stream(), 8, false);
        HostStream::default_stream().synchronize();
        if (list_[0] != 2 || list_[1] != 7 || list_[2] != 8)
            return 2;
        return run_child([&] {
                   launch(stream_, 9, false);
                   stream_.synchronize();
                   return list_[3] == 9 ? 0 : 3;
               }).ok()
                   ? 0
                   : 4;
    });
    EXPECT_TRUE(result.ok()) << result;
    open();
    stream_.synchronize();
    EXPECT_EQ(list_[0], 2);
}

TEST_F(HostStreamTest, AForkWhileOthersLaunchAndWait) {
    if (DJ_TEST_TSAN || DJ_TEST_ASAN)
        GTEST_SKIP() << "a sanitizer's own locks do not survive a fork of a busy process";
    // Whatever lock another thread holds at that moment, the child must not need it.
    const auto kernel = append();
    std::atomic<bool> stop{false};
    std::vector<int> list(std::size_t(1) << 22);
    std::thread busy([&] {
        for (int i = 0; !stop && i < (1 << 20); ++i) {
            jit_.launch(kernel, on(stream_), static_cast<const int*>(nullptr), list.data(), 1);
            if (i % 4 == 0)
                stream_.synchronize();
        }
    });
    for (int i = 0; i < 100; ++i) {
        const auto result = run_child(
            [&] {
                std::vector<int> own(4);
                jit_.launch(kernel, on(stream_), static_cast<const int*>(nullptr), own.data(), 5);
                stream_.synchronize();
                return own[1] == 5 ? 0 : 1;
            },
            10);
        if (!result.ok()) {
            ADD_FAILURE() << result;
            break;
        }
    }
    stop = true;
    busy.join();
    stream_.synchronize();
}

TEST_F(HostStreamTest, AnErrorOfTheParentIsNotTheChilds) {
    const auto kernel = jit_.compile("thrower", "__global__ void k() { throw 1; }");
    jit_.launch(kernel, on(stream_));
    while (!stream_.idle()) ::usleep(100);
    EXPECT_TRUE(run_child([&] {
                    stream_.synchronize();
                    launch(stream_, 3, false);
                    stream_.synchronize();
                    return list_[1] == 3 ? 0 : 1;
                }).ok());
    EXPECT_THROW(stream_.synchronize(), int);
}

TEST_F(HostStreamTest, AProcessEndsWhileKernelsRun) {
    const auto endless = jit_.compile("endless", R"(
__global__ void k(int* running) {
    __shared__ int rounds;
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) __atomic_store_n(running, ++rounds | 1, __ATOMIC_RELEASE);
    }
}
)");
    const auto slow = jit_.compile("slow", R"(
__global__ void k(int* running) {
    for (int i = 0; i < 100; ++i) {
        __syncthreads();
        atomicAdd(running, 1);
    }
}
)");
    for (const bool forever : {true, false}) {
        const auto result = run_child([&] {
            static int running = 0;
            for (int i = 0; i < 3; ++i)
                jit_.launch(forever ? endless : slow,
                            {.stream = HostStream(),
                             .grid_dim = dim3(forever ? 1 : 200),
                             .block_dim = dim3(4)},
                            &running);
            while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) == 0) ::usleep(50);
            std::exit(0);
            return 1;
        });
        EXPECT_TRUE(result.ok()) << result;
    }
}

/// Waits for a kernel when the process ends: later than the end of the main thread's own objects.
struct WaitsAtExit {
    std::unique_ptr<HostJit> jit;
    int out = 0;
    ~WaitsAtExit() {
        if (jit == nullptr)
            return;
        const auto kernel = jit->compile("last", R"(
__global__ void k(int* out) {
    __syncthreads();
    atomicAdd(out, 1);
    __syncthreads();
    atomicAdd(out, 1);
}
)");
        for (int i = 0; i < 20; ++i) {
            const HostStream stream;
            jit->launch(kernel, {.stream = stream, .grid_dim = dim3(40), .block_dim = dim3(20)},
                        &out);
            stream.synchronize();
        }
        ::_exit(out == 20 * 40 * 20 * 2 ? 0 : 7);
    }
};

TEST_F(HostStreamTest, AStaticObjectMayWaitWhenTheProcessEnds) {
    const auto result = run_child([&] {
        static WaitsAtExit waits;
        waits.jit = std::make_unique<HostJit>(config());
        launch(stream_, 1, false);
        stream_.synchronize();
        std::exit(1);
        return 1;
    });
    EXPECT_TRUE(result.ok()) << result;
}

}  // namespace
