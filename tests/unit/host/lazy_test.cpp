// create_lazy_jit<Host>: nothing happens before the first use, and one runtime serves all.
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class HostLazy : public HostTest {};

TEST_F(HostLazy, NothingHappensBeforeTheFirstUse) {
    const CountingCompiler compiler(dir_ / "cc");
    const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", compiler.path());
    const ScopedEnv wrong("HOSTTEST_JIT_DUMP_ASM", "neither yes nor no");
    auto jit = create_lazy_jit<Host>(config());
    EXPECT_FALSE(jit.initialized());
    EXPECT_THROW(jit.get(), ConfigError) << "settings are read now";
    EXPECT_FALSE(jit.initialized());

    const ScopedEnv right("HOSTTEST_JIT_DUMP_ASM", "yes");
    EXPECT_EQ(jit->default_compiler_options.dump_asm, true) << "an error is not kept";
    EXPECT_TRUE(jit.initialized());
    EXPECT_EQ(compiler.runs(), 0u);
    EXPECT_FALSE(fs::exists(root_));
    EXPECT_TRUE(scales(*jit, jit->compile("scale", kScaleSource)));
    EXPECT_EQ(compiler.compiles(), 1u);
}

TEST_F(HostLazy, AFactoryAssignedLater) {
    LazyInit<Runtime<Host>> jit(nullptr);
    EXPECT_CONTAINS(message_of<ConfigError>([&] { jit->compile("scale", kScaleSource); }),
                    "must be initialized before use");
    jit = create_lazy_jit<Host>(config("first"));
    EXPECT_EQ(jit->config.extra_signature, "first");
    EXPECT_TRUE(scales(*jit, jit->compile("scale", kScaleSource)));
}

TEST_F(HostLazy, ManyThreadsGetOne) {
    auto jit = create_lazy_jit<Host>(config());
    std::vector<Runtime<Host>*> seen(16);
    std::vector<HostKernel> kernels(16);
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 16; ++t)
        threads.emplace_back([&, t] {
            ++ready;
            while (ready < 16) std::this_thread::yield();
            seen[t] = &jit.get();
            kernels[t] = jit->compile("scale", kScaleSource);
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 1u);
    EXPECT_EQ(std::set(kernels.begin(), kernels.end()).size(), 1u);
    EXPECT_TRUE(scales(*jit, kernels[0]));
}

TEST_F(HostLazy, AChildForkedBeforeTheFirstUse) {
    auto jit = create_lazy_jit<Host>(config());
    const auto child =
        start_child([&] { return scales(*jit, jit->compile("scale", kScaleSource)) ? 0 : 1; });
    EXPECT_TRUE(scales(*jit, jit->compile("scale", kScaleSource)));
    const auto result = wait_child(child);
    EXPECT_TRUE(result.ok()) << result;
    EXPECT_EQ(entries().size(), 1u);
}

TEST_F(HostLazy, AChildForkedAfterwardsHasKernelsAndCanMakeMore) {
    auto jit = create_lazy_jit<Host>(config());
    const auto scale = jit->compile("scale", kScaleSource);
    ASSERT_TRUE(scales(*jit, scale)) << "the parent's pool runs";
    const auto result = run_child([&] {
        if (!scales(*jit, scale))
            return 1;
        if (jit->compile("scale", kScaleSource) != scale)
            return 2;
        return stored_by(*jit, jit->compile("store", store_source(4))) == 4 ? 0 : 3;
    });
    EXPECT_TRUE(result.ok()) << result;
    EXPECT_TRUE(scales(*jit, scale));
}

TEST_F(HostLazy, AChildForkedWhileAThreadCompiles) {
    // The compiler waits until told to go on; at that moment the process forks.
    const auto go = dir_ / "go";
    const CountingCompiler slow(dir_ / "slow", "if [ $kind = compile ]; then while ! test -e " +
                                                   str::quote(go.string()) +
                                                   "; do sleep 0.01; done; fi");
    const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", slow.path());
    auto jit = create_lazy_jit<Host>(config());
    std::thread compiling(
        [&] { EXPECT_EQ(stored_by(*jit, jit->compile("s", store_source(1))), 1); });
    while (slow.compiles() == 0) std::this_thread::yield();
    const auto child = start_child([&] {
        // Nobody in this process is compiling that kernel.
        return stored_by(*jit, jit->compile("s", store_source(1))) == 1 ? 0 : 1;
    });
    write(go, "");
    const auto result = wait_child(child);
    EXPECT_TRUE(result.ok()) << result;
    compiling.join();
    EXPECT_EQ(entries().size(), 1u);
}

}  // namespace
