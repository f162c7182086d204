// The Python types Kernel and Launcher, and the launch itself.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <deep_jit/python/current_stream.hpp>
#include <deep_jit/python/declaration.hpp>
#include <deep_jit/python/errors.hpp>
#include <deep_jit/python/interface.hpp>
#include <deep_jit/python/packer.hpp>
#include <deep_jit/python/settings.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

/// Makes an object of `type` around a value.
template <typename T, typename... Args>
Ref make_object(PyTypeObject* type, Args&&... args) {
    Ref out = Ref::take(type->tp_alloc(type, 0));
    new (&value_of<T>(out.get())) T{std::forward<Args>(args)...};
    return out;
}

template <typename T>
void dealloc(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    value_of<T>(self).~T();
    type->tp_free(self);
    Py_DECREF(type);
}

struct KernelValue {
    std::shared_ptr<AnyRuntime> runtime;
    std::unique_ptr<AnyKernel> kernel;
    std::string name;
    std::optional<std::vector<Declared>> declared;
    std::unique_ptr<const Signature> known_signature = nullptr;

    /// Found out when first needed: for some backends it takes a device.
    const Signature& signature() {
        if (known_signature == nullptr) [[unlikely]]
            known_signature = std::make_unique<const Signature>(find_signature());
        return *known_signature;
    }

private:
    Signature find_signature() const {
        auto parameters = parameters_in_name(kernel->full_name());
        // Only the source has names.
        if (!parameters || (declared && declared->size() == parameters->size()))
            parameters = declared;
        auto sizes = kernel->param_sizes();
        if (!sizes) {
            sizes.emplace();
            bool complete = parameters.has_value();
            if (complete)
                for (const auto& one : *parameters) {
                    complete = complete && one.size != 0;
                    sizes->push_back(one.size);
                }
            if (!complete)
                raise(PyExc_TypeError,
                      "kernel {}: the {} backend does not know its parameters, and they cannot be "
                      "told from its source",
                      name, runtime->backend);
        }
        return {name, *sizes, parameters, runtime->space};
    }
};

struct LauncherValue {
    Ref kernel;
    LaunchSettings settings;
};

/// Packs and launches. Throws PythonError and deep_jit's errors.
inline void launch(KernelValue& self, const LaunchSettings& settings, PyObject* const* args,
                   std::size_t count) {
    constexpr std::size_t kLocalBytes = 512;  // 32 of the usual ones
    const AnyRuntime& runtime = *self.runtime;
    const Signature& signature = self.signature();
    if (count != signature.parameters.size()) [[unlikely]]
        Packer::fail_count(signature, count);

    alignas(16) unsigned char local[kLocalBytes];
    void* local_pointers[kLocalBytes / 16 + 1];
    unsigned char* bytes = local;
    void** pointers = local_pointers;
    std::unique_ptr<unsigned char[]> more_bytes;
    std::unique_ptr<void*[]> more_pointers;
    if (signature.num_bytes > kLocalBytes || count > kLocalBytes / 16) [[unlikely]] {
        more_bytes.reset(new unsigned char[signature.num_bytes]);
        more_pointers.reset(new void*[count]);
        bytes = more_bytes.get();
        pointers = more_pointers.get();
    }

    KeptObjects kept;
    const bool keeps = signature.space == Space::cpu;
    Packer packer(signature, runtime.launch_device(), keeps ? &kept : nullptr);
    for (std::size_t i = 0; i < count; ++i) {
        pointers[i] = bytes + signature.parameters[i].offset;
        packer.pack(i, args[i], bytes + signature.parameters[i].offset);
    }
    const Arguments arguments{pointers, signature.infos.data(), count};

    if (keeps) {
        const auto stream =
            settings.stream_object != nullptr ? settings.stream_object : runtime.default_stream();
        if (stream != nullptr)
            stream->release_ended();
        {
            const AllowThreads allow;
            self.kernel->launch(settings, nullptr, arguments);
        }
        if (stream != nullptr)
            stream->keep(std::move(kept));
        return;
    }
    std::optional<std::uintptr_t> stream;
    if (signature.space == Space::cuda && !settings.has(LaunchSettings::kStream))
        stream = current_stream_for(packer.first_array(), packer.first_device());
    const AllowThreads allow;
    self.kernel->launch(settings, stream ? &*stream : nullptr, arguments);
}

