// What the documentation of the library shows compiles as it is, with no header of CANN, torch or
// torch_npu.
#include <deep_jit/backend/ascend/backend.hpp>

#include "unit/support.hpp"

#ifdef ACL_SUCCESS
#error "this has to compile without CANN"
#endif

namespace snippet {

inline auto jit = deep_jit::create_lazy_jit<deep_jit::Ascend>(
    deep_jit::Config("/absolute/path/to/my_library", "MYLIB", {},
                     {"/absolute/path/to/my_library/include"}, {"my_library/"}));

void launch_scale(const std::string& source, int num_blocks, float* output, const float* input,
                  int count) {
    const auto kernel = jit->compile("scale", source);
    jit->launch(kernel, {.num_blocks = num_blocks}, output, input, count);
}

using JIT = deep_jit::Runtime<deep_jit::Ascend>;

void every_option(JIT* jit, const std::string& source, void* stream) {
    deep_jit::ascend::CompilerOptions options{
        .optimize_level = "2",
        .arch = jit->device.get_npu_arch(),
        .debug_info = true,
        .dump_asm = true,
        .bisheng_flags = std::vector<std::string>{"--cce-aicore-only"},
        .linker_flags = std::vector<std::string>{"-m", "aicorelinux"},
        .extra_bisheng_flags = {"-DMY_OPTION=1"},
        .extra_linker_flags = {"-static"},
    };
    const std::shared_ptr<deep_jit::ascend::Kernel> kernel = jit->compile("scale", source, options);
    jit->launch(
        kernel,
        {.stream = stream, .num_blocks = 8, .num_ubuf_bytes = 1024, .num_launch_timeout_secs = 60},
        nullptr, 1);
    jit->default_compiler_options.bisheng_flags->emplace_back("-DALL=1");
    jit->default_launch_options.num_launch_timeout_secs = 0;
    const std::string soc_name = jit->device.get_prop().soc_name;
    const int numbers[] = {jit->device.get_num_sms(),
                           jit->device.get_num_aicore_cores(),
                           jit->device.get_num_vec_cores(),
                           jit->device.get_num_cube_cores(),
                           jit->device.get_num_vec_cores_per_ai_core(),
                           jit->device.get_num_ubuf_bytes_per_vec_core(),
                           jit->device.get_num_l2_cache_bytes()};
    DJ_HOST_ASSERT(numbers[0] > 0, "no cores in {}", soc_name);
    DJ_ACL_CHECK(deep_jit::ascend::driver::lazy_aclrtSynchronizeStream(stream));
}

}  // namespace snippet

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

TEST(AscendSnippets, ARuntimeIsMadeWithoutToolkitOrDevice) {
    const TempDir temp;
    const ScopedEnv cache("MYLIB_JIT_CACHE_DIR", temp.path().string());
    const ScopedEnv home("ASCEND_HOME_PATH", "/nonexistent");
    EXPECT_EQ(snippet::jit->default_launch_options.num_launch_timeout_secs, 10);
    EXPECT_FALSE(snippet::jit->default_compiler_options.arch.has_value());
    EXPECT_NE(&snippet::launch_scale, nullptr);
    EXPECT_NE(&snippet::every_option, nullptr);
}

TEST(AscendSnippets, ANullKernelIsRefused) {
    const TempDir temp;
    const ScopedEnv cache("MYLIB_JIT_CACHE_DIR", temp.path().string());
    const snippet::JIT jit(Config(temp.path(), "MYLIB"));
    EXPECT_CONTAINS(message_of<LaunchError>([&] { jit.launch(nullptr, {.num_blocks = 1}); }),
                    "kernel must not be null");
}

}  // namespace
