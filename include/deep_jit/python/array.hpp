// Arrays of other libraries: where their memory is.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <deep_jit/python/dlpack.hpp>
#include <deep_jit/python/object.hpp>
#include <deep_jit/python/type_info.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

/// Memory that kernels of a backend can use.
enum class Space : std::uint8_t { cpu, cuda, npu };

struct ArrayView {
    std::uint64_t address = 0;
    std::int32_t device_type = dlpack::kCpu;
    std::int32_t device_index = -1;  ///< -1: unknown
    bool contiguous = true;
    bool read_only = false;
};

inline bool reachable(Space space, std::int32_t device_type) {
    switch (space) {
        case Space::cpu:
            return device_type == dlpack::kCpu || device_type == dlpack::kCudaHost ||
                   device_type == dlpack::kCudaManaged;
        case Space::cuda:
            return device_type == dlpack::kCuda || device_type == dlpack::kCudaHost ||
                   device_type == dlpack::kCudaManaged;
        case Space::npu: return device_type == dlpack::kExtension;
    }
    return false;
}

/// Keeps the memory of an argument where it is: of an object with the buffer protocol through the
/// view, which also forbids to resize it; of any other through a reference. Needs the GIL.
class KeptObject {
public:
    explicit KeptObject(PyObject* object) {
        Py_INCREF(object);
        view_.obj = object;
    }
    /// Takes over a view.
    explicit KeptObject(const Py_buffer& view) : view_(view) {}
    KeptObject(KeptObject&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
    KeptObject& operator=(KeptObject&& other) noexcept {
        std::swap(view_, other.view_);
        return *this;
    }
    KeptObject(const KeptObject&) = delete;
    KeptObject& operator=(const KeptObject&) = delete;
    ~KeptObject() { PyBuffer_Release(&view_); }

private:
    Py_buffer view_{};
};

using KeptObjects = std::vector<KeptObject>;

namespace detail {

inline void fill_from(const dlpack::Tensor& tensor, ArrayView& out) {
    out.address = reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.byte_offset;
    out.device_type = tensor.device.type;
    out.device_index = tensor.device.index;
    out.contiguous = dlpack::is_contiguous(tensor);
}

inline std::uint64_t as_address(PyObject* object) {
    const auto value = PyLong_AsUnsignedLongLong(object);
    if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr)
        throw PythonError();
    return value;
}

/// By PyTorch's methods, for versions without DLPack's C functions and for tensors these refuse.
inline void view_torch(PyObject* object, ArrayView& out) {
    static const Name data_ptr("data_ptr"), is_contiguous("is_contiguous"), device("device"),
        type("type"), index("index");
    const auto call = [&](const Name& name) {
        return Ref::take(PyObject_CallMethodNoArgs(object, name.get()));
    };
    const Ref where = Ref::take(PyObject_GetAttr(object, device.get()));
    const Ref kind = Ref::take(PyObject_GetAttr(where.get(), type.get()));
    const auto name = text_of(kind.get(), "device.type");
    out.device_type = name == "cpu"    ? dlpack::kCpu
                      : name == "cuda" ? dlpack::kCuda
                      : name == "npu"  ? dlpack::kExtension
                                       : 0;
    const Ref number = Ref::take(PyObject_GetAttr(where.get(), index.get()));
    if (number.get() != Py_None)
        out.device_index = static_cast<std::int32_t>(PyLong_AsLong(number.get()));
    out.contiguous = call(is_contiguous).get() == Py_True;
    out.address = as_address(call(data_ptr).get());
}

/// By attributes of CuPy's arrays, which cost a tenth of their __cuda_array_interface__. False
/// when this CuPy has others.
inline bool view_cupy(PyObject* object, ArrayView& out) {
    static const Name data("data"), ptr("ptr"), device_id("device_id"), contiguous("_c_contiguous");
    const auto get = [](PyObject* from, const Name& name) {
        return Ref::take_or_null(PyObject_GetAttr(from, name.get()));
    };
    const Ref is_contiguous = get(object, contiguous);
    const Ref memory = is_contiguous ? get(object, data) : Ref();
    const Ref address = memory ? get(memory.get(), ptr) : Ref();
    const Ref device = address ? get(memory.get(), device_id) : Ref();
    if (!device || !PyLong_Check(address.get()) || !PyLong_Check(device.get())) {
        PyErr_Clear();
        return false;
    }
    out.address = as_address(address.get());
    out.device_type = dlpack::kCuda;
    out.device_index = static_cast<std::int32_t>(PyLong_AsLong(device.get()));
    out.contiguous = PyObject_IsTrue(is_contiguous.get()) == 1;
    return true;
}

/// `interface`: the dictionary of __cuda_array_interface__.
inline void view_cuda_array(PyObject* interface, ArrayView& out) {
    const auto item = [&](const char* name) {
        PyObject* value = PyDict_Check(interface) ? PyDict_GetItemString(interface, name) : nullptr;
        return value == Py_None ? nullptr : value;  // borrowed
    };
    PyObject* data = item("data");
    PyObject* shape = item("shape");
    if (data == nullptr || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) != 2 ||
        shape == nullptr || !PyTuple_Check(shape))
        raise(PyExc_TypeError, "its __cuda_array_interface__ has no 'data' and 'shape'");
    out.device_type = dlpack::kCuda;
    out.address = as_address(PyTuple_GET_ITEM(data, 0));
    out.read_only = PyObject_IsTrue(PyTuple_GET_ITEM(data, 1)) == 1;
    PyObject* strides = item("strides");
    PyObject* type = item("typestr");
    if (strides == nullptr || type == nullptr)
        return;
    const auto digits = std::string(text_of(type, "typestr")).substr(2);
    if (!PyTuple_Check(strides) || PyTuple_GET_SIZE(strides) != PyTuple_GET_SIZE(shape))
        raise(PyExc_TypeError, "its __cuda_array_interface__ has strides of another length");
    long long expected = std::atoll(digits.c_str());
    for (Py_ssize_t i = PyTuple_GET_SIZE(shape); i-- > 0;) {
        const long long extent = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
        const long long stride = PyLong_AsLongLong(PyTuple_GET_ITEM(strides, i));
        if (PyErr_Occurred() != nullptr)
            throw PythonError();
        if (extent == 0) {
            out.contiguous = true;
            return;
        }
        if (extent != 1 && stride != expected)
            out.contiguous = false;
        expected *= extent;
    }
}

