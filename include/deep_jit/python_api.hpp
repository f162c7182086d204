// Gives the runtime of a pybind11 extension to Python.
//
//     PYBIND11_MODULE(_C, module) { deep_jit::register_python_api(module, my_library::jit); }
//
// Python then has `_C.get_jit()`: the runtime of that library, with compile(tag, source, **options)
// and kernels that can be launched. docs/python.md describes it.
#pragma once

#include <exception>
#include <memory>

#include <pybind11/pybind11.h>

#include <deep_jit/python/adapter.hpp>
#include <deep_jit/python/runtime_object.hpp>
#include <deep_jit/runtime/runtime.hpp>
#include <deep_jit/utils/lazy.hpp>

namespace deep_jit {

/// Adds `get_jit()` to the module. The first call makes the runtime, if nothing has so far; every
/// call returns the same object. `lazy` must live as long as the process, and not be assigned to
/// once `get_jit()` was called. Errors of deep_jit that functions of this module throw become the
/// Python classes `deep_jit.Error` and below, all of them RuntimeErrors. Types and state belong to
/// the module: other extensions of the process may register theirs.
template <Backend B>
void register_python_api(pybind11::module_& module, LazyInit<Runtime<B>>& lazy) {
    namespace py = pybind11;
    try {
        python::prepare_types();
    } catch (const python::PythonError&) {
        throw py::error_already_set();
    }
    py::register_local_exception_translator([](std::exception_ptr error) {
        try {
            if (error != nullptr)
                std::rethrow_exception(error);
        } catch (const Error&) {
            python::set_current_error();
        }
    });
    LazyInit<Runtime<B>>* const found = &lazy;
    PyObject* known = nullptr;
    module.def(
        "get_jit",
        [found, known]() mutable {
            if (known == nullptr) {
                std::shared_ptr<python::AnyRuntime> runtime;
                {
                    const py::gil_scoped_release allow;
                    // The library owns it.
                    runtime = std::make_shared<python::RuntimeAdapter<B>>(
                        std::shared_ptr<Runtime<B>>(&found->get(), [](Runtime<B>*) {}));
                }
                try {
                    auto made = python::make_runtime_object(std::move(runtime));
                    // Another thread may have been faster.
                    if (known == nullptr)
                        known = made.release();
                } catch (const python::PythonError&) {
                    throw py::error_already_set();
                }
            }
            return py::reinterpret_borrow<py::object>(known);
        },
        "The JIT runtime of this library; made at the first call.");
}

}  // namespace deep_jit