namespace detail {

inline PyObject* launcher_call(PyObject* self, PyObject* const* args, std::size_t nargsf,
                               PyObject* names) {
    return guard([&] {
        if (names != nullptr && PyTuple_GET_SIZE(names) > 0) [[unlikely]]
            raise(PyExc_TypeError,
                  "kernel arguments are positional; settings such as stream= go to "
                  "Kernel.launch or Kernel.prepare");
        auto& launcher = value_of<LauncherValue>(self);
        launch(value_of<KernelValue>(launcher.kernel.get()), launcher.settings, args,
               static_cast<std::size_t>(PyVectorcall_NARGS(nargsf)));
        Py_RETURN_NONE;
    });
}

inline PyObject* make_launcher(PyObject* kernel, LaunchSettings settings) {
    Ref out = make_object<LauncherValue>(types.launcher, Ref::share(kernel), std::move(settings));
    reinterpret_cast<ObjectHead*>(out.get())->vectorcall = launcher_call;
    return out.release();
}

inline PyObject* launcher_repr(PyObject* self) {
    return guard([&] {
        const auto& launcher = value_of<LauncherValue>(self);
        const auto text = [](const Dim& dim) {
            return str::format("({}, {}, {})", dim.x, dim.y, dim.z);
        };
        return make_text(str::format("<deep_jit.Launcher of {}, grid {}, block {}>",
                                     value_of<KernelValue>(launcher.kernel.get()).name,
                                     text(launcher.settings.grid), text(launcher.settings.block)))
            .release();
    });
}

/// kernel[grid, block]
inline PyObject* kernel_subscript(PyObject* self, PyObject* key) {
    return guard([&] {
        const AnyRuntime& runtime = *value_of<KernelValue>(self).runtime;
        LaunchSettings settings;
        const bool has_block = (runtime.supported >> LaunchSettings::kBlock & 1U) != 0;
        if (!has_block) {
            set_field(settings, runtime, LaunchSettings::kGrid, key);
        } else {
            if (!PyTuple_Check(key) || PyTuple_GET_SIZE(key) != 2)
                raise(PyExc_TypeError,
                      "write kernel[grid, block](...); more settings are keywords "
                      "of Kernel.launch and Kernel.prepare");
            set_field(settings, runtime, LaunchSettings::kGrid, PyTuple_GET_ITEM(key, 0));
            set_field(settings, runtime, LaunchSettings::kBlock, PyTuple_GET_ITEM(key, 1));
        }
        return make_launcher(self, std::move(settings));
    });
}

inline PyObject* kernel_launch(PyObject* self, PyObject* const* args, Py_ssize_t count,
                               PyObject* names) {
    return guard([&] {
        auto& kernel = value_of<KernelValue>(self);
        const LaunchSettings settings = read_settings(*kernel.runtime, {args + count, names});
        launch(kernel, settings, args, static_cast<std::size_t>(count));
        Py_RETURN_NONE;
    });
}

inline PyObject* kernel_prepare(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                PyObject* names) {
    return guard([&] {
        if (count != 0)
            raise(PyExc_TypeError, "prepare takes keywords only: grid=, block= and so on");
        return make_launcher(self,
                             read_settings(*value_of<KernelValue>(self).runtime, {args, names}));
    });
}

inline PyObject* kernel_name(PyObject* self, void*) {
    return guard([&] { return make_text(value_of<KernelValue>(self).name).release(); });
}
inline PyObject* kernel_backend(PyObject* self, void*) {
    return guard([&] { return make_text(value_of<KernelValue>(self).runtime->backend).release(); });
}
inline PyObject* kernel_handle(PyObject* self, void*) {
    return guard([&] { return PyLong_FromSize_t(value_of<KernelValue>(self).kernel->handle()); });
}

inline const char* name_of(ParameterKind kind) {
    static constexpr const char* kNames[] = {"unknown", "pointer",  "const pointer", "bool",
                                             "signed",  "unsigned", "float",         "bfloat16"};
    return kNames[static_cast<std::size_t>(kind)];
}

inline PyObject* kernel_parameters(PyObject* self, void*) {
    return guard([&] {
        const auto& parameters = value_of<KernelValue>(self).signature().parameters;
        Ref out = Ref::take(PyTuple_New(static_cast<Py_ssize_t>(parameters.size())));
        Py_ssize_t at = 0;
        for (const auto& one : parameters) {
            Ref item = Ref::take(PyStructSequence_New(types.parameter));
            PyStructSequence_SetItem(item.get(), 0, make_text(one.name).release());
            PyStructSequence_SetItem(item.get(), 1, make_text(one.type).release());
            PyStructSequence_SetItem(item.get(), 2, make_text(name_of(one.kind)).release());
            PyStructSequence_SetItem(item.get(), 3, Ref::take(PyLong_FromLong(one.size)).release());
            PyTuple_SET_ITEM(out.get(), at++, item.release());
        }
        return out.release();
    });
}

inline PyObject* kernel_repr(PyObject* self) {
    return guard([&] {
        const auto& kernel = value_of<KernelValue>(self);
        return make_text(
                   str::format("<deep_jit.Kernel {} ({})>", kernel.name, kernel.runtime->backend))
            .release();
    });
}

inline PyObject* stream_synchronize(PyObject* self, PyObject*) {
    return guard([&] {
        value_of<StreamValue>(self).stream->synchronize();
        Py_RETURN_NONE;
    });
}
inline PyObject* stream_idle(PyObject* self, void*) {
    return guard([&] { return PyBool_FromLong(value_of<StreamValue>(self).stream->idle()); });
}

}  // namespace detail
   // clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
