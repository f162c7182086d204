// Python objects into the bytes of a kernel's parameters.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <deep_jit/python/array.hpp>
#include <deep_jit/python/declaration.hpp>
#include <deep_jit/python/number.hpp>
#include <deep_jit/python/object.hpp>
#include <deep_jit/python/type_info.hpp>
#include <deep_jit/runtime/arguments.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

/// One parameter of a kernel, and where its bytes go.
struct Parameter {
    std::string name;  ///< as declared; empty when unknown
    std::string type;  ///< as declared; empty when unknown
    ParameterKind kind = ParameterKind::unknown;
    std::uint32_t size = 0;    ///< bytes
    std::uint32_t offset = 0;  ///< into the packed arguments
};

/// What a kernel takes: made once, used by each of its launches.
struct Signature {
    std::string kernel;  ///< its name, for messages
    std::vector<Parameter> parameters;
    std::vector<ArgumentInfo> infos;
    std::size_t num_bytes = 0;
    Space space = Space::cpu;

    /// `sizes` are the compiled kernel's; `declared` is believed as far as it agrees with them.
    Signature(std::string name, const std::vector<std::uint32_t>& sizes,
              const std::optional<std::vector<Declared>>& declared, Space where)
        : kernel(std::move(name)), space(where) {
        const bool known = declared && declared->size() == sizes.size();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            Parameter one;
            one.size = sizes[i];
            if (known) {
                one.name = (*declared)[i].name;
                one.type = (*declared)[i].type;
                if ((*declared)[i].size == sizes[i])
                    one.kind = (*declared)[i].kind;
            }
            one.offset = static_cast<std::uint32_t>(num_bytes);
            num_bytes += (std::size_t(one.size) + 15) / 16 * 16;
            infos.push_back({sizes[i], one.kind == ParameterKind::unknown ? 0 : sizes[i]});
            parameters.push_back(std::move(one));
        }
    }
};

/// Packs the arguments of one launch.
class Packer {
public:
    /// `device`: index of the device that will run the kernel, or -1; arrays that are known to be
    /// on another one are refused. `kept`, if given, keeps the memory of arrays.
    Packer(const Signature& signature, int device, KeptObjects* kept)
        : signature_(signature), device_(device), kept_(kept) {}

    /// Writes argument `index` to `out`. Throws PythonError.
    void pack(std::size_t index, PyObject* object, unsigned char* out) {
        index_ = index;
        parameter_ = &signature_.parameters[index];
        out_ = out;
        object_ = object;
        PyTypeObject* const type = Py_TYPE(object);
        if (type == &PyLong_Type)
            return pack_integer(object);
        if (type == &PyFloat_Type)
            return pack_float(PyFloat_AS_DOUBLE(object));
        if (object == Py_None)
            return pack_none();
        if (type == &PyBool_Type)
            return pack_bool(object == Py_True);
        pack_other(object, type_info(type));
    }

    /// Throws the TypeError for a wrong number of arguments.
    [[noreturn]] static void fail_count(const Signature& signature, std::size_t given) {
        std::string list;
        for (const auto& one : signature.parameters)
            list += (list.empty() ? "" : ", ") + describe(one);
        if (given < signature.parameters.size())
            raise(PyExc_TypeError,
                  "kernel {}: argument {}{} is missing: {} given, and the kernel takes {} ({})",
                  signature.kernel, given, quoted_name(signature.parameters[given]), given,
                  signature.parameters.size(), list);
        raise(PyExc_TypeError,
              "kernel {}: argument {} is one too many: {} given, and the kernel takes {} ({})",
              signature.kernel, signature.parameters.size(), given, signature.parameters.size(),
              list);
    }

    /// The type of the first array on a GPU (without one: `other`), whose library's stream a
    /// launch belongs to, and the index of its device, if known.
    const TypeInfo& first_array() const { return first_array_; }
    std::int32_t first_device() const { return first_device_; }

private:
    static constexpr std::int32_t kNoArray = -2;

    static std::string quoted_name(const Parameter& one) {
        return one.name.empty() ? "" : " '" + one.name + "'";
    }
    static std::string describe(const Parameter& one) {
        if (one.type.empty())
            return str::to_text(one.size) + " bytes";
        return one.type + (one.name.empty() ? "" : " " + one.name);
    }

