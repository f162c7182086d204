// Values of JSON and of compiler options, from and to Python.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <deep_jit/python/object.hpp>
#include <deep_jit/utils/json.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

/// As json.loads would give it.
inline Ref to_python(const json& value) {
    if (const auto* flag = value.get_if<bool>())
        return Ref::take(PyBool_FromLong(*flag));
    if (const auto* number = value.get_if<std::int64_t>())
        return Ref::take(PyLong_FromLongLong(*number));
    if (const auto* number = value.get_if<double>())
        return Ref::take(PyFloat_FromDouble(*number));
    if (const auto* text = value.get_if<std::string>())
        return make_path(*text);
    if (const auto* array = value.get_if<json::array_t>()) {
        Ref list = Ref::take(PyList_New(0));
        for (const auto& element : *array)
            check(PyList_Append(list.get(), to_python(element).get()));
        return list;
    }
    if (const auto* members = value.get_if<json::object_t>()) {
        Ref dict = Ref::take(PyDict_New());
        for (const auto& [name, member] : *members)
            check(PyDict_SetItem(dict.get(), make_text(name).get(), to_python(member).get()));
        return dict;
    }
    return Ref::share(Py_None);
}

/// An object with the members of a JSON object as attributes.
inline Ref to_namespace(const json& value) {
    const Ref types = Ref::take(PyImport_ImportModule("types"));
    const Ref type = attribute(types.get(), "SimpleNamespace");
    const Ref none = Ref::take(PyTuple_New(0));
    return Ref::take(PyObject_Call(type.get(), none.get(), to_python(value).get()));
}

/// An int in the range of `int`; `what` names it in messages.
inline int to_int(PyObject* object, std::string_view what) {
    const Ref number = Ref::take_or_null(PyNumber_Index(object));
    if (!number)
        raise(PyExc_TypeError, "{} must be an int, not {}", what, Py_TYPE(object)->tp_name);
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
    if (overflow != 0 || value < std::numeric_limits<int>::min() ||
        value > std::numeric_limits<int>::max())
        raise(PyExc_ValueError, "{} is out of range", what);
    return static_cast<int>(value);
}

inline bool to_bool(PyObject* object, std::string_view what) {
    if (!PyBool_Check(object))
        raise(PyExc_TypeError, "{} must be a bool, not {}", what, Py_TYPE(object)->tp_name);
    return object == Py_True;
}

/// A str or an os.PathLike.
inline std::string to_text(PyObject* object, std::string_view what) {
    if (PyUnicode_Check(object))
        return std::string(text_of(object, "the text"));
    if (!PyBytes_Check(object))
        if (try_attribute(object, "__fspath__"))
            return path_text(object);
    raise(PyExc_TypeError, "{} must be a str, not {}", what, Py_TYPE(object)->tp_name);
}

inline std::vector<std::string> to_texts(PyObject* object, std::string_view what) {
    if (PyUnicode_Check(object) || PyBytes_Check(object))
        raise(PyExc_TypeError, "{} must be a list of str, not {}", what, Py_TYPE(object)->tp_name);
    const Ref items = Ref::take_or_null(PySequence_Fast(object, ""));
    if (!items)
        raise(PyExc_TypeError, "{} must be a list of str, not {}", what, Py_TYPE(object)->tp_name);
    std::vector<std::string> out;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
        out.push_back(to_text(PySequence_Fast_GET_ITEM(items.get(), i), what));
    return out;
}

namespace detail {

inline void assign(bool& out, PyObject* object, std::string_view what) {
    out = to_bool(object, what);
}
inline void assign(int& out, PyObject* object, std::string_view what) {
    out = to_int(object, what);
}
inline void assign(std::string& out, PyObject* object, std::string_view what) {
    // optimize_level=3 is as good as "3".
    out = PyLong_Check(object) && !PyBool_Check(object) ? str::to_text(to_int(object, what))
                                                        : to_text(object, what);
}
inline void assign(std::vector<std::string>& out, PyObject* object, std::string_view what) {
    out = to_texts(object, what);
}
template <typename T>
void assign(std::optional<T>& out, PyObject* object, std::string_view what) {
    if (object == Py_None)
        out.reset();
    else
        assign(out.emplace(), object, what);
}

}  // namespace detail

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
