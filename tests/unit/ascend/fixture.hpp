// What the tests that run on the stand-in CANN share.
#pragma once

#include <deep_jit/backend/ascend/backend.hpp>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stand_in/cann/stand_in_cann.hpp"
#include "unit/support.hpp"

namespace deep_jit_test {

using JIT = deep_jit::Runtime<deep_jit::Ascend>;
namespace driver = deep_jit::ascend::driver;
namespace acl = deep_jit::ascend::acl;

/// The stand-in's toolkit and ACL, freshly started, and a cache of its own. Skipped where
/// libascendcl.so is something else.
class AscendStandIn : public testing::Test {
protected:
    void SetUp() override {
        void* library = ::dlopen("libascendcl.so", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr || ::dlsym(library, "dj_stand_in_cann_version") == nullptr)
            GTEST_SKIP() << "libascendcl.so is not the stand-in";
        stand_in = std::make_unique<stand_in::StandInCann>(library);
        restart();
    }

    /// As a new process that finds these devices and this CANN.
    void restart(const char* soc_name = "Ascend910B2", int count = 1,
                 const char* cann_version = "9.1.0") const {
        soc.set(soc_name);
        devices.set(std::to_string(count));
        version.set(cann_version);
        stand_in->restart();
        driver::detail::initialized_by.store(0);
        deep_jit::ascend::set_current_stream_provider(nullptr);
    }

    deep_jit::Config config() const { return deep_jit::Config(temp.path(), "NPUTEST"); }
    std::string logged() const { return fs::exists(temp / "log") ? slurp(temp / "log") : ""; }

    static void use_device(int device) {
        driver::initialize();
        DJ_ACL_CHECK(driver::lazy_aclrtSetDevice(device));
    }
    static void synchronize(void* stream = nullptr) {
        DJ_ACL_CHECK(driver::lazy_aclrtSynchronizeStream(stream));
    }
    static void* make_stream() {
        void* out = nullptr;
        DJ_ACL_CHECK(driver::lazy_aclrtCreateStream(&out));
        return out;
    }

    TempDir temp;
    std::unique_ptr<stand_in::StandInCann> stand_in;
    mutable ScopedEnv soc{"DJ_STAND_IN_CANN_SOC"}, devices{"DJ_STAND_IN_CANN_DEVICES"},
        version{"DJ_STAND_IN_CANN_VERSION"};
    ScopedEnv attributes{"DJ_STAND_IN_CANN_NO_ATTRIBUTES"};
    ScopedEnv programs{"DJ_STAND_IN_CANN_LOG", (temp / "programs").string()};
    ScopedEnv home{"ASCEND_HOME_PATH", DEEP_JIT_TEST_CANN};
    ScopedEnv cache{"NPUTEST_JIT_CACHE_DIR", (temp / "cache").string()};
    ScopedEnv log{"NPUTEST_JIT_LOG_FILE", (temp / "log").string()};
    ScopedEnv arch{"NPUTEST_JIT_ARCH"}, blocking{"ASCEND_LAUNCH_BLOCKING"};
};

/// Memory of the device with a copy of `values`.
template <typename T>
class DeviceArray {
public:
    explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
        void* memory = nullptr;
        DJ_ACL_CHECK(driver::lazy_aclrtMalloc(&memory, bytes(), acl::MallocPolicy::kHugeFirst));
        data_ = static_cast<T*>(memory);
        DJ_ACL_CHECK(driver::lazy_aclrtMemcpy(data_, bytes(), values.data(), bytes(),
                                              acl::MemcpyKind::kHostToDevice));
    }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    ~DeviceArray() { driver::lazy_aclrtFree(data_); }

    T* data() const { return data_; }
    /// What is there once the default stream is done.
    std::vector<T> values() const {
        DJ_ACL_CHECK(driver::lazy_aclrtSynchronizeDevice());
        std::vector<T> out(count_);
        DJ_ACL_CHECK(driver::lazy_aclrtMemcpy(out.data(), bytes(), data_, bytes(),
                                              acl::MemcpyKind::kDeviceToHost));
        return out;
    }

private:
    std::size_t bytes() const { return count_ * sizeof(T); }

    std::size_t count_;
    T* data_ = nullptr;
};

/// Runs `body` in a forked child; what it expects is expected.
inline void in_child(const std::function<void()>& body) {
    const auto result = run_child([&] {
        body();
        std::fflush(stdout);
        return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_TRUE(result.ok()) << result;
}

inline constexpr const char* kNothing = "extern \"C\" __global__ __aicore__ void nothing() {}\n";
inline constexpr const char* kScale = R"(
extern "C" __global__ __aicore__ void scale(__gm__ float* output, __gm__ const float* input,
                                            int32_t count) {
    for (int64_t i = block_idx; i < count; i += block_num) output[i] = input[i] * 2.0f;
}
)";

}  // namespace deep_jit_test
