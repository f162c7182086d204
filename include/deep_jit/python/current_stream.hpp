// The stream of a launch that names none: that of the library which its arrays come from.
#pragma once

#include <cstdint>
#include <optional>

#include <deep_jit/python/object.hpp>
#include <deep_jit/python/type_info.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

namespace detail {

/// The C function of CuPy that tells the current stream, or null: it is not part of its interface.
inline std::intptr_t (*find_cupy_function())() {
    constexpr const char* kSignature = "intptr_t (void)";
    PyObject* const module = PyImport_ImportModule("cupy_backends.cuda.stream");
    if (module == nullptr) {
        PyErr_Clear();
        return nullptr;
    }
    const Ref owner = Ref::take(module);
    const Ref functions = try_attribute(module, "__pyx_capi__");
    PyObject* const capsule = functions && PyDict_Check(functions.get())
                                  ? PyDict_GetItemString(functions.get(), "get_current_stream_ptr")
                                  : nullptr;
    if (capsule == nullptr || PyCapsule_IsValid(capsule, kSignature) == 0)
        return nullptr;
    return reinterpret_cast<std::intptr_t (*)()>(PyCapsule_GetPointer(capsule, kSignature));
}

}  // namespace detail

/// CuPy's current stream of this thread.
inline std::uintptr_t cupy_stream() {
    static std::intptr_t (*function)() = nullptr;
    static PyObject* get_current = nullptr;
    static const Name ptr("ptr");
    if (function != nullptr) [[likely]]
        return static_cast<std::uintptr_t>(function());
    if (get_current == nullptr) {
        function = detail::find_cupy_function();
        if (function != nullptr)
            return static_cast<std::uintptr_t>(function());
        const Ref module = Ref::take(PyImport_ImportModule("cupy.cuda"));
        get_current = attribute(module.get(), "get_current_stream").release();
    }
    const Ref stream = Ref::take(PyObject_CallNoArgs(get_current));
    const Ref address = Ref::take(PyObject_GetAttr(stream.get(), ptr.get()));
    const auto value = PyLong_AsUnsignedLongLong(address.get());
    if (PyErr_Occurred() != nullptr)
        throw PythonError();
    return value;
}

/// The stream for a launch on a GPU whose first array is of this type and on device `index`.
/// Nothing: what the backend takes by itself, which is PyTorch's current stream or the default
/// one. Without an array of a known library it is PyTorch's, if that is imported, then CuPy's.
inline std::optional<std::uintptr_t> current_stream_for(const TypeInfo& array, int index) {
    static const Name torch("torch"), cupy("cupy");
    if (array.api != nullptr && array.api->current_stream != nullptr && index >= 0) {
        void* stream = nullptr;
        if (array.api->current_stream(dlpack::kCuda, index, &stream) == 0) [[likely]]
            return reinterpret_cast<std::uintptr_t>(stream);
        PyErr_Clear();
    }
    if (array.is_torch)
        return std::nullopt;
    if (array.is_cupy)
        return cupy_stream();
    PyObject* modules = PyImport_GetModuleDict();
    if (PyDict_GetItemWithError(modules, torch.get()) == nullptr &&
        PyDict_GetItemWithError(modules, cupy.get()) != nullptr)
        return cupy_stream();
    return std::nullopt;
}

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
