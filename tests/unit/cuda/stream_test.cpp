// The stream of a launch that names none: the default stream, a provider's, PyTorch's.
#include <thread>

#include "unit/cuda/fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

CUstream provided = nullptr;

class CudaStream : public CudaStandIn {
protected:
    void SetUp() override {
        CudaStandIn::SetUp();
        if (IsSkipped())
            return;
        use_device(0);
        jit = std::make_unique<JIT>(config());
        kernel = load(kNothing);
    }
    void* stream_of_launch(const cuda::LaunchOptions& options = {}) {
        jit->launch(kernel, options.override_with({.grid_dim = dim3(1), .block_dim = dim3(32)}));
        return stand_in->last_launch().stream;
    }

    /// Builds a library that answers as PyTorch's does: stream `base` + the thread's number, or an
    /// error while `fails` is set. In a process of its own, since it can't be taken back.
    fs::path build_torch() const {
        write(temp / "torch.c",
              "#include <stdint.h>\n"
              "int32_t torch_device = 99, torch_fails = 0;\n"
              "_Thread_local void* torch_stream = 0;\n"
              "int32_t aoti_torch_get_current_cuda_stream(int32_t device, void** out) {\n"
              "    torch_device = device;\n"
              "    if (torch_fails) return 1;\n"
              "    *out = torch_stream;\n"
              "    return 0;\n"
              "}\n"
              "void torch_set_stream(void* stream) { torch_stream = stream; }\n");
        const auto library = temp / "lib" / "libtorch_cuda.so";
        fs::create_directories(library.parent_path());
        const auto built =
            call_external_command({"cc", "-shared", "-fPIC", "-Wl,-soname,libtorch_cuda.so", "-o",
                                   library.string(), (temp / "torch.c").string()});
        EXPECT_TRUE(built.ok()) << built.output;
        return library;
    }

    /// In the child: everything afresh.
    void start_again() {
        kernel.reset();
        restart("9.0");
        use_device(0);
        kernel = load(kNothing);
    }

    std::unique_ptr<JIT> jit;
    std::shared_ptr<cuda::Kernel> kernel;
};

TEST_F(CudaStream, TheDefaultStreamWithoutAnythingElse) {
    EXPECT_EQ(cuda::current_stream(), nullptr);
    EXPECT_EQ(stream_of_launch(), nullptr);
}

TEST_F(CudaStream, TheProvidersStreamUntilItIsTakenBack) {
    provided = make_stream();
    cuda::set_current_stream_provider([] { return provided; });
    EXPECT_EQ(stream_of_launch(), provided);
    provided = make_stream();
    EXPECT_EQ(stream_of_launch(), provided);
    cuda::set_current_stream_provider(nullptr);
    EXPECT_EQ(stream_of_launch(), nullptr);
}

TEST_F(CudaStream, AnExplicitStreamComesFirstAlsoANullOne) {
    provided = make_stream();
    auto* given = make_stream();
    cuda::set_current_stream_provider([] { return provided; });
    EXPECT_EQ(stream_of_launch({.stream = given}), given);
    EXPECT_EQ(stream_of_launch({.stream = nullptr}), nullptr);
    jit->default_launch_options.stream = given;
    EXPECT_EQ(stream_of_launch(), given);
    EXPECT_EQ(stream_of_launch({.stream = nullptr}), nullptr);
}

TEST_F(CudaStream, PyTorchIsFoundWhenItIsLoadedAfterTheFirstLaunch) {
    const auto path = build_torch();
    in_child([&] {
        start_again();
        ASSERT_EQ(stream_of_launch(), nullptr);
        void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library, nullptr) << ::dlerror();
        const auto set = reinterpret_cast<void (*)(void*)>(::dlsym(library, "torch_set_stream"));
        auto* stream = make_stream();
        set(stream);
        EXPECT_EQ(stream_of_launch(), stream);
        // Asked for the current device's.
        EXPECT_EQ(*static_cast<std::int32_t*>(::dlsym(library, "torch_device")), -1);
        // Each thread has its own, and asks anew.
        set(nullptr);
        EXPECT_EQ(stream_of_launch(), nullptr);
        std::thread([&] {
            set(stream);
            EXPECT_EQ(stream_of_launch(), stream);
        }).join();
        EXPECT_EQ(stream_of_launch(), nullptr);
        set(stream);
        EXPECT_EQ(stream_of_launch({.stream = nullptr}), nullptr);
        provided = make_stream();
        cuda::set_current_stream_provider([] { return provided; });
        EXPECT_EQ(stream_of_launch(), provided);
    });
}

TEST_F(CudaStream, PyTorchIsFoundByAnyThread) {
    const auto path = build_torch();
    in_child([&] {
        start_again();
        std::thread([&] { EXPECT_EQ(stream_of_launch(), nullptr); }).join();
        void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
        ASSERT_NE(library, nullptr) << ::dlerror();
        const auto set = reinterpret_cast<void (*)(void*)>(::dlsym(library, "torch_set_stream"));
        std::vector<CUstream> streams(8);
        for (auto& stream : streams) stream = make_stream();
        std::vector<std::thread> threads;
        for (auto* stream : streams)
            threads.emplace_back([&, stream] {
                set(stream);
                EXPECT_EQ(cuda::current_stream(), stream);
            });
        for (auto& thread : threads) thread.join();
    });
}

TEST_F(CudaStream, PyTorchIsKeptOnceItWasFound) {
    const auto path = build_torch();
    in_child([&] {
        start_again();
        void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library, nullptr) << ::dlerror();
        auto* stream = make_stream();
        reinterpret_cast<void (*)(void*)>(::dlsym(library, "torch_set_stream"))(stream);
        EXPECT_EQ(stream_of_launch(), stream);
        ::dlclose(library);
        EXPECT_EQ(stream_of_launch(), stream);
    });
}

TEST_F(CudaStream, AFailureOfPyTorchIsAnErrorOfTheLaunch) {
    const auto path = build_torch();
    in_child([&] {
        start_again();
        void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library, nullptr) << ::dlerror();
        *static_cast<std::int32_t*>(::dlsym(library, "torch_fails")) = 1;
        EXPECT_CONTAINS(message_of<LaunchError>([&] { stream_of_launch(); }),
                        "set LaunchOptions::stream");
        EXPECT_EQ(stream_of_launch({.stream = nullptr}), nullptr);
    });
}

TEST_F(CudaStream, OneWithoutTheFunctionIsPassedOver) {
    write(temp / "old.c", "int nothing_of_interest;\n");
    const auto built =
        call_external_command({"cc", "-shared", "-fPIC", "-Wl,-soname,libtorch_cuda.so", "-o",
                               (temp / "libtorch_cuda.so").string(), (temp / "old.c").string()});
    ASSERT_TRUE(built.ok()) << built.output;
    in_child([&] {
        start_again();
        ASSERT_NE(::dlopen((temp / "libtorch_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL), nullptr);
        EXPECT_EQ(stream_of_launch(), nullptr);
    });
}

}  // namespace
