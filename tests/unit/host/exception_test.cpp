// Kernels that throw, and launches that the system cannot serve.
#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "host_support.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DJ_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DJ_TEST_SANITIZED 1
#endif
#endif

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

const std::string kThrower = R"(
#include <stdexcept>
__global__ void thrower(int bad_block, int bad_thread, int* ran) {
    __syncthreads();
    if (blockIdx.x == bad_block && threadIdx.x == bad_thread)
        throw std::runtime_error("thrown by a kernel");
    __syncthreads();
    atomicAdd(ran, 1);
}
)";

class HostException : public HostTest {
protected:
    HostJit jit_{config()};
    HostStream stream_;

    HostKernel thrower() { return jit_.compile("thrower", kThrower); }
    HostKernel store() { return jit_.compile("store", store_source(5)); }

    void launch_thrower(int bad_block, int bad_thread, int* ran, int threads = 2) {
        jit_.launch(thrower(),
                    {.stream = stream_,
                     .grid_dim = dim3(20),
                     .block_dim = dim3(16),
                     .num_threads = threads},
                    bad_block, bad_thread, ran);
    }
    void launch_store(int* out) {
        jit_.launch(store(), {.stream = stream_, .grid_dim = dim3(1), .block_dim = dim3(1)}, out);
    }
};

TEST_F(HostException, IsThrownBySynchronizeOnce) {
    int ran = 0;
    launch_thrower(-1, 0, &ran);
    EXPECT_NO_THROW(stream_.synchronize());
    EXPECT_EQ(ran, 320);
    for (const int thread : {0, 7, 15}) {
        launch_thrower(19, thread, &ran);
        EXPECT_EQ(message_of<std::runtime_error>([&] { stream_.synchronize(); }),
                  "thrown by a kernel");
        EXPECT_TRUE(stream_.idle());
        EXPECT_NO_THROW(stream_.synchronize());
    }
    ran = 0;
    launch_thrower(-1, 0, &ran);
    stream_.synchronize();
    EXPECT_EQ(ran, 320) << "the same threads run kernels as before";
}

TEST_F(HostException, LaunchesBehindAreDroppedUntilItIsReported) {
    int ran = 0, first = 0, second = 0;
    launch_thrower(0, 0, &ran);
    launch_store(&first);
    while (!stream_.idle()) ::usleep(100);
    launch_store(&second);
    EXPECT_TRUE(stream_.idle());
    EXPECT_THROW(stream_.synchronize(), std::runtime_error);
    EXPECT_EQ(first, 0);
    EXPECT_EQ(second, 0);
    launch_store(&second);
    stream_.synchronize();
    EXPECT_EQ(second, 5);
}

TEST_F(HostException, OtherStreamsGoOn) {
    int ran = 0, out = 0;
    launch_thrower(0, 0, &ran);
    run_once(jit_, store(), &out);
    EXPECT_EQ(out, 5);
    EXPECT_THROW(stream_.synchronize(), std::runtime_error);
}

TEST_F(HostException, TheOtherThreadsOfTheBlockAreUnwound) {
    const auto kernel = jit_.compile("unwind", R"(
struct Counted {
    int* count;
    explicit Counted(int* c) : count(c) { atomicAdd(count, 1); }
    ~Counted() { atomicSub(count, 1); }
};
__global__ void k(int* alive, int* made) {
    Counted counted(alive);
    atomicAdd(made, 1);
    __syncthreads();
    if (threadIdx.x == 40) throw 42;
    __syncthreads();
    atomicAdd(made, 1000);
}
)");
    int alive = 0, made = 0;
    jit_.launch(kernel, {.stream = stream_, .grid_dim = dim3(1), .block_dim = dim3(64)}, &alive,
                &made);
    try {
        stream_.synchronize();
        ADD_FAILURE() << "nothing was thrown";
    } catch (int value) {
        EXPECT_EQ(value, 42);
    }
    EXPECT_EQ(made, 64);
    EXPECT_EQ(alive, 0);
}

TEST_F(HostException, ATypeOfTheKernelOutlivesIt) {
    std::exception_ptr error;
    {
        HostJit jit = make();
        const auto kernel = jit.compile("own", R"(
#include <exception>
namespace {
struct Own : std::exception {
    const char* what() const noexcept override { return "a type of the kernel's own"; }
};
}
__global__ void k() { throw Own(); }
)");
        const HostStream stream;
        jit.launch(kernel, {.stream = stream, .grid_dim = dim3(1), .block_dim = dim3(1)});
        kernel->unload();
        while (!stream.idle()) ::usleep(100);
        try {
            stream.synchronize();
        } catch (...) {
            error = std::current_exception();
        }
    }
    ASSERT_NE(error, nullptr);
    std::string what;
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& own) {
        what = own.what();
    }
    EXPECT_EQ(what, "a type of the kernel's own");
}

