// Counts what operator new is asked for, in the whole test program.
#pragma once

#include <cstddef>

namespace deep_jit_test {

/// Calls of operator new, of any kind, by this thread so far.
std::size_t allocations_of_this_thread();

}  // namespace deep_jit_test
