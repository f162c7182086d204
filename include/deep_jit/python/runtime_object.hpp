// The Python type Runtime, and the making of all types.
#pragma once

#include <structmember.h>

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include <deep_jit/python/errors.hpp>
#include <deep_jit/python/interface.hpp>
#include <deep_jit/python/kernel_object.hpp>
#include <deep_jit/python/settings.hpp>
#include <deep_jit/python/values.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

struct RuntimeValue {
    std::shared_ptr<AnyRuntime> runtime;
    /// The Python object of each kernel, so that compiling again returns the same one. Like the
    /// runtime's own memory of them it never shrinks.
    std::unordered_map<const void*, Ref> kernels = {};
};

/// A new Python Runtime.
inline Ref make_runtime_object(std::shared_ptr<AnyRuntime> runtime) {
    return make_object<RuntimeValue>(types.runtime, std::move(runtime));
}

namespace detail {

inline AnyRuntime& runtime_of(PyObject* self) { return *value_of<RuntimeValue>(self).runtime; }

inline PyObject* runtime_compile(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                 PyObject* names) {
    return guard([&] {
        if (count != 2)
            raise(PyExc_TypeError, "compile takes a tag and a source, then keywords");
        auto& value = value_of<RuntimeValue>(self);
        const auto source = text_of(args[1], "source");
        auto kernel =
            value.runtime->compile(text_of(args[0], "tag"), source, {args + count, names});
        auto& object = value.kernels[kernel.get()];
        if (!object) {
            // Reading the source runs no Python code, so the reference stays good.
            auto any = value.runtime->wrap(std::move(kernel));
            object = make_object<KernelValue>(types.kernel, value.runtime, std::move(any),
                                              std::string(text_of(args[0], "tag")),
                                              parameters_in_source(source));
        }
        return Ref(object).release();
    });
}

inline PyObject* runtime_compile_without_load(PyObject* self, PyObject* const* args,
                                              Py_ssize_t count, PyObject* names) {
    return guard([&] {
        if (count != 2)
            raise(PyExc_TypeError, "compile_without_load takes a tag and a source, then keywords");
        const auto path = runtime_of(self).compile_without_load(
            text_of(args[0], "tag"), text_of(args[1], "source"), {args + count, names});
        return make_path(path.native()).release();
    });
}

inline PyObject* runtime_cache_key(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                   PyObject* names) {
    return guard([&] {
        if (count != 1)
            raise(PyExc_TypeError, "cache_key takes a source, then keywords");
        return make_text(
                   runtime_of(self).cache_key(text_of(args[0], "source"), {args + count, names}))
            .release();
    });
}

inline PyObject* runtime_set_defaults(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                      PyObject* names) {
    return guard([&] {
        if (count != 0)
            raise(PyExc_TypeError, "set_default_options takes keywords only");
        runtime_of(self).set_defaults({args, names});
        Py_RETURN_NONE;
    });
}

inline PyObject* runtime_stream(PyObject* self, PyObject*) {
    return guard([&] {
        auto stream = runtime_of(self).make_stream();
        if (stream == nullptr)
            raise(PyExc_TypeError,
                  "the {} backend uses the streams of other libraries, such as "
                  "torch.cuda.Stream()",
                  runtime_of(self).backend);
        return make_object<StreamValue>(types.stream, std::move(stream)).release();
    });
}

inline PyObject* runtime_synchronize(PyObject* self, PyObject* const* args, Py_ssize_t count) {
    return guard([&] {
        if (count > 1)
            raise(PyExc_TypeError, "synchronize takes one stream, or none");
        AnyRuntime& runtime = runtime_of(self);
        LaunchSettings settings;
        if (count == 1)
            set_field(settings, runtime, LaunchSettings::kStream, args[0]);
        if (runtime.streams_are_objects) {
            const auto stream = settings.stream_object != nullptr ? settings.stream_object
                                                                  : runtime.default_stream();
            stream->synchronize();
        } else {
            std::uintptr_t stream = settings.stream;
            if (!settings.has(LaunchSettings::kStream))
                stream = runtime.space == Space::cuda
                             ? current_stream_for({}, -1).value_or(runtime.current_stream())
                             : runtime.current_stream();
            runtime.synchronize(stream);
        }
        Py_RETURN_NONE;
    });
}

inline PyObject* runtime_statistics(PyObject* self, PyObject*) {
    return guard([&] { return to_python(runtime_of(self).statistics()).release(); });
}

inline PyObject* runtime_backend(PyObject* self, void*) {
    return guard([&] { return make_text(runtime_of(self).backend).release(); });
}
inline PyObject* runtime_config(PyObject* self, void*) {
    return guard([&] { return to_python(runtime_of(self).config()).release(); });
}
inline PyObject* runtime_defaults(PyObject* self, void*) {
    return guard([&] { return to_python(runtime_of(self).default_options()).release(); });
}
inline PyObject* runtime_compiler(PyObject* self, void*) {
    return guard([&] { return to_namespace(runtime_of(self).compiler()).release(); });
}
inline PyObject* runtime_device(PyObject* self, void*) {
    return guard([&] { return to_namespace(runtime_of(self).device()).release(); });
}
inline PyObject* runtime_cache_dirs(PyObject* self, void*) {
    return guard([&] {
        Ref out = Ref::take(PyList_New(0));
        for (const auto& path : runtime_of(self).cache_dirs())
            check(PyList_Append(out.get(), make_path(path.native()).get()));
        return out.release();
    });
}

inline PyObject* runtime_repr(PyObject* self) {
    return guard([&] {
        return make_text(str::format("<deep_jit.Runtime {}>", runtime_of(self).backend)).release();
    });
}

template <typename Function>
PyMethodDef method(const char* name, Function* function, int flags, const char* doc) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)), flags, doc};
}