TEST_F(HostException, AHugeGridStopsAtOnce) {
    const auto kernel = jit_.compile("huge", "__global__ void k() { throw 1; }");
    jit_.launch(kernel,
                {.stream = stream_, .grid_dim = dim3(1u << 31, 1u << 30), .block_dim = dim3(1)});
    EXPECT_THROW(stream_.synchronize(), int);
}

TEST_F(HostException, CaughtInsideIsNoError) {
    const auto kernel = jit_.compile("inside", R"(
__global__ void k(int* out) {
    int caught = 0;
    for (int i = 0; i < 3; ++i) {
        try {
            __syncthreads();
            throw int(threadIdx.x + i);
        } catch (int value) {
            // Other threads throw and catch while this one waits in its handler.
            __syncthreads();
            caught += value;
        }
    }
    out[threadIdx.x] = caught;
}
)");
    std::vector<int> out(30, -1);
    jit_.launch(kernel, {.stream = stream_, .grid_dim = dim3(1), .block_dim = dim3(30)},
                out.data());
    stream_.synchronize();
    for (int t = 0; t < 30; ++t) EXPECT_EQ(out[static_cast<std::size_t>(t)], 3 * t + 3);
}

#ifndef DJ_TEST_SANITIZED
TEST_F(HostException, NoMemoryForStacks) {
    const auto wait = jit_.compile("wait", R"(
__global__ void k(int* ran) {
    __syncthreads();
    atomicAdd(ran, 1);
    __syncthreads();
}
)");
    store();
    const auto result = run_child([&] {
        int out = 0, ran = 0;
        launch_store(&out);
        stream_.synchronize();
        // Room for some stacks, but not for a thousand.
        const rlimit limit{rlim_t(1) << 30, rlim_t(1) << 30};
        if (::setrlimit(RLIMIT_AS, &limit) != 0)
            return 1;
        const HostLaunch many{
            .stream = stream_, .grid_dim = dim3(3), .block_dim = dim3(1024), .num_threads = 1};
        const HostLaunch few{
            .stream = stream_, .grid_dim = dim3(3), .block_dim = dim3(50), .num_threads = 1};
        for (int i = 0; i < 3; ++i) {
            jit_.launch(wait, many, &ran);
            try {
                stream_.synchronize();
                return 2;
            } catch (const LaunchError& error) {
                if (!contains(error.what(), "no memory for the stacks"))
                    return 3;
            }
            if (ran != 0)
                return 4;  // threads of the block that failed went on
            jit_.launch(wait, few, &ran);
            stream_.synchronize();
            if (std::exchange(ran, 0) != 150)
                return 5;
        }
        return 0;
    });
    EXPECT_TRUE(result.ok()) << result;
}

TEST_F(HostException, NoMoreThreads) {
    store();
    const auto result = run_child([&] {
        if (::geteuid() == 0 && ::setuid(65534) != 0)
            return 1;
        // The superuser's processes are not counted, so this is one of nobody's.
        const rlimit limit{1, 1};
        if (::setrlimit(RLIMIT_NPROC, &limit) != 0)
            return 2;
        int out = 0;
        try {
            launch_store(&out);
        } catch (const LaunchError& error) {
            return contains(error.what(), "Cannot start a thread") && stream_.idle() && out == 0
                       ? 0
                       : 3;
        }
        return 4;
    });
    EXPECT_TRUE(result.ok()) << result;
}

TEST_F(HostException, FewerThreadsThanAskedFor) {
    store();
    thrower();
    const auto result = run_child([&] {
        int out = 0, ran = 0;
        launch_store(&out);
        stream_.synchronize();
        if (::geteuid() == 0 && ::setuid(65534) != 0)
            return 1;
        const rlimit limit{1, 1};
        if (::setrlimit(RLIMIT_NPROC, &limit) != 0)
            return 2;
        launch_thrower(-1, 0, &ran, 8);
        stream_.synchronize();
        return out == 5 && ran == 320 ? 0 : 3;
    });
    EXPECT_TRUE(result.ok()) << result;
}
#endif

}  // namespace