/// By the Python method; the memory belongs to the object, so the capsule need not be kept.
/// Memory that `space` does not reach is not asked for.
inline void view_dlpack(PyObject* object, Space space, ArrayView& out) {
    const Ref device = Ref::take(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
    int type = 0, index = 0;
    if (PyArg_ParseTuple(device.get(), "ii", &type, &index) == 0)
        throw PythonError();
    out.device_type = type;
    if (!reachable(space, type))
        return;
    const Ref method = attribute(object, "__dlpack__");
    const Ref none = Ref::take(PyTuple_New(0));
    const auto export_with = [&](bool versioned) {
        const Ref options = Ref::take(PyDict_New());
        // The launch goes to a stream of its own choice: the producer need not wait for any.
        if (type == dlpack::kCuda)
            check(PyDict_SetItemString(options.get(), "stream",
                                       Ref::take(PyLong_FromLong(-1)).get()));
        if (versioned)
            check(PyDict_SetItemString(options.get(), "max_version",
                                       Ref::take(Py_BuildValue("(ii)", 1, 0)).get()));
        return Ref::take_or_null(PyObject_Call(method.get(), none.get(), options.get()));
    };
    Ref capsule = export_with(true);
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();  // a producer of before version 1
        capsule = export_with(false);
    }
    if (!capsule)
        throw PythonError();
    if (PyCapsule_IsValid(capsule.get(), "dltensor_versioned") != 0) {
        const auto* managed = static_cast<const dlpack::VersionedTensor*>(
            PyCapsule_GetPointer(capsule.get(), "dltensor_versioned"));
        if (managed->version.major != dlpack::kMajorVersion)
            raise(PyExc_TypeError, "its __dlpack__ speaks version {} of DLPack",
                  managed->version.major);
        fill_from(managed->tensor, out);
        out.read_only = (managed->flags & dlpack::kReadOnly) != 0;
    } else {
        const auto* managed = static_cast<const dlpack::ManagedTensor*>(
            PyCapsule_GetPointer(capsule.get(), "dltensor"));
        if (managed == nullptr)
            throw PythonError();
        fill_from(managed->tensor, out);
    }
}

inline void view_buffer(PyObject* object, ArrayView& out, KeptObjects* kept) {
    Py_buffer view;
    check(PyObject_GetBuffer(object, &view, PyBUF_STRIDES));
    KeptObject owner(view);
    out.address = reinterpret_cast<std::uintptr_t>(view.buf);
    out.contiguous = PyBuffer_IsContiguous(&view, 'C') != 0;
    out.read_only = view.readonly != 0;
    if (kept != nullptr)
        kept->push_back(std::move(owner));
}

}  // namespace detail

/// Where the memory of an array is; false when the object is no array. With `kept`, the memory
/// stays as long as what is added to it.
inline bool view_array(PyObject* object, const TypeInfo& info, Space space, ArrayView& out,
                       KeptObjects* kept) {
    switch (info.kind) {
        case ObjectKind::exchange: {
            dlpack::Tensor tensor;
            if (info.api->view(object, &tensor) == 0) [[likely]] {
                detail::fill_from(tensor, out);
            } else {
                if (!info.is_torch)
                    throw PythonError();
                PyErr_Clear();
                detail::view_torch(object, out);
            }
            break;
        }
        case ObjectKind::torch: detail::view_torch(object, out); break;
        case ObjectKind::buffer: detail::view_buffer(object, out, kept); return true;
        case ObjectKind::dlpack: detail::view_dlpack(object, space, out); break;
        default: {
            if (info.is_cupy && detail::view_cupy(object, out))
                break;
            static const Name interface_name("__cuda_array_interface__");
            PyObject* found = PyObject_GetAttr(object, interface_name.get());
            if (found == nullptr && !PyErr_ExceptionMatches(PyExc_AttributeError))
                throw PythonError();
            PyErr_Clear();
            const Ref interface = Ref::take_or_null(found);
            if (interface)
                detail::view_cuda_array(interface.get(), out);
            else if (try_attribute(object, "__dlpack__"))
                detail::view_dlpack(object, space, out);
            else
                return false;
        }
    }
    if (kept != nullptr)
        kept->emplace_back(object);
    return true;
}

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
