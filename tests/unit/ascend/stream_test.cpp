// The stream of a launch that names none: the default stream, a provider's, torch_npu's.
#include <thread>

#include "unit/ascend/fixture.hpp"
#include "unit/cuda/rerun.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

void* provided = nullptr;

class AscendStream : public AscendStandIn {
protected:
    void SetUp() override {
        AscendStandIn::SetUp();
        if (IsSkipped())
            return;
        use_device(0);
        jit = std::make_unique<JIT>(config());
        kernel = jit->compile("nothing", kNothing);
    }
    void* stream_of_launch(const ascend::LaunchOptions& options = {}) {
        jit->launch(kernel, options.override_with({.num_blocks = 1}));
        return stand_in->last_launch().stream;
    }
    static void* load_torch() {
        return ::dlopen(DEEP_JIT_TEST_TORCH_NPU "/libtorch_npu.so", RTLD_NOW | RTLD_LOCAL);
    }

    std::unique_ptr<JIT> jit;
    std::shared_ptr<ascend::Kernel> kernel;
};

TEST_F(AscendStream, TheDefaultStreamWithoutAnythingElse) {
    EXPECT_EQ(ascend::current_stream(), nullptr);
    EXPECT_EQ(stream_of_launch(), nullptr);
}

TEST_F(AscendStream, TheProvidersStreamUntilItIsTakenBack) {
    provided = make_stream();
    ascend::set_current_stream_provider([] { return provided; });
    EXPECT_EQ(stream_of_launch(), provided);
    ascend::set_current_stream_provider(nullptr);
    EXPECT_EQ(stream_of_launch(), nullptr);
}

TEST_F(AscendStream, AnExplicitStreamComesFirstAlsoANullOne) {
    provided = make_stream();
    auto* given = make_stream();
    ascend::set_current_stream_provider([] { return provided; });
    EXPECT_EQ(stream_of_launch({.stream = given}), given);
    EXPECT_EQ(stream_of_launch({.stream = nullptr}), nullptr);
    jit->default_launch_options.stream = given;
    EXPECT_EQ(stream_of_launch(), given);
    EXPECT_EQ(stream_of_launch({.stream = nullptr}), nullptr);
}

// --- Bodies that run as processes of their own: a library once found is not forgotten -----------

using AscendStreamBody = AscendStream;

TEST_F(AscendStreamBody, DISABLED_TorchNpuComesAfterTheFirstLaunch) {
    ASSERT_EQ(stream_of_launch(), nullptr);
    void* library = load_torch();
    ASSERT_NE(library, nullptr) << ::dlerror();
    const auto set =
        reinterpret_cast<void (*)(void*)>(::dlsym(library, "dj_stand_in_set_npu_stream"));
    auto* stream = make_stream();
    set(stream);
    EXPECT_EQ(stream_of_launch(), stream);
    std::thread([&] { EXPECT_EQ(ascend::current_stream(), stream); }).join();
    set(nullptr);
    EXPECT_EQ(stream_of_launch(), nullptr);
    set(stream);
    EXPECT_EQ(stream_of_launch({.stream = nullptr}), nullptr);
    provided = make_stream();
    ascend::set_current_stream_provider([] { return provided; });
    EXPECT_EQ(stream_of_launch(), provided);
    ascend::set_current_stream_provider(nullptr);
    // It is kept once it was found.
    ::dlclose(library);
    EXPECT_EQ(stream_of_launch(), stream);
}

/// A libtorch_npu.so made of this C source, loaded.
void load_made_up_torch(const fs::path& directory, const std::string& source) {
    write(directory / "torch.c", source);
    const auto library = directory / "libtorch_npu.so";
    const auto built =
        call_external_command({"cc", "-shared", "-fPIC", "-Wl,-soname,libtorch_npu.so", "-o",
                               library.string(), (directory / "torch.c").string()});
    ASSERT_TRUE(built.ok()) << built.output;
    ASSERT_NE(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL), nullptr) << ::dlerror();
}

TEST_F(AscendStreamBody, DISABLED_ATorchNpuThatDoesNotTell) {
    load_made_up_torch(temp / "torch", "int nothing_of_interest;\n");
    // Every time: the default stream would be the wrong one.
    for (int i = 0; i < 2; ++i) {
        const auto text = message_of<LaunchError>([&] { stream_of_launch(); });
        EXPECT_CONTAINS(text, "This torch_npu does not tell its current stream");
        EXPECT_CONTAINS(text, "set_current_stream_provider");
    }
    EXPECT_EQ(stream_of_launch({.stream = nullptr}), nullptr);
    provided = make_stream();
    ascend::set_current_stream_provider([] { return provided; });
    EXPECT_EQ(stream_of_launch(), provided);
}

TEST_F(AscendStreamBody, DISABLED_ATorchNpuThatFails) {
    load_made_up_torch(temp / "torch",
                       "int aoti_torch_get_current_npu_stream(int device, void** out) {\n"
                       "    return device == -1 && out != 0 ? 1 : 0;\n}\n");
    EXPECT_CONTAINS(message_of<LaunchError>([&] { stream_of_launch(); }),
                    "aoti_torch_get_current_npu_stream failed");
    EXPECT_EQ(stream_of_launch({.stream = nullptr}), nullptr);
}

TEST_F(AscendStream, TorchNpuIsFoundWhenItIsLoadedAfterTheFirstLaunch) {
    EXPECT_RERUN("AscendStreamBody.DISABLED_TorchNpuComesAfterTheFirstLaunch");
}

TEST_F(AscendStream, ATorchNpuThatDoesNotTellIsAnErrorOfTheLaunch) {
    EXPECT_RERUN("AscendStreamBody.DISABLED_ATorchNpuThatDoesNotTell");
}

TEST_F(AscendStream, AFailureOfTorchNpuIsAnErrorOfTheLaunch) {
    EXPECT_RERUN("AscendStreamBody.DISABLED_ATorchNpuThatFails");
}

}  // namespace
