// Forks and the end of the process: what is used when, and what must not be called any more.
#include "unit/cuda/fixture.hpp"
#include "unit/cuda/rerun.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

/// As a kernel library has it: made before anything else, destroyed after everything else.
LazyInit<JIT> global_jit = create_lazy_jit<CUDA>(Config("/", "CUDATEST"));
std::shared_ptr<cuda::Kernel> global_kernel;

void launch_nothing(JIT& jit, const std::shared_ptr<cuda::Kernel>& kernel) {
    jit.launch(kernel, {.grid_dim = dim3(1), .block_dim = dim3(32)});
}

class CudaProcess : public CudaStandIn {
protected:
    void SetUp() override {
        CudaStandIn::SetUp();
        if (IsSkipped())
            return;
        nvcc = std::make_unique<FakeNvcc>(cubin_of(kNothing));
        exit_log.set((temp / "late calls").string());
    }
    std::string late_calls() const {
        return fs::exists(temp / "late calls") ? slurp(temp / "late calls") : "";
    }

    std::unique_ptr<FakeNvcc> nvcc;
    ScopedEnv exit_log{"DJ_STAND_IN_CUDA_EXIT_LOG"};
};

TEST_F(CudaProcess, AForkBeforeTheFirstUseWorksInBoth) {
    JIT jit(config());
    auto lazy = create_lazy_jit<CUDA>(config());
    const auto use = [&](JIT& one) {
        const auto kernel = one.compile("nothing", kNothing);
        launch_nothing(one, kernel);
        EXPECT_EQ(stand_in->last_launch().name, "nothing");
    };
    in_child([&] {
        use(jit);
        use(lazy.get());
    });
    use(jit);
    use(lazy.get());
    EXPECT_EQ(nvcc->compilations(), 1U);
}

TEST_F(CudaProcess, AForkAfterTheFirstUseLeavesTheChildWithCompilingOnly) {
    arch.set("90a");
    JIT jit(config());
    const auto kernel = jit.compile("nothing", kNothing);
    in_child([&] {
        EXPECT_TRUE(fs::exists(jit.compile_without_load("other", "// another") / "kernel.cubin"));
        EXPECT_EQ(jit.compile("nothing", kNothing), kernel);
        for (const auto& text :
             {message_of<LaunchError>([&] { launch_nothing(jit, kernel); }),
              message_of<LoadError>([&] { jit.compile("other", "// another"); })}) {
            EXPECT_CONTAINS(text, "CUDA_ERROR_NOT_INITIALIZED");
            EXPECT_CONTAINS(text,
                            "CUDA does not work in a child that was forked after its parent had "
                            "used it");
        }
    });
    launch_nothing(jit, kernel);
}

TEST_F(CudaProcess, AForkedChildUnloadsNothing) {
    auto jit = std::make_unique<JIT>(config());
    auto kernel = jit->compile("nothing", kNothing);
    in_child([&] {
        const auto calls = stand_in->calls();
        kernel->unload();
        EXPECT_EQ(kernel->kernel_handle, nullptr);
        kernel.reset();
        jit.reset();
        EXPECT_EQ(stand_in->calls(), calls);
    });
    launch_nothing(*jit, kernel);
    kernel.reset();
    jit.reset();
    EXPECT_EQ(stand_in->library_unloads(), 1U);
}

// --- Bodies that run as processes of their own -------------------------------------------------

TEST(CudaProcessBody, DISABLED_EndsWithKernelsAlive) {
    global_kernel = global_jit->compile("nothing", kNothing);
    launch_nothing(*global_jit, global_kernel);
    // Made later, so destroyed earlier; a kernel may outlive its runtime.
    static JIT later(Config("/", "CUDATEST"));
    static const auto kernel = later.compile("nothing", kNothing);
    launch_nothing(later, kernel);
}

TEST(CudaProcessBody, DISABLED_ExitsFromAThread) {
    global_kernel = global_jit->compile("nothing", kNothing);
    std::printf("[  PASSED  ] 1 test.\n");
    std::exit(0);
}

TEST(CudaProcessBody, DISABLED_ForksAndBothExit) {
    global_kernel = global_jit->compile("nothing", kNothing);
    const pid_t child = ::fork();
    if (child == 0)
        std::exit(0);  // runs destructors and exit handlers
    EXPECT_TRUE(wait_child(child).ok());
}

TEST(CudaProcessBody, DISABLED_ForksBeforeItsFirstUseAndBothExit) {
    const pid_t child = ::fork();
    global_kernel = global_jit->compile("nothing", kNothing);
    launch_nothing(*global_jit, global_kernel);
    if (child == 0)
        std::exit(testing::Test::HasFailure() ? 1 : 0);
    EXPECT_TRUE(wait_child(child).ok());
}

/// That late calls would be seen.
TEST(CudaProcessBody, DISABLED_CallsTheDriverTooLate) {
    std::atexit([] {
        int count = 0;
        driver::lazy_cuDeviceGetCount(&count);
    });
    global_kernel = global_jit->compile("nothing", kNothing);
}

TEST_F(CudaProcess, NothingIsCalledOnceTheProcessEnds) {
    EXPECT_RERUN("CudaProcessBody.DISABLED_CallsTheDriverTooLate");
    EXPECT_EQ(late_calls(), "cuDeviceGetCount\n");
    fs::remove(temp / "late calls");
    for (const char* body : {"EndsWithKernelsAlive", "ExitsFromAThread", "ForksAndBothExit",
                             "ForksBeforeItsFirstUseAndBothExit"}) {
        EXPECT_RERUN(std::string("CudaProcessBody.DISABLED_") + body);
        EXPECT_EQ(late_calls(), "") << body;
    }
}

TEST_F(CudaProcess, ProcessesShareWhatOneHasCompiled) {
    in_child([&] { JIT(config()).compile("nothing", kNothing); });
    EXPECT_EQ(nvcc->compilations(), 1U);
    const auto starts = nvcc->starts();
    in_child([&] { JIT(config()).compile("nothing", kNothing); });
    EXPECT_EQ(nvcc->starts(), starts);
}

}  // namespace
