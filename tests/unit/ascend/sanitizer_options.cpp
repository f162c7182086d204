// AddressSanitizer asks the program for its options.
//
// The kernels have thread-local variables, in libraries that come and go. The size of their memory
// is guessed wrongly by the sanitizer of older Clangs, whose search for leaks then runs out of it
// and crashes. Without this interception that memory is not searched.
extern "C" const char* __asan_default_options() {  // NOLINT: the sanitizer's name
    return "intercept_tls_get_addr=0";
}
