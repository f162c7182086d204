// The parts of DLPack's ABI that are read here (https://dmlc.github.io/dlpack, version 1.3).
#pragma once

#include <cstdint>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {
namespace dlpack {

inline constexpr std::uint32_t kMajorVersion = 1;

enum DeviceType : std::int32_t {
    kCpu = 1,
    kCuda = 2,
    kCudaHost = 3,
    kExtension = 12,  ///< what PyTorch's private backends, NPUs among them, say
    kCudaManaged = 13,
};

struct Version {
    std::uint32_t major;
    std::uint32_t minor;
};

struct Device {
    std::int32_t type;
    std::int32_t index;
};

struct Tensor {
    void* data;
    Device device;
    std::int32_t ndim;
    struct {
        std::uint8_t code;
        std::uint8_t bits;
        std::uint16_t lanes;
    } type;
    std::int64_t* shape;
    std::int64_t* strides;  ///< in elements; null: C-contiguous
    std::uint64_t byte_offset;
};

/// What a capsule "dltensor" holds begins with this.
struct ManagedTensor {
    Tensor tensor;
};

/// What a capsule "dltensor_versioned" holds.
struct VersionedTensor {
    Version version;
    void* manager;
    void (*deleter)(VersionedTensor*);
    std::uint64_t flags;
    Tensor tensor;
};
inline constexpr std::uint64_t kReadOnly = 1;

/// What the capsule `type.__dlpack_c_exchange_api__` ("dlpack_exchange_api") holds.
struct ExchangeApi {
    Version version;
    ExchangeApi* older;
    void* allocate;
    void* tensor_from_object;
    void* object_from_tensor;
    /// Fills a tensor that is valid until control returns to Python; may be null.
    int (*view)(void* object, Tensor* out);
    int (*current_stream)(std::int32_t device_type, std::int32_t device_index, void** out);
};

inline bool is_contiguous(const Tensor& tensor) {
    if (tensor.strides == nullptr)
        return true;
    std::int64_t expected = 1;
    bool dense = true;
    for (std::int32_t i = tensor.ndim; i-- > 0;) {
        if (tensor.shape[i] == 0)
            return true;
        if (tensor.shape[i] != 1)
            dense = dense && tensor.strides[i] == expected;
        expected *= tensor.shape[i];
    }
    return dense;
}

}  // namespace dlpack
   // clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
