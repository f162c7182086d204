// Marks a launch argument that is already a pointer to its own storage.
#pragma once

#include <type_traits>

namespace deep_jit {

/// A launch argument whose type derives from NoRefPtr passes `ptr` itself as the address of the
/// kernel parameter's bytes, where any other argument passes the address of the C++ object. Its
/// size is not known here, so it is not checked. `ptr` must stay valid until `launch` returns.
struct NoRefPtr {
    void* ptr = nullptr;
};

template <typename T>
inline constexpr bool is_no_ref_ptr_v = std::is_base_of_v<NoRefPtr, std::decay_t<T>>;

}  // namespace deep_jit
