// Replaces operator new and delete by ones that count. In a file of its own, so that no compiler
// sees through them.
#include "unit/cuda/allocation_count.hpp"

#include <cstdlib>
#include <new>

namespace {

constinit thread_local std::size_t allocations = 0;

[[maybe_unused]] void* allocate(std::size_t bytes, std::size_t alignment) {
    ++allocations;
    void* memory = nullptr;
    if (::posix_memalign(&memory, alignment < sizeof(void*) ? sizeof(void*) : alignment,
                         bytes == 0 ? 1 : bytes) != 0)
        throw std::bad_alloc();
    return memory;
}

}  // namespace

std::size_t deep_jit_test::allocations_of_this_thread() { return allocations; }

#if !DJ_TEST_TSAN
// The forms for arrays and without exceptions end up in these.
void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif
