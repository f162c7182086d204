// Runtime<CUDA> from source to launch: what is compiled when, and what a hit does without.
#include <thread>

#include "unit/cuda/fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class CudaRuntime : public CudaStandIn {
protected:
    void SetUp() override {
        CudaStandIn::SetUp();
        if (!IsSkipped())
            nvcc = std::make_unique<FakeNvcc>(cubin_of(kScale));
    }
    static json meta_of(const fs::path& entry) { return json::parse(slurp(entry / "meta.json")); }

    std::unique_ptr<FakeNvcc> nvcc;
};

TEST_F(CudaRuntime, ColdThenFromMemoryThenFromDisk) {
    JIT jit(config());
    const auto kernel = jit.compile("scale", kScale);
    EXPECT_EQ(kernel->name(), "scale");
    EXPECT_EQ(nvcc->compilations(), 1U);
    EXPECT_EQ(jit.compile("scale", kScale), kernel);
    EXPECT_EQ(stand_in->library_loads(), 1U);
    const auto starts = nvcc->starts();

    JIT second(config());
    const auto again = second.compile("scale", kScale);
    EXPECT_NE(again, kernel);
    EXPECT_EQ(again->name(), "scale");
    EXPECT_EQ(stand_in->library_loads(), 2U);
    EXPECT_EQ(nvcc->starts(), starts);  // not even for its version
}

TEST_F(CudaRuntime, AHitNeedsNoCompiler) {
    JIT jit(config());
    const auto kernel = jit.compile("scale", kScale);
    const auto path = jit.compile_without_load("scale", kScale);
    fs::remove(nvcc->path());
    EXPECT_EQ(jit.compile("scale", kScale), kernel);
    EXPECT_EQ(jit.compile_without_load("scale", kScale), path);
    EXPECT_THROW(jit.compile("scale", "// another"), Error);
}

TEST_F(CudaRuntime, CompilingAloneAsksNoDriver) {
    restart("none");
    arch.set("100f");
    JIT jit(config());
    const auto path = jit.compile_without_load("scale", kScale);
    EXPECT_EQ(path.filename().string(), "scale." + jit.cache_key(kScale));
    EXPECT_EQ(path.parent_path(), temp / "cache" / "cache");
    EXPECT_TRUE(fs::exists(path / "kernel.cubin"));
    EXPECT_EQ(stand_in->calls(), 0U);
    EXPECT_CONTAINS(slurp(path / "meta.json"), "--gpu-architecture=sm_100f");
}

TEST_F(CudaRuntime, TheArchitectureIsTheDevicesUnlessGiven) {
    restart("8.9");
    JIT jit(config());
    EXPECT_CONTAINS(slurp(jit.compile_without_load("scale", kScale) / "meta.json"),
                    "--gpu-architecture=sm_89");
    EXPECT_CONTAINS(slurp(jit.compile_without_load("scale", kScale, {.arch = "75"}) / "meta.json"),
                    "--gpu-architecture=sm_75");
}

TEST_F(CudaRuntime, CodeForAnotherDeviceIsCompiledButNotLoaded) {
    arch.set("100a");
    nvcc->produce(cubin_of(kScale, "100a"));
    JIT jit(config());
    EXPECT_NO_THROW(jit.compile_without_load("scale", kScale));
    const auto text = message_of<LoadError>([&] { jit.compile("scale", kScale); });
    EXPECT_CONTAINS(text, "scale." + jit.cache_key(kScale));
    EXPECT_CONTAINS(text, "compiled for sm_100");
    EXPECT_CONTAINS(text, "sm_90)");
}

TEST_F(CudaRuntime, TwoKernelsAreAnErrorOfLoadingOnly) {
    nvcc->produce(cubin_of(
        "extern \"C\" __global__ void first() {}\nextern \"C\" __global__ void second() {}\n"));
    JIT jit(config());
    EXPECT_NO_THROW(jit.compile_without_load("two", kScale));
    EXPECT_CONTAINS(message_of<LoadError>([&] { jit.compile("two", kScale); }),
                    "expected exactly one kernel");
}

TEST_F(CudaRuntime, MetaHoldsWhatTheSeedSays) {
    fs::create_directories(temp / "include");
    JIT jit(Config(temp.path(), "CUDATEST", "cutlass-40000", {temp / "include"}, {"mine/"}));
    const auto meta =
        meta_of(jit.compile_without_load("scale", kScale, {.extra_nvcc_flags = {"-DX=1"}}));
    const auto* config = meta.find("config");
    ASSERT_NE(config, nullptr);
    EXPECT_EQ(config->get<std::string>("python_library_root"), temp.path().string());
    EXPECT_EQ(config->get<std::string>("extra_signature"), "cutlass-40000");
    EXPECT_EQ(config->get<json::array_t>("include_dirs")->at(0), json((temp / "include").string()));
    EXPECT_EQ(config->get<json::array_t>("include_prefixes")->at(0), json("mine/"));
    const auto* compiler = meta.find("compiler_info");
    ASSERT_NE(compiler, nullptr);
    EXPECT_EQ(compiler->get<std::string>("path"), nvcc->path().string());
    EXPECT_CONTAINS(*compiler->get<std::string>("version"), "release 13.0");
    const auto* options = meta.find("compiler_options");
    ASSERT_NE(options, nullptr);
    EXPECT_EQ(options->get<std::string>("arch"), "90a");
    EXPECT_EQ(options->get<json::array_t>("extra_nvcc_flags")->at(0), json("-DX=1"));
    EXPECT_EQ(*options->find("post_hook"), json());
    std::string command;
    const auto words = meta.get<json::array_t>("command");
    ASSERT_TRUE(words.has_value());
    for (const auto& word : *words) command += *word.get_if<std::string>() + "\n";
    EXPECT_CONTAINS(command, "\n-DX=1\n");
    EXPECT_CONTAINS(command, "\n--include-path\n");
}