inline constexpr int kFastKeywords = METH_FASTCALL | METH_KEYWORDS;

template <typename T>
PyTypeObject* make_type(const char* name, const char* doc, PyMethodDef* methods,
                        PyGetSetDef* members, reprfunc repr, std::vector<PyType_Slot> more,
                        unsigned long flags = 0) {
    std::vector<PyType_Slot> slots{
        {Py_tp_dealloc, reinterpret_cast<void*>(&dealloc<T>)},
        {Py_tp_doc, const_cast<char*>(doc)},
        {Py_tp_methods, methods},
        {Py_tp_getset, members},
        {Py_tp_repr, reinterpret_cast<void*>(repr)},
    };
    slots.insert(slots.end(), more.begin(), more.end());
    slots.push_back({0, nullptr});
#if PY_VERSION_HEX >= 0x030a0000
    // Objects of these types come from functions, but for those with a constructor.
    if ((flags & Py_TPFLAGS_BASETYPE) == 0)
        flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
    flags &= ~static_cast<unsigned long>(Py_TPFLAGS_BASETYPE);
#endif
    PyType_Spec spec{name, static_cast<int>(sizeof(Object<T>)), 0,
                     static_cast<unsigned>(Py_TPFLAGS_DEFAULT | flags), slots.data()};
    return reinterpret_cast<PyTypeObject*>(Ref::take(PyType_FromSpec(&spec)).release());
}

inline PyTypeObject* make_kernel_type() {
    static PyMethodDef methods[] = {
        method("launch", kernel_launch, kFastKeywords,
               "launch(*args, grid, block, smem=None, stream=None, cluster=None, cooperative=None,"
               " pdl=None, nonportable_cluster=None, num_threads=None, timeout=None)\n\n"
               "Launches the kernel with these arguments. What is not given is the runtime's\n"
               "default. Raises TypeError and ValueError for arguments that do not fit the\n"
               "kernel's parameters, LaunchError when the launch is refused."),
        method("prepare", kernel_prepare, kFastKeywords,
               "prepare(*, grid, block, ...) -> Launcher\n\n"
               "The same keywords as launch. The result is called with the kernel's arguments."),
        {}};
    static PyGetSetDef members[] = {
        {"name", kernel_name, nullptr, "The tag it was compiled with.", nullptr},
        {"backend", kernel_backend, nullptr, "Name of its runtime's backend.", nullptr},
        {"handle", kernel_handle, nullptr, "The driver's handle (a CUkernel), or 0.", nullptr},
        {"parameters", kernel_parameters, nullptr,
         "Its parameters: (name, type, kind, size in bytes) each. May need a device.", nullptr},
        {}};
    return make_type<KernelValue>(
        "deep_jit.Kernel", "A loaded kernel: kernel[grid, block](*args) launches it.", methods,
        members, kernel_repr, {{Py_mp_subscript, reinterpret_cast<void*>(&kernel_subscript)}});
}

inline PyTypeObject* make_launcher_type() {
    static PyMethodDef methods[] = {{}};
    static PyGetSetDef members[] = {{}};
    static PyMemberDef offsets[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(ObjectHead, vectorcall), READONLY, nullptr},
        {}};
    return make_type<LauncherValue>(
        "deep_jit.Launcher", "A kernel with its launch settings: launcher(*args) launches it.",
        methods, members, launcher_repr,
        {{Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)}, {Py_tp_members, offsets}},
        Py_TPFLAGS_HAVE_VECTORCALL);
}

