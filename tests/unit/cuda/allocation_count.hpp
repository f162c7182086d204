// Counts what operator new is asked for, in the whole test program.
#pragma once

#include <cstddef>

#include "unit/support.hpp"

namespace deep_jit_test {

/// False under ThreadSanitizer, which has operators of its own.
inline constexpr bool kAllocationsAreCounted = !DJ_TEST_TSAN;

/// Calls of operator new, of any kind, by this thread so far.
std::size_t allocations_of_this_thread();

}  // namespace deep_jit_test
