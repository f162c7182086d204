// Runs a call on a stack that is large enough for compilers.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <exception>
#include <utility>

namespace deep_jit {

namespace detail {

template <typename Call>
struct DeepCall {
    Call& call;
    std::exception_ptr error;

    static void* run(void* self) {
        auto& task = *static_cast<DeepCall*>(self);
        try {
            task.call();
        } catch (...) {
            task.error = std::current_exception();
        }
        return nullptr;
    }
};

}  // namespace detail

/// `call()` on a thread of its own with `bytes` of stack, waited for; what it throws is thrown. A
/// compiler within the process would otherwise get the stack of whatever thread asks, and it takes
/// a crash to learn that it was too small. Memory that is not used is not taken. When no such
/// thread can be made, `call()` runs on this one.
template <typename Call>
void run_on_deep_stack(std::size_t bytes, Call&& call) {
    detail::DeepCall<std::remove_reference_t<Call>> task{call, nullptr};
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, bytes);
    // Signals of the program are for its own threads.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const int error = ::pthread_create(&thread, &attributes, &decltype(task)::run, &task);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_attr_destroy(&attributes);
    if (error == 0)
        ::pthread_join(thread, nullptr);
    else
        decltype(task)::run(&task);
    if (task.error)
        std::rethrow_exception(task.error);
}

}  // namespace deep_jit
