// deep_jit's errors as Python exceptions.
#pragma once

#include <new>

#include <deep_jit/python/object.hpp>
#include <deep_jit/utils/exception.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

/// The exception classes. Every module of the process that embeds deep_jit shares them, the
/// package `deep_jit` included: `except deep_jit.CompileError` catches what any of them raises.
/// They lie in a module of their own in sys.modules; whoever comes first fills it.
struct ErrorClasses {
    PyObject* error;
    PyObject* config;
    PyObject* toolchain;
    PyObject* compile;
    PyObject* cache;
    PyObject* load;
    PyObject* launch;

    static const ErrorClasses& get() {
        static const ErrorClasses classes = make();
        return classes;
    }

private:
    static ErrorClasses make() {
        PyObject* shared = PyImport_AddModule("_deep_jit_errors");
        if (shared == nullptr)
            throw PythonError();
        ErrorClasses out{};
        out.error = find(shared, "Error", PyExc_RuntimeError,
                         "Base of every error of deep_jit.\n\n"
                         "Attributes, all str, empty where they do not apply:\n\n"
                         "command -- the command line that failed, quoted for reading\n"
                         "log -- everything the compiler or linker printed\n"
                         "source_path -- the kernel source that was compiled, kept on disk\n"
                         "key -- '<tag>.<digest>' of the kernel");
        const auto derived = [&](const char* name, const char* doc) {
            return find(shared, name, out.error, doc);
        };
        out.config = derived("ConfigError", "A setting, an option, a tag or an include is wrong.");
        out.toolchain = derived("ToolchainError",
                                "A compiler, toolkit, driver or device is missing or too old.");
        out.compile = derived("CompileError",
                              "The compiler rejected the source, or its output failed a check.");
        out.cache = derived("CacheError", "The cache cannot be used as asked.");
        out.load =
            derived("LoadError", "The binary cannot be loaded, or holds other than one kernel.");
        out.launch = derived("LaunchError", "A launch was refused, or failed.");
        return out;
    }

    static PyObject* find(PyObject* shared, const char* name, PyObject* base, const char* doc) {
        if (Ref known = try_attribute(shared, name))
            return known.release();
        const Ref members = Ref::take(PyDict_New());
        if (base == PyExc_RuntimeError) {
            const Ref empty = make_text("");
            for (const char* member : {"command", "log", "source_path", "key"})
                check(PyDict_SetItemString(members.get(), member, empty.get()));
        }
        const std::string full = std::string("deep_jit.") + name;
        Ref made = Ref::take(PyErr_NewExceptionWithDoc(full.c_str(), doc, base, members.get()));
        check(PyObject_SetAttrString(shared, name, made.get()));
        return made.release();
    }
};

/// Makes `error` the current Python exception, of the class `type`.
inline void set_error(PyObject* type, const Error& error) {
    const Ref message = make_text(error.what());
    const Ref instance = Ref::take(PyObject_CallOneArg(type, message.get()));
    const auto set = [&](const char* name, const Ref& value) {
        check(PyObject_SetAttrString(instance.get(), name, value.get()));
    };
    set("command", make_text(error.command()));
    set("log", make_text(error.log()));
    set("source_path", make_path(error.source_path()));
    set("key", make_text(error.key()));
    PyErr_SetObject(type, instance.get());
}

/// Makes the C++ exception that is being handled the current Python exception.
inline void set_current_error() noexcept {
    try {
        try {
            throw;
        } catch (const PythonError&) {  // NOLINT: the error is set already
        } catch (const ConfigError& error) {
            set_error(ErrorClasses::get().config, error);
        } catch (const ToolchainError& error) {
            set_error(ErrorClasses::get().toolchain, error);
        } catch (const CompileError& error) {
            set_error(ErrorClasses::get().compile, error);
        } catch (const CacheError& error) {
            set_error(ErrorClasses::get().cache, error);
        } catch (const LoadError& error) {
            set_error(ErrorClasses::get().load, error);
        } catch (const LaunchError& error) {
            set_error(ErrorClasses::get().launch, error);
        } catch (const Error& error) {
            set_error(ErrorClasses::get().error, error);
        } catch (const std::bad_alloc&) {
            PyErr_NoMemory();
        } catch (const std::exception& error) {
            PyErr_SetString(PyExc_RuntimeError, error.what());
        } catch (...) {
            PyErr_SetString(PyExc_RuntimeError, "an exception of unknown type was thrown");
        }
    } catch (...) {
        // Making the exception failed, with a Python error of its own.
        if (PyErr_Occurred() == nullptr)
            PyErr_NoMemory();
    }
}

/// Runs `body` for Python: a C++ exception becomes a Python one, and the result `failed`.
template <typename Body, typename Result>
Result guard(Result failed, Body&& body) noexcept {
    try {
        return body();
    } catch (...) {
        set_current_error();
        return failed;
    }
}

/// The same for functions that return a new reference.
template <typename Body>
PyObject* guard(Body&& body) noexcept {
    return guard(static_cast<PyObject*>(nullptr), [&]() -> PyObject* { return body(); });
}

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
