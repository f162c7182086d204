// Loading and launching: what reaches ACL, and what is refused.
#include <numeric>
#include <thread>

#include "unit/ascend/fixture.hpp"
#include "unit/ascend/objects.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using ascend::LaunchOptions;

class AscendLaunch : public AscendStandIn {
protected:
    void SetUp() override {
        AscendStandIn::SetUp();
        if (IsSkipped())
            return;
        use_device(0);
        jit = std::make_unique<JIT>(config());
    }
    /// Of a launch of `nothing` with these options.
    std::string refusal(const LaunchOptions& options) {
        const auto kernel = jit->compile("nothing", kNothing);
        return message_of<LaunchError>([&] { jit->launch(kernel, options); });
    }
    std::string load_failure(const std::string& object) {
        return message_of<LoadError>([&] { ascend::Kernel::load(object, "test.key"); });
    }

    std::unique_ptr<JIT> jit;
};

TEST_F(AscendLaunch, EverythingReachesAcl) {
    const auto kernel = jit->compile("nothing", kNothing);
    auto* stream = make_stream();
    jit->launch(kernel, {.stream = stream,
                         .num_blocks = 40,
                         .num_ubuf_bytes = 1024,
                         .num_launch_timeout_secs = 65535});
    auto launch = stand_in->last_launch();
    EXPECT_EQ(launch.name, "nothing");
    EXPECT_EQ(launch.num_blocks, 40U);
    EXPECT_EQ(launch.stream, stream);
    EXPECT_EQ(launch.device, 0);
    EXPECT_EQ(launch.dyn_ubuf_size, 1024);
    EXPECT_EQ(launch.timeout, 65535);
    EXPECT_EQ(launch.timeout_us, -1);
    EXPECT_EQ(launch.schem_mode, -1);
    // The defaults: 10 seconds, no dynamic UB, the default stream.
    jit->launch(kernel, {.num_blocks = 1});
    launch = stand_in->last_launch();
    EXPECT_EQ(launch.stream, nullptr);
    EXPECT_EQ(launch.dyn_ubuf_size, -1);
    EXPECT_EQ(launch.timeout, 10);
    // 0 is for ever, which ACL has to be told.
    jit->launch(kernel, {.num_blocks = 1, .num_launch_timeout_secs = 0});
    EXPECT_EQ(stand_in->last_launch().timeout, 0);
    jit->default_launch_options.num_launch_timeout_secs.reset();
    jit->launch(kernel, {.num_blocks = 1});
    EXPECT_EQ(stand_in->last_launch().timeout, -1);
}

TEST_F(AscendLaunch, TheTimeoutOfTheEnvironment) {
    const ScopedEnv timeout("NPUTEST_JIT_LAUNCH_TIMEOUT", "300");
    JIT other(config());
    other.launch(other.compile("nothing", kNothing), {.num_blocks = 1});
    EXPECT_EQ(stand_in->last_launch().timeout, 300);
}

TEST_F(AscendLaunch, ArgumentsAreCopiedAtTheCall) {
    const DeviceArray in(std::vector<float>{1, 2, 3}), out(std::vector<float>(3));
    const auto kernel = jit->compile("scale", kScale);
    stand_in->hold();
    {
        int count = 3;
        jit->launch(kernel, {.num_blocks = 1}, out.data(), in.data(), count);
        count = 0;
    }
    stand_in->release();
    EXPECT_EQ(out.values(), (std::vector<float>{2, 4, 6}));
    const auto launch = stand_in->last_launch();
    EXPECT_EQ(launch.args_size, 24U);
    EXPECT_EQ(launch.argument<float*>(0), out.data());
    EXPECT_EQ(launch.argument<float*>(8), in.data());
    EXPECT_EQ(launch.argument<int>(16), 3);
    EXPECT_EQ(launch.argument<int>(20), 0);
}

