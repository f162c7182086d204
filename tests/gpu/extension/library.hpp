// What the extension's sources share.
#pragma once

#include <pybind11/pybind11.h>

#include <deep_jit/backend/cuda/backend.hpp>

// EXTENSION_PREFIX: prefix of the library's environment variables, a string.

// Every library has a namespace of its own: the dynamic linker merges inline variables of the same
// name, also of libraries that do not know each other.
namespace TORCH_EXTENSION_NAME {

inline deep_jit::Config config() { return deep_jit::Config("/", EXTENSION_PREFIX); }

inline auto jit = deep_jit::create_lazy_jit<deep_jit::CUDA>(config());

/// Functions to measure launches with.
void register_launches(pybind11::module_& module);

}  // namespace TORCH_EXTENSION_NAME

namespace library = TORCH_EXTENSION_NAME;
