// The keywords of a launch: grid=, block=, stream= and so on.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include <deep_jit/python/interface.hpp>
#include <deep_jit/python/object.hpp>
#include <deep_jit/python/values.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

/// A Python object: its header, a place for a vectorcall function, and a C++ value.
struct ObjectHead {
    PyObject_HEAD vectorcallfunc vectorcall;
};
template <typename T>
struct Object : ObjectHead {
    T value;
};

/// The C++ value of a Python object that is known to be of the type for T.
template <typename T>
T& value_of(PyObject* object) {
    return static_cast<Object<T>*>(reinterpret_cast<ObjectHead*>(object))->value;
}

struct StreamValue {
    std::shared_ptr<AnyStream> stream;
};

/// The Python types of this module; made when it is imported.
struct Types {
    PyTypeObject* runtime = nullptr;
    PyTypeObject* kernel = nullptr;
    PyTypeObject* launcher = nullptr;
    PyTypeObject* stream = nullptr;
    PyTypeObject* parameter = nullptr;
};
inline Types types;

namespace detail {

inline const std::array<PyObject*, LaunchSettings::kNumFields>& setting_names() {
    static const auto names = [] {
        std::array<PyObject*, LaunchSettings::kNumFields> out{};
        std::size_t i = 0;
        for (const char* name : {"grid", "block", "cluster", "smem", "stream", "cooperative", "pdl",
                                 "nonportable_cluster", "num_threads", "timeout"})
            out[i++] = Name(name).get();
        return out;
    }();
    return names;
}

inline unsigned read_extent(PyObject* object, const char* what) {
    long long value = -1;
    if (PyLong_CheckExact(object)) [[likely]] {
        int overflow = 0;
        value = PyLong_AsLongLongAndOverflow(object, &overflow);
        value = overflow != 0 ? -1 : value;
    } else {
        const Ref number = Ref::take_or_null(PyNumber_Index(object));
        if (!number)
            raise(PyExc_TypeError, "{} must be an int or up to three of them, not {}", what,
                  Py_TYPE(object)->tp_name);
        int overflow = 0;
        value = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
        value = overflow != 0 ? -1 : value;
    }
    if (value < 0 || value > std::numeric_limits<unsigned>::max()) [[unlikely]] {
        const Ref text = Ref::take(PyObject_Repr(object));
        raise(PyExc_ValueError, "{} is out of range: {}", what, text_of(text.get(), "repr"));
    }
    return static_cast<unsigned>(value);
}

inline Dim read_dim(PyObject* object, const char* what) {
    if (PyLong_CheckExact(object))
        return {read_extent(object, what), 1, 1};
    const bool tuple = PyTuple_Check(object);
    if (!tuple && !PyList_Check(object))
        return {read_extent(object, what), 1, 1};
    const Py_ssize_t size = tuple ? PyTuple_GET_SIZE(object) : PyList_GET_SIZE(object);
    if (size < 1 || size > 3)
        raise(PyExc_ValueError, "{} has one to three dimensions, not {}", what, size);
    unsigned extents[3] = {1, 1, 1};
    for (Py_ssize_t i = 0; i < size; ++i)
        extents[i] =
            read_extent(tuple ? PyTuple_GET_ITEM(object, i) : PyList_GET_ITEM(object, i), what);
    return {extents[0], extents[1], extents[2]};
}

inline std::uintptr_t read_address(PyObject* object) {
    const Ref number = Ref::take_or_null(PyNumber_Index(object));
    if (!number)
        raise(PyExc_TypeError, "a stream's address must be an int, not {}",
              Py_TYPE(object)->tp_name);
    const auto value = PyLong_AsUnsignedLongLong(number.get());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        raise(PyExc_ValueError, "a stream's address is out of range");
    }
    return value;
}

/// The address of a stream of any library.
inline std::uintptr_t stream_address(PyObject* object) {
    if (PyLong_Check(object))
        return read_address(object);
    for (const char* name : {"cuda_stream", "npu_stream", "ptr"})  // PyTorch, torch_npu, CuPy
        if (const Ref value = try_attribute(object, name))
            return read_address(value.get());
    if (const Ref protocol = try_attribute(object, "__cuda_stream__")) {
        const Ref pair = PyCallable_Check(protocol.get()) != 0
                             ? Ref::take(PyObject_CallNoArgs(protocol.get()))
                             : protocol;
        if (PyTuple_Check(pair.get()) && PyTuple_GET_SIZE(pair.get()) == 2)
            return read_address(PyTuple_GET_ITEM(pair.get(), 1));
    }
    raise(PyExc_TypeError,
          "{} is no stream: expected None, an address, or a stream of PyTorch, "
          "CuPy or another library with __cuda_stream__",
          Py_TYPE(object)->tp_name);
}

}  // namespace detail

/// Sets one field. None leaves it unset.
inline void set_field(LaunchSettings& settings, const AnyRuntime& runtime,
                      LaunchSettings::Field field, PyObject* value) {
    using S = LaunchSettings;
    if (value == Py_None)
        return;
    if ((runtime.supported >> field & 1U) == 0)
        raise(PyExc_TypeError, "launches of the {} backend have no '{}'", runtime.backend,
              text_of(detail::setting_names()[field], "name"));
    settings.set |= 1U << field;
    switch (field) {
        case S::kGrid: settings.grid = detail::read_dim(value, "grid"); break;
        case S::kBlock: settings.block = detail::read_dim(value, "block"); break;
        case S::kCluster: settings.cluster = detail::read_dim(value, "cluster"); break;
        case S::kSmem: settings.smem = to_int(value, "smem"); break;
        case S::kStream:
            settings.stream_owner = Ref::share(value);
            if (!runtime.streams_are_objects)
                settings.stream = detail::stream_address(value);
            else if (Py_TYPE(value) == types.stream)
                settings.stream_object = value_of<StreamValue>(value).stream;
            else
                raise(PyExc_TypeError, "stream must be None or made by Runtime.stream(), not {}",
                      Py_TYPE(value)->tp_name);
            break;
        case S::kCooperative: settings.cooperative = to_bool(value, "cooperative"); break;
        case S::kPdl: settings.pdl = to_bool(value, "pdl"); break;
        case S::kNonportableCluster:
            settings.nonportable_cluster = to_bool(value, "nonportable_cluster");
            break;
        case S::kNumThreads: settings.num_threads = to_int(value, "num_threads"); break;
        case S::kTimeout: settings.timeout = to_int(value, "timeout"); break;
        case S::kNumFields: break;
    }
}

/// Settings from keyword arguments. Throws PythonError.
inline LaunchSettings read_settings(const AnyRuntime& runtime, const Keywords& keywords) {
    const auto& names = detail::setting_names();
    LaunchSettings out;
    for (Py_ssize_t i = 0; i < keywords.size(); ++i) {
        PyObject* const name = PyTuple_GET_ITEM(keywords.names, i);
        std::size_t field = 0;
        // Names of calls in source code are interned: one address for each.
        while (field < names.size() && names[field] != name) ++field;
        if (field == names.size())
            for (field = 0; field < names.size(); ++field)
                if (PyUnicode_Compare(names[field], name) == 0)
                    break;
        if (field == names.size())
            raise(PyExc_TypeError,
                  "launch has no keyword '{}': kernel arguments are positional, and the keywords "
                  "are grid, block, cluster, smem, stream, cooperative, pdl, nonportable_cluster, "
                  "num_threads and timeout",
                  text_of(name, "name"));
        set_field(out, runtime, static_cast<LaunchSettings::Field>(field), keywords.values[i]);
    }
    return out;
}

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
