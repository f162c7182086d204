// The backends that this build of the package has, each compiled by itself.
#pragma once

#include <memory>

#include <deep_jit/python/interface.hpp>
#include <deep_jit/runtime/config.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

std::shared_ptr<AnyRuntime> make_host_runtime(const Config& config);
std::shared_ptr<AnyRuntime> make_cuda_runtime(const Config& config);
std::shared_ptr<AnyRuntime> make_ascend_runtime(const Config& config);

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