    template <typename... Args>
    [[noreturn, gnu::cold, gnu::noinline]] void fail(PyObject* type, std::string_view pattern,
                                                     const Args&... args) const {
        raise(type, "kernel {}: argument {}{} ({}): {}", signature_.kernel, index_,
              quoted_name(*parameter_), Py_TYPE(object_)->tp_name, str::format(pattern, args...));
    }
    [[noreturn, gnu::cold, gnu::noinline]] void fail_type() const {
        fail(PyExc_TypeError, "does not go into a parameter of type {} ({} bytes)",
             parameter_->type.empty() ? "unknown" : parameter_->type, parameter_->size);
    }
    [[noreturn, gnu::cold, gnu::noinline]] void fail_range(PyObject* value) const {
        const Ref text = Ref::take(PyObject_Repr(value));
        fail(PyExc_ValueError, "{} is out of range for a parameter of {} ({} bytes)",
             text_of(text.get(), "repr"),
             parameter_->type.empty() ? "unknown type" : "type " + parameter_->type,
             parameter_->size);
    }

    bool is(ParameterKind kind) const { return parameter_->kind == kind; }
    bool is_unknown() const { return is(ParameterKind::unknown); }
    bool is_floating() const { return is(ParameterKind::floating) || is(ParameterKind::bfloat16); }
    bool is_pointer() const {
        return is(ParameterKind::pointer) || is(ParameterKind::const_pointer) ||
               (is_unknown() && parameter_->size == sizeof(void*));
    }
    bool takes_integers() const {
        const auto size = parameter_->size;
        return is_unknown() ? size == 1 || size == 2 || size == 4 || size == 8 : !is_floating();
    }

    void write(std::uint64_t bits) { std::memcpy(out_, &bits, parameter_->size); }

    /// `object`: an int, or an instance of a subclass.
    void pack_integer(PyObject* object) {
        int overflow = 0;
        const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
        Integer number{value < 0, static_cast<std::uint64_t>(value)};
        if (overflow != 0) [[unlikely]] {
            if (is_floating())
                return pack_float(as_double(object));
            const auto large = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0ULL;
            if (overflow < 0 || PyErr_Occurred() != nullptr) {
                PyErr_Clear();
                if (!takes_integers())
                    fail_type();
                fail_range(object);
            }
            number = {false, large};
        }
        if (is_floating())
            return pack_float(number.as_double());
        if (!takes_integers()) [[unlikely]]
            fail_type();
        if (!fits(number, parameter_->kind, parameter_->size)) [[unlikely]]
            fail_range(object);
        write(number.bits);
    }

    void pack_float(double value) {
        const auto size = parameter_->size;
        if (!is_floating() && !(is_unknown() && (size == 4 || size == 8))) [[unlikely]] {
            if (is_unknown() && size == 2)
                fail(PyExc_TypeError,
                     "the parameter's type is not known, and 2 bytes may be half or bfloat16: "
                     "pass numpy.float16(x), or its bytes");
            fail_type();
        }
        if (!write_float(value, parameter_->kind, size, out_)) [[unlikely]]
            fail_range(object_);
    }

    void pack_bool(bool value) {
        if (is_floating())
            return pack_float(value ? 1.0 : 0.0);
        if (!takes_integers() || is(ParameterKind::pointer) || is(ParameterKind::const_pointer))
            fail_type();
        write(value ? 1 : 0);
    }

    void pack_none() {
        if (!is_pointer()) [[unlikely]]
            fail_type();
        write(0);
    }

