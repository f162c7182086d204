// The module deep_jit._core: the Python types, and the constructor of Runtime.
#include <filesystem>
#include <string>
#include <vector>

#include <deep_jit/python/errors.hpp>
#include <deep_jit/python/runtime_object.hpp>
#include <deep_jit/runtime/config.hpp>
#include <deep_jit/version.hpp>

#include "backends.hpp"

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {
namespace {

std::shared_ptr<AnyRuntime> make_runtime(std::string_view backend, const Config& config) {
    if (backend == "host")
        return make_host_runtime(config);
#if DEEP_JIT_WITH_CUDA
    if (backend == "cuda")
        return make_cuda_runtime(config);
#endif
#if DEEP_JIT_WITH_ASCEND
    if (backend == "ascend")
        return make_ascend_runtime(config);
#endif
    if (backend == "cuda" || backend == "ascend")
        throw ToolchainError(str::format(
            "This build of the package deep_jit has no {} backend: it was built without the {}. "
            "Install them and build the package again",
            backend, backend == "cuda" ? "CUDA headers" : "Ascend backend's headers"));
    throw ConfigError(str::format(
        "There is no backend '{}': the backends are 'host', 'cuda' and 'ascend'", backend));
}

/// Takes the arguments of the constructor that describe the library; leaves compiler options.
Config take_config(PyObject* options) {
    const auto take = [&](const char* name) {
        const Ref key = make_text(name);
        Ref value = Ref::share(PyDict_GetItemWithError(options, key.get()));
        if (value)
            check(PyDict_DelItem(options, key.get()));
        else if (PyErr_Occurred() != nullptr)
            throw PythonError();
        return value && value.get() != Py_None ? value : Ref();
    };
    std::filesystem::path root;
    if (const Ref value = take("root"))
        root = path_text(value.get());
    else
        root = std::filesystem::current_path();
    std::string prefix = "DJPY", signature;
    if (const Ref value = take("env_prefix"))
        prefix = to_text(value.get(), "env_prefix");
    if (const Ref value = take("extra_signature"))
        signature = to_text(value.get(), "extra_signature");
    std::vector<std::filesystem::path> include_dirs;
    if (const Ref value = take("include_dirs"))
        for (auto& directory : to_texts(value.get(), "include_dirs"))
            include_dirs.emplace_back(std::move(directory));
    std::vector<std::string> include_prefixes;
    if (const Ref value = take("include_prefixes"))
        include_prefixes = to_texts(value.get(), "include_prefixes");
    return {root, prefix, signature, include_dirs, include_prefixes};
}

PyObject* new_runtime(PyTypeObject*, PyObject* args, PyObject* keywords) {
    return guard([&] {
        if (PyTuple_GET_SIZE(args) != 1)
            raise(PyExc_TypeError, "Runtime takes the name of a backend, then keywords");
        const auto backend = text_of(PyTuple_GET_ITEM(args, 0), "backend");
        const Ref options = Ref::take(keywords != nullptr ? PyDict_Copy(keywords) : PyDict_New());
        auto runtime = make_runtime(backend, take_config(options.get()));
        std::vector<PyObject*> values;
        const Ref names = Ref::take(PySequence_Tuple(options.get()));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i)
            values.push_back(PyDict_GetItem(options.get(), PyTuple_GET_ITEM(names.get(), i)));
        runtime->set_defaults({values.data(), names.get()});
        return make_runtime_object(std::move(runtime)).release();
    });
}

void add(PyObject* module, const char* name, PyObject* object) {
    Py_INCREF(object);
    if (PyModule_AddObject(module, name, object) < 0) {
        Py_DECREF(object);
        throw PythonError();
    }
}

PyObject* make_module() {
    static PyModuleDef definition{PyModuleDef_HEAD_INIT,
                                  "deep_jit._core",
                                  nullptr,
                                  -1,
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  nullptr};
    Ref module = Ref::take(PyModule_Create(&definition));
    prepare_types(new_runtime);
    const auto add_type = [&](const char* name, PyTypeObject* type) {
        add(module.get(), name, reinterpret_cast<PyObject*>(type));
    };
    add_type("Runtime", types.runtime);
    add_type("Kernel", types.kernel);
    add_type("Launcher", types.launcher);
    add_type("Stream", types.stream);
    add_type("Parameter", types.parameter);
    const auto& errors = ErrorClasses::get();
    add(module.get(), "Error", errors.error);
    add(module.get(), "ConfigError", errors.config);
    add(module.get(), "ToolchainError", errors.toolchain);
    add(module.get(), "CompileError", errors.compile);
    add(module.get(), "CacheError", errors.cache);
    add(module.get(), "LoadError", errors.load);
    add(module.get(), "LaunchError", errors.launch);
    add(module.get(), "__version__", make_text(DEEP_JIT_VERSION_STRING).get());
    Ref backends = Ref::take(PyList_New(0));
    check(PyList_Append(backends.get(), make_text("host").get()));
#if DEEP_JIT_WITH_CUDA
    check(PyList_Append(backends.get(), make_text("cuda").get()));
#endif
#if DEEP_JIT_WITH_ASCEND
    check(PyList_Append(backends.get(), make_text("ascend").get()));
#endif
    add(module.get(), "backends", Ref::take(PyList_AsTuple(backends.get())).get());
    return module.release();
}

}  // namespace
   // clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit

PyMODINIT_FUNC PyInit__core() {
    return deep_jit::python::guard([] { return deep_jit::python::make_module(); });
}