inline PyTypeObject* make_stream_type() {
    static PyMethodDef methods[] = {
        method(
            "synchronize", stream_synchronize, METH_NOARGS,
            "synchronize()\n\nWaits for all launches on the stream. Raises what a kernel threw."),
        {}};
    static PyGetSetDef members[] = {
        {"idle", stream_idle, nullptr, "True when nothing is queued or running.", nullptr}, {}};
    return make_type<StreamValue>("deep_jit.Stream",
                                  "Launches in order, asynchronously (Host backend).", methods,
                                  members, nullptr, {});
}

inline PyTypeObject* make_parameter_type() {
    static PyStructSequence_Field fields[] = {{"name", "as declared, or ''"},
                                              {"type", "as declared, or ''"},
                                              {"kind", "'pointer', 'signed', ... or 'unknown'"},
                                              {"size", "bytes"},
                                              {}};
    static PyStructSequence_Desc description = {"deep_jit.Parameter", "A parameter of a kernel.",
                                                fields, 4};
    PyTypeObject* type = PyStructSequence_NewType(&description);
    if (type == nullptr)
        throw PythonError();
    return type;
}

/// `constructor`: null where runtimes come from elsewhere.
inline PyTypeObject* make_runtime_type(newfunc constructor) {
    static PyMethodDef methods[] = {
        method("compile", runtime_compile, kFastKeywords,
               "compile(tag, source, /, **options) -> Kernel\n\n"
               "The kernel of the source: from memory, from disk, or compiled now. The tag\n"
               "(letters, digits, underscores) names it. Options are the fields of the backend's\n"
               "CompilerOptions. Other threads run meanwhile. Raises ConfigError, ToolchainError,\n"
               "CompileError, CacheError and LoadError."),
        method("compile_without_load", runtime_compile_without_load, kFastKeywords,
               "compile_without_load(tag, source, /, **options) -> str\n\n"
               "The directory with the compiled kernel. Needs no device where arch is given."),
        method("cache_key", runtime_cache_key, kFastKeywords,
               "cache_key(source, /, **options) -> str\n\n"
               "The digest that names the kernel's cache entry."),
        method("set_default_options", runtime_set_defaults, kFastKeywords,
               "set_default_options(**options)\n\n"
               "Changes what compile does without an option; lists are appended. Not while other\n"
               "threads use the runtime."),
        method("stream", runtime_stream, METH_NOARGS,
               "stream() -> Stream\n\nA new stream, of a backend that has its own (Host)."),
        method("synchronize", runtime_synchronize, METH_FASTCALL,
               "synchronize(stream=None, /)\n\n"
               "Waits for the launches on a stream; without one, on the stream that launches\n"
               "without one use. Raises what a kernel threw (Host), LaunchError."),
        method("statistics", runtime_statistics, METH_NOARGS,
               "statistics() -> dict\n\nWhat the runtime has done so far."),
        {}};
    static PyGetSetDef members[] = {
        {"backend", runtime_backend, nullptr, "'host', 'cuda' or 'ascend'.", nullptr},
        {"config", runtime_config, nullptr, "What the runtime was made with: a dict.", nullptr},
        {"default_options", runtime_defaults, nullptr, "Default compiler options: a dict.",
         nullptr},
        {"compiler", runtime_compiler, nullptr,
         "The compiler: path and version. Looks for it; raises ToolchainError.", nullptr},
        {"device", runtime_device, nullptr,
         "Facts of the device, such as arch and num_sms. Raises ToolchainError without one.",
         nullptr},
        {"cache_dirs", runtime_cache_dirs, nullptr, "Cache roots; the first is written to.",
         nullptr},
        {}};
    std::vector<PyType_Slot> more;
    if (constructor != nullptr)
        more.push_back({Py_tp_new, reinterpret_cast<void*>(constructor)});
    return make_type<RuntimeValue>(
        "deep_jit.Runtime", "Compiles, caches, loads and launches kernels of one backend.", methods,
        members, runtime_repr, std::move(more), constructor != nullptr ? Py_TPFLAGS_BASETYPE : 0);
}

}  // namespace detail

/// Makes the types and error classes, once for the module. Throws PythonError.
inline void prepare_types(newfunc runtime_constructor = nullptr) {
    if (types.runtime != nullptr)
        return;
    ErrorClasses::get();
    types.kernel = detail::make_kernel_type();
    types.launcher = detail::make_launcher_type();
    types.stream = detail::make_stream_type();
    types.parameter = detail::make_parameter_type();
    types.runtime = detail::make_runtime_type(runtime_constructor);
}

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
