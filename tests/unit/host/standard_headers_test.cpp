// Kernels that include the standard library, whose headers have names of CUDA's among theirs.
#include <string>
#include <vector>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class HostStandardHeaders : public HostTest, public testing::WithParamInterface<const char*> {
protected:
    void SetUp() override {
        if (host::detail::search_path(GetParam()).empty())
            GTEST_SKIP() << GetParam() << " is not installed";
        compiler_env_.set(GetParam());
    }
};

INSTANTIATE_TEST_SUITE_P(Host, HostStandardHeaders, testing::Values("g++", "clang++"),
                         [](const auto& info) {
                             return info.param == std::string("g++") ? "Gcc" : "Clang";
                         });

// libstdc++ writes __attribute__((__noinline__)).
TEST_P(HostStandardHeaders, MayBeIncludedByAKernel) {
    HostJit jit = make();
    const auto kernel = jit.compile("standard", R"(
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

__noinline__ int twice(int x) { return 2 * x; }
__forceinline__ int thrice(int x) { return 3 * x; }

__global__ void k(int* out, int n) {
    const auto kept = std::make_shared<std::map<std::string, int>>();
    for (int i = 0; i < n; ++i) (*kept)["key " + std::to_string(i)] = i;
    std::vector<int> values;
    for (const auto& [key, value] : *kept) values.push_back(twice(value) + thrice(1));
    std::sort(values.begin(), values.end());
    try {
        values.at(values.size());
    } catch (const std::out_of_range&) {
        values.push_back(-1);
    }
    std::copy(values.begin(), values.end(), out);
}
)");
    std::vector<int> out(13, 77);
    run_once(jit, kernel, out.data(), 12);
    std::vector<int> expected;
    for (int i = 0; i < 12; ++i) expected.push_back(2 * i + 3);
    expected.push_back(-1);
    EXPECT_EQ(out, expected);
}

}  // namespace
