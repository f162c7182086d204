// What the tests of the stand-in CANN share: its programs, a started ACL, kernels in device memory.
#pragma once

#include <acl/acl.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stand_in/cann/stand_in_cann.hpp"
#include "unit/support.hpp"

#define ACL_OK(call) ASSERT_EQ(call, ACL_SUCCESS)
#define EXPECT_ACL_OK(call) EXPECT_EQ(call, ACL_SUCCESS)

namespace stand_in_test {

using namespace deep_jit_test;

struct ToolResult {
    int status = 0;
    std::string output;  ///< and errors
};

inline fs::path toolkit() { return DEEP_JIT_TEST_CANN; }

inline std::string kernel_source(const std::string& name) {
    return slurp(fs::path(DEEP_JIT_REPO_ROOT) / "tests/stand_in/cann/kernels" / (name + ".asc"));
}

/// Runs a program of the toolkit in `directory`.
inline ToolResult run_tool(const std::string& tool, const std::vector<std::string>& arguments,
                           const fs::path& directory) {
    const auto log = directory / ".tool.log";
    std::vector<std::string> words = {(toolkit() / "bin" / tool).string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        if (::chdir(directory.c_str()) != 0 || ::freopen(log.c_str(), "w", stdout) == nullptr ||
            ::dup2(1, 2) < 0)
            ::_exit(98);
        ::execv(argv[0], argv.data());
        ::_exit(99);
    }
    const auto result = wait_child(child, 60);
    EXPECT_FALSE(result.hung);
    return {WIFEXITED(result.status) ? WEXITSTATUS(result.status) : -1, slurp(log)};
}

inline std::vector<std::string> bisheng_flags(const std::string& arch = "dav-3510") {
    return {"-O2",
            "--npu-arch=" + arch,
            "--cce-aicore-only",
            "-mllvm",
            "-enable-hiipu-vf-loop-unroll",
            "-I" + (toolkit() / "asc/include/adv_api").string(),
            "kernel.asc",
            "-o",
            "kernel.rel.o"};
}

inline std::vector<std::string> linker_flags() {
    return {"-m",           "aicorelinux", "-Ttext",  "0", "--no-mmap-output-file",
            "kernel.rel.o", "-o",          "kernel.o"};
}

/// `flags` with `more` in front.
inline std::vector<std::string> with(std::vector<std::string> flags,
                                     const std::vector<std::string>& more) {
    flags.insert(flags.begin(), more.begin(), more.end());
    return flags;
}

/// Compiles and links; the bytes of kernel.o. Fails the test when a program does.
inline std::string build(const std::string& source, const std::string& arch = "dav-3510") {
    const TempDir directory("build");
    write(directory / "kernel.asc", source);
    for (const auto& [tool, flags] :
         {std::pair(std::string("bisheng"), bisheng_flags(arch)), {"ld.lld", linker_flags()}}) {
        const auto result = run_tool(tool, flags, directory.path());
        if (result.status != 0) {
            ADD_FAILURE() << tool << " failed: " << result.output;
            return {};
        }
    }
    return slurp(directory / "kernel.o");
}

/// The linked object of a kernel in tests/stand_in/cann/kernels; built once.
inline const std::string& kernel_object(const std::string& name) {
    static std::map<std::string, std::string> built;
    auto& out = built[name];
    if (out.empty())
        out = build(kernel_source(name));
    return out;
}

/// A started ACL with device 0 set, as the test's environment has it.
class AclTest : public testing::Test {
protected:
    void SetUp() override {
        stand_in.restart();
        ACL_OK(aclInit(nullptr));
        ACL_OK(aclrtSetDevice(0));
    }
    void TearDown() override { stand_in.restart(); }

    /// As a new process, with what the environment says now.
    void start() { AclTest::SetUp(); }

    aclrtFuncHandle load(const std::string& object, const char* name) {
        EXPECT_ACL_OK(aclrtBinaryLoadFromData(object.data(), object.size(), nullptr, &binary));
        aclrtFuncHandle out = nullptr;
        EXPECT_ACL_OK(aclrtBinaryGetFunction(binary, name, &out));
        return out;
    }
    aclrtFuncHandle kernel(const std::string& name) {
        return load(kernel_object(name), name.c_str());
    }

    template <typename T>
    T* to_device(const std::vector<T>& values) {
        void* out = nullptr;
        const auto bytes = values.size() * sizeof(T);
        EXPECT_ACL_OK(aclrtMalloc(&out, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
        EXPECT_ACL_OK(aclrtMemcpy(out, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
        return static_cast<T*>(out);
    }
    template <typename T>
    std::vector<T> to_host(const T* from, std::size_t count) {
        std::vector<T> out(count);
        const auto bytes = count * sizeof(T);
        EXPECT_ACL_OK(aclrtMemcpy(out.data(), bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
        return out;
    }

    /// Packs by the rule of the compiler: aligned to max(4, alignment), in all a multiple of 8.
    template <typename... Arguments>
    static std::string pack(const Arguments&... arguments) {
        std::string out;
        [[maybe_unused]] const auto add = [&](const auto& value) {
            const auto align = std::max<std::size_t>(4, alignof(decltype(value)));
            out.resize((out.size() + align - 1) / align * align);
            out.append(reinterpret_cast<const char*>(&value), sizeof(value));
        };
        (add(arguments), ...);
        out.resize(std::max<std::size_t>((out.size() + 7) / 8 * 8, 8));
        return out;
    }

    template <typename... Arguments>
    aclError launch(aclrtFuncHandle function, std::uint32_t blocks, aclrtStream stream,
                    const Arguments&... arguments) {
        auto bytes = pack(arguments...);
        return aclrtLaunchKernelWithHostArgs(function, blocks, stream, nullptr, bytes.data(),
                                             bytes.size(), nullptr, 0);
    }
    /// The same with attributes.
    template <typename... Arguments>
    aclError launch_with(std::vector<aclrtLaunchKernelAttr> attributes, aclrtFuncHandle function,
                         std::uint32_t blocks, const Arguments&... arguments) {
        auto bytes = pack(arguments...);
        aclrtLaunchKernelCfg config{attributes.data(), attributes.size()};
        return aclrtLaunchKernelWithHostArgs(function, blocks, nullptr, &config, bytes.data(),
                                             bytes.size(), nullptr, 0);
    }

    static aclrtLaunchKernelAttr dynamic_ub(std::uint32_t bytes) {
        aclrtLaunchKernelAttr out{};
        out.id = ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE;
        out.value.dynUBufSize = bytes;
        return out;
    }
    static aclrtLaunchKernelAttr timeout(std::uint16_t seconds) {
        aclrtLaunchKernelAttr out{};
        out.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT;
        out.value.timeout = seconds;
        return out;
    }
    static aclrtLaunchKernelAttr timeout_us(std::uint32_t microseconds) {
        aclrtLaunchKernelAttr out{};
        out.id = ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US;
        out.value.timeoutUs.timeoutLow = microseconds;
        return out;
    }

    static std::string message() {
        const char* out = aclGetRecentErrMsg();
        return out != nullptr ? out : "";
    }

    stand_in::StandInCann stand_in;
    aclrtBinHandle binary = nullptr;
};

/// 0, 1, 2, ... in steps.
inline std::vector<float> ramp(std::size_t count, float step = 1, float start = 0) {
    std::vector<float> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = start + step * static_cast<float>(i);
    return out;
}

}  // namespace stand_in_test