TEST_F(AscendLaunch, OptionsThatCannotBeRight) {
    EXPECT_CONTAINS(refusal({}), "Cannot launch kernel nothing: the block count must be specified");
    EXPECT_CONTAINS(refusal({.num_blocks = 0}), "block count must be positive: 0");
    EXPECT_CONTAINS(refusal({.num_blocks = -3}), "block count must be positive: -3");
    EXPECT_CONTAINS(refusal({.num_blocks = 1, .num_ubuf_bytes = -1}),
                    "dynamic UB size must not be negative: -1");
    EXPECT_CONTAINS(refusal({.num_blocks = 1, .num_launch_timeout_secs = 70000}),
                    "launch timeout is out of range: 70000 seconds");
    EXPECT_CONTAINS(refusal({.num_blocks = 1, .num_launch_timeout_secs = -1}),
                    "launch timeout is out of range: -1 seconds");
    EXPECT_EQ(stand_in->launch_count(), 0U);
}

TEST_F(AscendLaunch, WrongArgumentsNameTheSizes) {
    const auto kernel = jit->compile("scale", kScale);
    EXPECT_EQ(kernel->argument_bytes(), 24U);
    float* p = nullptr;
    const auto text =
        message_of<LaunchError>([&] { jit->launch(kernel, {.num_blocks = 1}, p, p); });
    EXPECT_CONTAINS(text,
                    "its parameters take 24 bytes, the 2 argument(s) given take 16, their "
                    "sizes are (8, 8)");
    EXPECT_CONTAINS(message_of<LaunchError>([&] { jit->launch(kernel, {.num_blocks = 1}); }),
                    "the 0 argument(s) given take 0");
    EXPECT_CONTAINS(message_of<LaunchError>([&] {
                        jit->launch(jit->compile("nothing", kNothing), {.num_blocks = 1}, 1);
                    }),
                    "wrong arguments");
    EXPECT_EQ(stand_in->calls("aclrtLaunchKernelWithHostArgs"), 0U);
}

TEST_F(AscendLaunch, TheCheckOfArgumentsCanBeTurnedOff) {
    const ScopedEnv check("NPUTEST_JIT_CHECK_ARGUMENTS", "0");
    const auto kernel = jit->compile("scale", kScale);
    EXPECT_EQ(kernel->argument_bytes(), std::nullopt);
    const auto text = message_of<LaunchError>([&] { jit->launch(kernel, {.num_blocks = 1}, 1); });
    EXPECT_CONTAINS(text, "aclrtLaunchKernelWithHostArgs: ACL_ERROR_RT_PARAM_INVALID (107000)");
}

TEST_F(AscendLaunch, WhatAclRefusesIsToldWithItsMessage) {
    const auto kernel = jit->compile("nothing", kNothing);
    stand_in->fail("aclrtLaunchKernelWithHostArgs", 507000);
    auto text = message_of<LaunchError>(
        [&] { jit->launch(kernel, {.num_blocks = 4, .num_launch_timeout_secs = 7}); });
    EXPECT_CONTAINS(text,
                    "Cannot launch kernel nothing: aclrtLaunchKernelWithHostArgs: "
                    "ACL_ERROR_RT_INTERNAL_ERROR (507000): EE9999");
    EXPECT_CONTAINS(text,
                    "4 blocks, 8 bytes of arguments, stream 0x0, timeout 7 s, NPU 0 "
                    "(Ascend910B2)");
    EXPECT_FALSE(contains(text, "earlier kernel"));
    stand_in->fail("aclrtLaunchKernelWithHostArgs", 507015);
    text = message_of<LaunchError>([&] { jit->launch(kernel, {.num_blocks = 1}); });
    EXPECT_CONTAINS(text, "It may come from an earlier kernel");
    EXPECT_NO_THROW(jit->launch(kernel, {.num_blocks = 1}));
}

