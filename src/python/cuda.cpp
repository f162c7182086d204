#include <deep_jit/backend/cuda/backend.hpp>
#include <deep_jit/python/adapter.hpp>

#include "backends.hpp"

std::shared_ptr<deep_jit::python::AnyRuntime> deep_jit::python::make_cuda_runtime(
    const Config& config) {
    return std::make_shared<RuntimeAdapter<CUDA>>(std::make_shared<Runtime<CUDA>>(config));
}