    double as_double(PyObject* object) const {
        const double value = PyFloat_AsDouble(object);
        if (value == -1.0 && PyErr_Occurred() != nullptr) {
            if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
                PyErr_Clear();
                fail_range(object);
            }
            throw PythonError();
        }
        return value;
    }

    void pack_bytes(const void* bytes, std::size_t size) {
        if (size != parameter_->size)
            fail(PyExc_ValueError, "it has {} bytes, and the parameter {}{}", size,
                 parameter_->size,
                 is_pointer() && PyBytes_Check(object_)
                     ? ". bytes are passed by value; memory is passed as an array"
                     : "");
        std::memcpy(out_, bytes, size);
    }

    /// The object's own bytes, by the buffer protocol.
    void pack_contents(PyObject* object) {
        Py_buffer view;
        check(PyObject_GetBuffer(object, &view, PyBUF_FORMAT));
        const KeptObject owner(view);
        check_ctypes_kind(view.format);
        pack_bytes(view.buf, static_cast<std::size_t>(view.len));
    }

    void check_ctypes_kind(const char* format) const {
        if (is_unknown() || format == nullptr)
            return;
        const char code = format[std::strlen(format) - 1];
        const bool number = std::strchr("fdg", code) != nullptr;
        const bool address = std::strchr("PzZ&}", code) != nullptr;
        if (is_floating() != number)
            fail_type();
        if (address && !is_pointer())
            fail_type();
    }

    void pack_numpy_bytes(PyObject* object) {
        if (!is_unknown())
            fail_type();
        const Ref bytes = Ref::take(PyObject_CallMethod(object, "tobytes", nullptr));
        if (!PyBytes_Check(bytes.get()))
            fail_type();
        pack_bytes(PyBytes_AS_STRING(bytes.get()),
                   static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.get())));
    }

    void pack_numpy_floating(PyObject* object) {
        if (is_unknown()) {
            // One of the parameter's own size goes in as it is.
            const Ref size = attribute(object, "itemsize");
            if (PyLong_AsLong(size.get()) == static_cast<long>(parameter_->size))
                return pack_numpy_bytes(object);
        }
        pack_float(as_double(object));
    }

    void pack_other(PyObject* object, const TypeInfo& info) {
        switch (info.kind) {
            case ObjectKind::integer:
            case ObjectKind::numpy_integer: {
                const Ref value = Ref::take(PyNumber_Index(object));
                return pack_integer(value.get());
            }
            case ObjectKind::boolean: return pack_bool(object == Py_True);
            case ObjectKind::numpy_boolean: {
                const int value = PyObject_IsTrue(object);
                check(value);
                return pack_bool(value != 0);
            }
            case ObjectKind::floating: return pack_float(as_double(object));
            case ObjectKind::numpy_floating: return pack_numpy_floating(object);
            case ObjectKind::numpy_other:
                // Small floating-point types of other packages know their value.
                if (is_floating() &&
                    !std::string_view(Py_TYPE(object)->tp_name).starts_with("numpy."))
                    return pack_float(as_double(object));
                return pack_numpy_bytes(object);
            case ObjectKind::bytes:
                return pack_bytes(PyBytes_AS_STRING(object),
                                  static_cast<std::size_t>(PyBytes_GET_SIZE(object)));
            case ObjectKind::ctypes_scalar:
            case ObjectKind::ctypes_pointer: return pack_contents(object);
            case ObjectKind::ctypes_struct:
                if (!is_unknown())
                    fail_type();
                return pack_contents(object);
            default: return pack_array(object, info);
        }
    }

    [[gnu::noinline]] void fail_space(std::int32_t device_type) const {
        static constexpr const char* kHere[] = {"the CPU", "a CUDA device", "an NPU"};
        const char* there = reachable(Space::cpu, device_type)    ? "the CPU"
                            : reachable(Space::cuda, device_type) ? "a CUDA device"
                            : reachable(Space::npu, device_type)  ? "an NPU"
                                                                  : "another kind of device";
        fail(PyExc_ValueError, "its memory is that of {}, and the kernel runs on {}", there,
             kHere[static_cast<int>(signature_.space)]);
    }

    void pack_array(PyObject* object, const TypeInfo& info) {
        if (!is_pointer()) [[unlikely]] {
            if (info.kind == ObjectKind::other)
                fail_type();
            fail(PyExc_TypeError,
                 "an array is passed as the address of its memory, and the parameter of type {} "
                 "({} bytes) takes none",
                 parameter_->type.empty() ? "unknown" : parameter_->type, parameter_->size);
        }
        ArrayView view;
        if (signature_.space != Space::cpu && info.kind == ObjectKind::buffer) [[unlikely]]
            fail_space(dlpack::kCpu);
        if (!view_array(object, info, signature_.space, view, kept_)) [[unlikely]]
            fail_type();
        if (!reachable(signature_.space, view.device_type)) [[unlikely]]
            fail_space(view.device_type);
        if (device_ >= 0 && view.device_index >= 0 && view.device_index != device_ &&
            view.device_type == dlpack::kCuda) [[unlikely]]
            fail(PyExc_ValueError,
                 "its memory is on device {}, and the kernel would run on device {}. Where devices "
                 "can reach each other, pass the address as an int",
                 view.device_index, device_);
        if (!view.contiguous) [[unlikely]]
            fail(PyExc_ValueError,
                 "its elements are not contiguous in C order. Copy it; or, when the kernel is told "
                 "the strides, pass the address as an int");
        if (view.read_only && is(ParameterKind::pointer)) [[unlikely]]
            fail(PyExc_ValueError,
                 "its memory is read-only, and the kernel may write: the parameter is {}",
                 parameter_->type);
        if (first_device_ == kNoArray && view.device_type == dlpack::kCuda) {
            first_array_ = info;
            first_device_ = view.device_index;
        }
        write(view.address);
    }

    const Signature& signature_;
    const int device_;
    KeptObjects* const kept_;
    std::size_t index_ = 0;
    const Parameter* parameter_ = nullptr;
    unsigned char* out_ = nullptr;
    PyObject* object_ = nullptr;
    TypeInfo first_array_;
    std::int32_t first_device_ = kNoArray;
};

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
