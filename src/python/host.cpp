#include <deep_jit/backend/host/backend.hpp>
#include <deep_jit/python/adapter.hpp>

#include "backends.hpp"

std::shared_ptr<deep_jit::python::AnyRuntime> deep_jit::python::make_host_runtime(
    const Config& config) {
    return std::make_shared<RuntimeAdapter<Host>>(std::make_shared<Runtime<Host>>(config));
}