TEST_F(AscendLaunch, BlockingWaitsAndTellsWhatFailed) {
    constexpr const char* kTrap =
        "extern \"C\" __global__ __aicore__ void bad(int32_t which) { if (which != 0) trap(); }\n";
    const auto kernel = jit->compile("bad", kTrap);
    jit->launch(kernel, {.num_blocks = 1}, 1);
    EXPECT_EQ(stand_in->calls("aclrtSynchronizeDevice"), 0U);
    EXPECT_EQ(driver::lazy_aclrtSynchronizeDevice(), 507035);
    blocking.set("1");
    const JIT waiting(config());
    waiting.launch(kernel, {.num_blocks = 1}, 0);
    EXPECT_EQ(stand_in->calls("aclrtSynchronizeDevice"), 2U);
    const auto text =
        message_of<LaunchError>([&] { waiting.launch(kernel, {.num_blocks = 1}, 1); });
    EXPECT_CONTAINS(text,
                    "Kernel bad failed: aclrtSynchronizeDevice, because of "
                    "ASCEND_LAUNCH_BLOCKING: ACL_ERROR_RT_VECTOR_CORE_EXCEPTION (507035)");
    // Every kernel before it has been waited for.
    EXPECT_FALSE(contains(text, "earlier kernel"));
}

TEST_F(AscendLaunch, AKernelThatRunsTooLong) {
    constexpr const char* kEndless =
        "extern \"C\" __global__ __aicore__ void endless() { for (;;) pipe_barrier(PIPE_ALL); }\n";
    blocking.set("1");
    JIT waiting(config());
    const auto kernel = waiting.compile("endless", kEndless);
    EXPECT_CONTAINS(message_of<LaunchError>([&] {
                        waiting.launch(kernel, {.num_blocks = 1, .num_launch_timeout_secs = 1});
                    }),
                    "ACL_ERROR_RT_VECTOR_CORE_TIMEOUT (507034)");
}

TEST_F(AscendLaunch, AThreadWithoutADeviceGetsOne) {
    restart("Ascend910B2", 2);
    std::shared_ptr<ascend::Kernel> kernel;
    std::thread([&] {
        kernel = jit->compile("nothing", kNothing);
        jit->launch(kernel, {.num_blocks = 1});
        EXPECT_EQ(stand_in->last_launch().device, 0);
    }).join();
    std::thread([&] {
        jit->launch(kernel, {.num_blocks = 1});
        EXPECT_EQ(stand_in->last_launch().device, 0);
    }).join();
    // Here the device of the runtime is another one.
    use_device(1);
    JIT second(config());
    EXPECT_EQ(second.device.get_index(), 1);
    std::thread([&] {
        second.launch(kernel, {.num_blocks = 1});
        EXPECT_EQ(stand_in->last_launch().device, 1);
    }).join();
}

TEST_F(AscendLaunch, EachDeviceGetsTheKernelWhenItIsLaunchedThere) {
    restart("Ascend910B2", 3);
    use_device(1);
    const auto kernel = jit->compile("scale", kScale);
    EXPECT_EQ(stand_in->live_binaries(), 1U);
    for (const int device : {1, 2, 1, 2, 0}) {
        use_device(device);
        const DeviceArray in(std::vector<float>{1, 2, 3}), out(std::vector<float>(3));
        jit->launch(kernel, {.num_blocks = 1}, out.data(), in.data(), 3);
        EXPECT_EQ(stand_in->last_launch().device, device);
        EXPECT_EQ(out.values(), (std::vector<float>{2, 4, 6}));
    }
    EXPECT_EQ(stand_in->live_binaries(), 3U);
    EXPECT_EQ(stand_in->binary_loads(), 3U);
    kernel->unload();
    EXPECT_EQ(stand_in->live_binaries(), 0U);
    // The thread's device is what it was.
    EXPECT_EQ(driver::current_device(), 0);
}

TEST_F(AscendLaunch, ThreadsOnOneDeviceLoadAKernelOnce) {
    restart("Ascend910B2", 2);
    use_device(0);
    const auto kernel = jit->compile("nothing", kNothing);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            use_device(1);
            jit->launch(kernel, {.num_blocks = 1});
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(stand_in->binary_loads(), 2U);
    EXPECT_EQ(stand_in->launch_count(), 8U);
}