TEST_F(CudaRuntime, DumpsAreNotAddedToWhatIsThere) {
    JIT jit(config());
    const auto path = jit.compile_without_load("scale", kScale);
    EXPECT_EQ(jit.compile_without_load("scale", kScale, {.dump_ptx = true}), path);
    EXPECT_FALSE(fs::exists(path / "kernel.ptx"));
    EXPECT_EQ(nvcc->compilations(), 1U);
}

TEST_F(CudaRuntime, OptionsMakeKernelsOfTheirOwn) {
    JIT jit(config());
    const auto plain = jit.compile("scale", kScale);
    const auto fast = jit.compile("scale", kScale, {.fast_math = true});
    const auto defined = jit.compile("scale", kScale, {.extra_nvcc_flags = {"-DX"}});
    EXPECT_EQ(nvcc->compilations(), 3U);
    EXPECT_NE(plain, fast);
    EXPECT_EQ(jit.compile("scale", kScale, {.fast_math = true}), fast);
    jit.default_compiler_options.fast_math = true;
    EXPECT_EQ(jit.compile("scale", kScale), fast);
    EXPECT_EQ(jit.compile("scale", kScale, {.fast_math = false}), plain);
    EXPECT_EQ(jit.compile("scale", kScale, {.fast_math = false, .extra_nvcc_flags = {"-DX"}}),
              defined);
    EXPECT_EQ(nvcc->compilations(), 3U);
}

TEST_F(CudaRuntime, ThreadsThatWantTheSameKernelCompileItOnce) {
    nvcc->behave("sleep 0.3; cp \"$(dirname \"$0\")/kernel.cubin\" \"$4\"");
    JIT jit(config());
    std::vector<std::shared_ptr<cuda::Kernel>> kernels(8);
    std::vector<std::thread> threads;
    for (auto& kernel : kernels)
        threads.emplace_back([&] { kernel = jit.compile("scale", kScale); });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(nvcc->compilations(), 1U);
    EXPECT_EQ(stand_in->library_loads(), 1U);
    for (const auto& kernel : kernels) EXPECT_EQ(kernel, kernels[0]);
}

TEST_F(CudaRuntime, ThreadsCompileAndLaunchDifferentKernels) {
    use_device(0);
    JIT jit(config());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            const float* pointer = nullptr;
            for (int round = 0; round < 20; ++round)
                jit.launch(jit.compile("scale", kScale + std::to_string(i + round % 3) + "\n"),
                           {.grid_dim = dim3(1), .block_dim = dim3(32)}, pointer, pointer, i);
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(stand_in->launch_count(), 80U);
    EXPECT_EQ(nvcc->compilations(), 6U);
    EXPECT_EQ(stand_in->live_libraries(), 6U);
}

TEST_F(CudaRuntime, AFailureIsNotRemembered) {
    nvcc->behave("echo 'out of luck'; exit 2");
    JIT jit(config());
    EXPECT_CONTAINS(message_of<CompileError>([&] { jit.compile("scale", kScale); }), "out of luck");
    nvcc->produce(cubin_of(kScale));
    EXPECT_EQ(jit.compile("scale", kScale)->name(), "scale");
}

TEST_F(CudaRuntime, WhatTheHookMadeIsWhatIsLoaded) {
    write(temp / "other.cubin", cubin_of(kNothing));
    write(temp / "hook.py",
          "import shutil, sys\nshutil.copy(sys.path[0] + '/other.cubin', sys.argv[1])\n");
    JIT jit(config());
    EXPECT_EQ(jit.compile("scale", kScale, {.post_hook = "hook.py"})->name(), "nothing");
    EXPECT_EQ(jit.compile("scale", kScale)->name(), "scale");
}

TEST_F(CudaRuntime, ADamagedArtifactIsRebuiltAndNeverLoaded) {
    const auto path = JIT(config()).compile_without_load("scale", kScale);
    fs::resize_file(path / "kernel.cubin", 1000);
    JIT jit(config());
    EXPECT_EQ(jit.compile("scale", kScale)->name(), "scale");
    EXPECT_EQ(nvcc->compilations(), 2U);
    EXPECT_EQ(stand_in->calls("cuLibraryLoadData"), 1U);
}

TEST_F(CudaRuntime, KernelsOutliveTheirRuntimeAndAreUnloadedAtTheEnd) {
    use_device(0);
    auto jit = std::make_unique<JIT>(config());
    auto kernel = jit->compile("scale", kScale);
    jit->compile("other", kScale);
    EXPECT_EQ(stand_in->live_libraries(), 2U);
    jit.reset();
    EXPECT_EQ(stand_in->live_libraries(), 1U);
    JIT another(config());
    const float* pointer = nullptr;
    another.launch(kernel, {.grid_dim = dim3(1), .block_dim = dim3(32)}, pointer, pointer, 1);
    kernel.reset();
    EXPECT_EQ(stand_in->live_libraries(), 0U);
}

}  // namespace
