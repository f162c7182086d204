// The sanitizers ask each test program for its options; without a sanitizer nobody calls these.

// Kernels have thread-local variables, in libraries that come and go. The size of their memory is
// guessed wrongly by the sanitizer of older Clangs, whose search for leaks then runs out of it and
// crashes. Without this interception that memory is not searched.
extern "C" const char* __asan_default_options() {  // NOLINT: the sanitizer's name
    return "intercept_tls_get_addr=0";
}

// Tests fork while other threads run, and the child starts threads of its own: the sanitizer would
// end it, in case one of the others held a lock.
extern "C" const char* __tsan_default_options() {  // NOLINT: the sanitizer's name
    return "die_after_fork=0";
}

// The count of references to an exception is kept inside libstdc++, out of the sanitizer's sight.
extern "C" const char* __tsan_default_suppressions() {  // NOLINT: the sanitizer's name
    return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