TEST_F(AscendLaunch, UnloadingIsForGood) {
    auto kernel = jit->compile("nothing", kNothing);
    EXPECT_NE(kernel->library_handle, nullptr);
    EXPECT_NE(kernel->kernel_handle, nullptr);
    kernel->unload();
    kernel->unload();
    EXPECT_EQ(kernel->library_handle, nullptr);
    EXPECT_EQ(kernel->kernel_handle, nullptr);
    EXPECT_EQ(stand_in->calls("aclrtBinaryUnLoad"), 1U);
    EXPECT_CONTAINS(message_of<LaunchError>([&] { jit->launch(kernel, {.num_blocks = 1}); }),
                    "it has been unloaded");
    kernel = jit->compile("other", std::string(kNothing) + "// other\n");
    kernel.reset();
    jit.reset();
    EXPECT_EQ(stand_in->live_binaries(), 0U);
}

TEST_F(AscendLaunch, ThreeKernelsAndNone) {
    const std::string one = "__global__ __aicore__ void ";
    const auto three = one + "a() {}\n" + one + "b(int32_t) {}\n" + one + "c() {}\n";
    auto text = message_of<LoadError>([&] { jit->compile("three", three); });
    EXPECT_CONTAINS(text, "Cannot load kernel three.");
    EXPECT_CONTAINS(text, "expected exactly one kernel, but there are 3: a(), b(int), c()");
    text = message_of<LoadError>([&] { jit->compile("none", "static int x;\n"); });
    EXPECT_CONTAINS(text, "expected exactly one kernel, but there are 0. A source must define");
    // It is a matter of loading only.
    EXPECT_TRUE(fs::exists(jit->compile_without_load("three", three) / "kernel.o"));
    EXPECT_EQ(stand_in->binary_loads(), 0U);
}

TEST_F(AscendLaunch, AKernelThatAclDoesNotFind) {
    auto object = slurp(jit->compile_without_load("scale", kScale) / "kernel.o");
    const auto at = object.find(".ascend.meta.scale");
    ASSERT_NE(at, std::string::npos);
    object.replace(at, 18, ".ascend.meta.other");
    const auto text = load_failure(object);
    EXPECT_CONTAINS(text,
                    "Cannot load kernel test.key: ACL does not find its kernel 'other': "
                    "aclrtBinaryGetFunction: ACL_ERROR_RT_INTERNAL_ERROR (507000)");
    EXPECT_CONTAINS(text, "NPU 0 (Ascend910B2)");
    EXPECT_EQ(stand_in->live_binaries(), 0U);
}

TEST_F(AscendLaunch, WhatCannotBeLoaded) {
    EXPECT_CONTAINS(load_failure("not ELF"), "its 7 bytes are no complete ELF file of a device");
    EXPECT_CONTAINS(load_failure(slurp("/bin/true")), "no complete ELF file of a device");
    EXPECT_EQ(stand_in->binary_loads(), 0U);
    stand_in->fail("aclrtBinaryLoadFromData", 100025);
    EXPECT_CONTAINS(load_failure(DeviceObject().kernel("k").bytes()),
                    "aclrtBinaryLoadFromData: ACL_ERROR_OP_LOAD_FAILED (100025)");
    EXPECT_CONTAINS(message_of<LoadError>([&] { Ascend::load(temp / "tag.digest", jit->env); }),
                    "Cannot load kernel tag.digest: missing device object");
}

TEST_F(AscendLaunch, TheLoadTimeIsPrintedWhenAskedFor) {
    jit->compile("nothing", kNothing);
    EXPECT_EQ(logged(), "");
    const ScopedEnv print("NPUTEST_JIT_PRINT_LOAD_TIME", "1");
    const auto entry = jit->compile_without_load("nothing", kNothing);
    EXPECT_NE(Ascend::load(entry, jit->env)->kernel_handle, nullptr);
    EXPECT_CONTAINS(logged(), "Load time (" + entry.filename().string() + "): ");
}

}  // namespace
