// Small tools over Python's C API: owning references and the way errors travel.
//
// Everything in deep_jit::python is hidden from the dynamic linker: every extension module has
// its own copy, so that several of them, of several versions, can live in one process.
#pragma once

// Py_ssize_t for lengths everywhere.
#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include <string>
#include <string_view>
#include <utility>

#include <deep_jit/utils/str.hpp>

#if PY_VERSION_HEX < 0x03090000
#error "deep_jit needs Python 3.9 or newer"
#endif

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

/// Python's error indicator is set; it holds what happened.
struct PythonError {};

/// Owns one reference. Needs the GIL wherever it is copied or dropped.
class Ref {
public:
    Ref() = default;
    /// Takes over a new reference; null means that a call failed, and throws PythonError.
    static Ref take(PyObject* object) {
        if (object == nullptr)
            throw PythonError();
        return Ref(object);
    }
    /// The same, but null is allowed.
    static Ref take_or_null(PyObject* object) { return Ref(object); }
    static Ref share(PyObject* object) {
        Py_XINCREF(object);
        return Ref(object);
    }

    Ref(const Ref& other) : object_(other.object_) { Py_XINCREF(object_); }
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() { Py_XDECREF(object_); }

    PyObject* get() const { return object_; }
    PyObject* release() { return std::exchange(object_, nullptr); }
    explicit operator bool() const { return object_ != nullptr; }

private:
    explicit Ref(PyObject* object) : object_(object) {}

    PyObject* object_ = nullptr;
};

/// Throws PythonError when a call that returns -1 for an error did.
inline void check(int result) {
    if (result < 0)
        throw PythonError();
}

/// Sets a Python exception and throws PythonError.
template <typename... Args>
[[noreturn]] void raise(PyObject* type, std::string_view pattern, const Args&... args) {
    const std::string text = str::format(pattern, args...);
    // Compilers and file systems say what they like; an error message must not fail over it.
    const Ref message = Ref::take(PyUnicode_DecodeUTF8(
        text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
    PyErr_SetObject(type, message.get());
    throw PythonError();
}

/// Attribute `name`, or nothing when there is none. Other errors than AttributeError go on.
inline Ref try_attribute(PyObject* object, const char* name) {
    PyObject* value = PyObject_GetAttrString(object, name);
    if (value == nullptr) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            throw PythonError();
        PyErr_Clear();
    }
    return Ref::take_or_null(value);
}

inline Ref attribute(PyObject* object, const char* name) {
    return Ref::take(PyObject_GetAttrString(object, name));
}

/// Text of a str, or the path of an os.PathLike.
inline std::string path_text(PyObject* object) {
    PyObject* bytes = nullptr;
    if (PyUnicode_FSConverter(object, &bytes) == 0)
        throw PythonError();
    const Ref owner = Ref::take(bytes);
    return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}

/// UTF-8 of a str; lives as long as the object. `what` names it in the TypeError.
inline std::string_view text_of(PyObject* object, const char* what) {
    if (!PyUnicode_Check(object))
        raise(PyExc_TypeError, "{} must be a str, not {}", what, Py_TYPE(object)->tp_name);
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text == nullptr)
        throw PythonError();
    return {text, static_cast<std::size_t>(size)};
}

inline Ref make_text(std::string_view text) {
    return Ref::take(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                          "backslashreplace"));
}
inline Ref make_path(std::string_view path) {
    return Ref::take(
        PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

/// While it lives, other Python threads run. The thread must hold the GIL when it is made.
class AllowThreads {
public:
    AllowThreads() : state_(PyEval_SaveThread()) {}
    ~AllowThreads() { PyEval_RestoreThread(state_); }
    AllowThreads(const AllowThreads&) = delete;
    AllowThreads& operator=(const AllowThreads&) = delete;

private:
    PyThreadState* state_;
};

/// An interned str that lives as long as the process: attribute names of the hot path.
class Name {
public:
    explicit Name(const char* text) : object_(PyUnicode_InternFromString(text)) {
        if (object_ == nullptr)
            throw PythonError();
    }
    PyObject* get() const { return object_; }

private:
    PyObject* object_;
};

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
