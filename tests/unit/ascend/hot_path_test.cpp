// compile() of a kernel in memory and launch() allocate nothing.
#include "unit/ascend/fixture.hpp"
#include "unit/cuda/allocation_count.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

constexpr std::size_t kRounds = 200;

template <typename Action>
std::size_t allocations_in(Action&& action) {
    action();  // what happens once only
    const auto before = allocations_of_this_thread();
    for (std::size_t i = 0; i < kRounds; ++i) action();
    return allocations_of_this_thread() - before;
}

class AscendHotPath : public AscendStandIn {
protected:
    void SetUp() override {
        if (!kAllocationsAreCounted)
            GTEST_SKIP() << "allocations are not counted here";
        AscendStandIn::SetUp();
        if (IsSkipped())
            return;
        use_device(0);
        jit = std::make_unique<JIT>(config());
        kernel = jit->compile("scale", kScale);
    }

    /// Of ACL alone, called as `launch` calls it.
    std::size_t allocations_of_bare_launches() {
        return allocations_in([&] {
            acl::LaunchAttribute attribute{acl::LaunchAttributeId::kTimeoutSeconds, {}};
            attribute.value.timeout_seconds = 10;
            acl::LaunchConfig launch_config{&attribute, 1};
            unsigned char packed[24] = {};
            ASSERT_EQ(driver::lazy_aclrtLaunchKernelWithHostArgs(kernel->kernel_handle, 1, nullptr,
                                                                 &launch_config, packed,
                                                                 sizeof(packed), nullptr, 0),
                      0);
        });
    }

    std::unique_ptr<JIT> jit;
    std::shared_ptr<ascend::Kernel> kernel;
};

TEST_F(AscendHotPath, CompilingWhatIsInMemoryAllocatesNothing) {
    const std::string source = kScale;
    const auto calls = stand_in->calls();
    EXPECT_EQ(allocations_in([&] { jit->compile("scale", source); }), 0U);
    EXPECT_EQ(stand_in->calls(), calls);
    const ascend::CompilerOptions options{.debug_info = true,
                                          .extra_bisheng_flags = {"-DA_LONG_NAME_FOR_A_MACRO=1"}};
    EXPECT_EQ(allocations_in([&] { jit->compile("scale", source, options); }), 0U);
}

TEST_F(AscendHotPath, LaunchingAllocatesNothing) {
    float* none = nullptr;
    stand_in->hold();
    const auto bare = allocations_of_bare_launches();
    const auto ours =
        allocations_in([&] { jit->launch(kernel, {.num_blocks = 1}, none, none, 0); });
    stand_in->release();
    synchronize();
    // The stand-in's records and queues grow now and then.
    EXPECT_LT(ours, bare + kRounds / 2);
    EXPECT_LT(bare, ours + kRounds / 2);
}

TEST_F(AscendHotPath, LookingForAStreamAllocatesNothing) {
    EXPECT_EQ(allocations_in([] { ascend::current_stream(); }), 0U);
}

}  // namespace
