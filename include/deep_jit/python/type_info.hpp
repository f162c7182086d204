// What kind of argument the objects of a Python type are. Found out once for each type.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <deep_jit/python/dlpack.hpp>
#include <deep_jit/python/object.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

enum class ObjectKind : std::uint8_t {
    other,  ///< may still have __cuda_array_interface__ or __dlpack__ as attributes of its own
    integer,
    boolean,
    floating,
    bytes,
    numpy_boolean,
    numpy_integer,
    numpy_floating,
    numpy_other,     ///< complex, structured, dates, and types of other packages such as bfloat16
    ctypes_scalar,   ///< c_int and the like
    ctypes_struct,   ///< Structure, Union
    ctypes_pointer,  ///< POINTER(T), functions
    exchange,        ///< arrays with DLPack's C functions
    torch,
    cuda_array,  ///< has __cuda_array_interface__
    buffer,
    dlpack,
};

struct TypeInfo {
    ObjectKind kind = ObjectKind::other;
    bool is_torch = false;
    bool is_cupy = false;
    const dlpack::ExchangeApi* api = nullptr;
};

namespace detail {

inline const dlpack::ExchangeApi* exchange_api(PyTypeObject* type) {
    const Ref capsule =
        try_attribute(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__");
    if (!capsule || PyCapsule_IsValid(capsule.get(), "dlpack_exchange_api") == 0)
        return nullptr;
    const auto* api = static_cast<const dlpack::ExchangeApi*>(
        PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
    while (api != nullptr && api->version.major != dlpack::kMajorVersion) api = api->older;
    return api != nullptr && api->view != nullptr ? api : nullptr;
}

inline bool type_has(PyTypeObject* type, const char* name) {
    return static_cast<bool>(try_attribute(reinterpret_cast<PyObject*>(type), name));
}

inline TypeInfo classify(PyTypeObject* type) {
    TypeInfo out;
    ObjectKind known = ObjectKind::other;
    PyObject* bases = type->tp_mro;
    for (Py_ssize_t i = 0; bases != nullptr && i < PyTuple_GET_SIZE(bases); ++i) {
        const std::string_view name =
            reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i))->tp_name;
        const auto is = [&](std::string_view wanted, ObjectKind kind) {
            if (name == wanted && known == ObjectKind::other)
                known = kind;
        };
        is("numpy.bool", ObjectKind::numpy_boolean);
        is("numpy.bool_", ObjectKind::numpy_boolean);
        is("numpy.integer", ObjectKind::numpy_integer);
        is("numpy.floating", ObjectKind::numpy_floating);
        is("numpy.generic", ObjectKind::numpy_other);
        is("_ctypes._SimpleCData", ObjectKind::ctypes_scalar);
        is("_ctypes.Structure", ObjectKind::ctypes_struct);
        is("_ctypes.Union", ObjectKind::ctypes_struct);
        is("_ctypes._Pointer", ObjectKind::ctypes_pointer);
        is("_ctypes.CFuncPtr", ObjectKind::ctypes_pointer);
        is("_ctypes.PyCFuncPtr", ObjectKind::ctypes_pointer);
        out.is_torch =
            out.is_torch || (name.starts_with("torch._C.") && name.ends_with("TensorBase"));
        out.is_cupy = out.is_cupy || name.starts_with("cupy.");
    }
    if (known == ObjectKind::other) {
        out.api = exchange_api(type);
        if (out.api != nullptr)
            known = ObjectKind::exchange;
        else if (out.is_torch)
            known = ObjectKind::torch;
        else if (PyType_IsSubtype(type, &PyBool_Type))
            known = ObjectKind::boolean;
        else if (PyType_IsSubtype(type, &PyLong_Type))
            known = ObjectKind::integer;
        else if (PyType_IsSubtype(type, &PyFloat_Type))
            known = ObjectKind::floating;
        else if (PyType_IsSubtype(type, &PyBytes_Type))
            known = ObjectKind::bytes;
        else if (type_has(type, "__cuda_array_interface__"))
            known = ObjectKind::cuda_array;
        else if (type->tp_as_buffer != nullptr && type->tp_as_buffer->bf_getbuffer != nullptr)
            known = ObjectKind::buffer;
        else if (type_has(type, "__dlpack__"))
            known = ObjectKind::dlpack;
        else if (type->tp_as_number != nullptr && type->tp_as_number->nb_index != nullptr)
            known = ObjectKind::integer;
        else if (type->tp_as_number != nullptr && type->tp_as_number->nb_float != nullptr)
            known = ObjectKind::floating;
    }
    out.kind = known;
    return out;
}

}  // namespace detail

/// Of a type, from memory when it was asked for before. Needs the GIL.
inline TypeInfo type_info(PyTypeObject* type) {
    struct Entry {
        PyTypeObject* type = nullptr;  ///< kept alive: its address must not come to mean another
        TypeInfo info;
    };
    constexpr std::size_t kEntries = 64, kProbes = 8;
    static std::array<Entry, kEntries> entries;
    const auto home = (reinterpret_cast<std::uintptr_t>(type) >> 4) * 0x9e3779b97f4a7c15ULL >> 58;
    for (std::size_t i = 0; i < kProbes; ++i) {
        auto& entry = entries[(home + i) % kEntries];
        if (entry.type == type) [[likely]]
            return entry.info;
        if (entry.type == nullptr) {
            const TypeInfo info = detail::classify(type);
            // Looking at attributes may have run Python code that took the entry.
            if (entry.type != nullptr)
                break;
            Py_INCREF(type);
            entry = {type, info};
            return entry.info;
        }
    }
    return detail::classify(type);
}

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
