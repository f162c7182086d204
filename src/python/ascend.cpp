#include <deep_jit/backend/ascend/backend.hpp>
#include <deep_jit/python/adapter.hpp>

#include "backends.hpp"

std::shared_ptr<deep_jit::python::AnyRuntime> deep_jit::python::make_ascend_runtime(
    const Config& config) {
    return std::make_shared<RuntimeAdapter<Ascend>>(std::make_shared<Runtime<Ascend>>(config));
}
