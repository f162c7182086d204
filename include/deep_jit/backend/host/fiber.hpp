// Stacks that take turns on one CPU thread: what the threads of a block wait on at a barrier.
#pragma once

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include <deep_jit/utils/exception.hpp>

#if !defined(__x86_64__) || defined(DEEP_JIT_HOST_UCONTEXT)
#include <ucontext.h>
#define DEEP_JIT_FIBER_UCONTEXT 1
#else
#define DEEP_JIT_FIBER_UCONTEXT 0
#endif

#if defined(__SANITIZE_ADDRESS__)
#define DEEP_JIT_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DEEP_JIT_FIBER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define DEEP_JIT_FIBER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DEEP_JIT_FIBER_TSAN 1
#endif
#endif
#if defined(DEEP_JIT_FIBER_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(DEEP_JIT_FIBER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if !DEEP_JIT_FIBER_UCONTEXT
extern "C" void deep_jit_switch_stack(void** from, void* to);
extern "C" void deep_jit_start_stack();

// Saves the registers that a callee must preserve on the old stack, takes the new stack and
// restores them from there. A fresh stack "returns" to the second function, which calls the
// function in rbx with the argument in r12. In a COMDAT group, since headers are included often.
asm(R"(
.pushsection .text.deep_jit_switch_stack,"axG",@progbits,deep_jit_switch_stack,comdat
.weak deep_jit_switch_stack
.hidden deep_jit_switch_stack
.type deep_jit_switch_stack,@function
deep_jit_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size deep_jit_switch_stack,.-deep_jit_switch_stack
.popsection
.pushsection .text.deep_jit_start_stack,"axG",@progbits,deep_jit_start_stack,comdat
.weak deep_jit_start_stack
.hidden deep_jit_start_stack
.type deep_jit_start_stack,@function
deep_jit_start_stack:
    movq %r12, %rdi
    callq *%rbx
    ud2
.size deep_jit_start_stack,.-deep_jit_start_stack
.popsection
)");
#endif

namespace deep_jit::host {

/// One stack with what is running on it. Default-constructed: the stack of the current thread.
class Fiber {
public:
    static constexpr std::size_t kStackBytes = std::size_t(1) << 20;

    Fiber() {  // NOLINT(modernize-use-equals-default): not empty everywhere
#if defined(DEEP_JIT_FIBER_TSAN)
        tsan_ = __tsan_get_current_fiber();
#endif
    }

    /// A stack of its own, on which `function(argument)` starts at the first switch to it. It must
    /// never return. Throws LaunchError when there is no memory.
    Fiber(void (*function)(void*), void* argument) : function_(function), argument_(argument) {
        // The lowest page stays closed: running out of stack is a fault, not silent damage.
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        size_ = kStackBytes + page;
        memory_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (memory_ == MAP_FAILED) {
            memory_ = nullptr;
            throw LaunchError("There is no memory for the stacks of a block's threads: " +
                              deep_jit::detail::errno_text(errno));
        }
        // Best effort: a process may have only so many mappings.
        ::mprotect(memory_, page, PROT_NONE);
        bottom_ = static_cast<char*>(memory_) + page;
#if DEEP_JIT_FIBER_UCONTEXT
        ::getcontext(&context_);
        context_.uc_stack.ss_sp = bottom_;
        context_.uc_stack.ss_size = kStackBytes;
        context_.uc_link = nullptr;
        const auto self = reinterpret_cast<std::uintptr_t>(this);
        ::makecontext(&context_, reinterpret_cast<void (*)()>(&Fiber::start_parts), 2,
                      static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
#else
        // deep_jit_start_stack is entered with rsp at the null, a multiple of 16, as its call
        // needs.
        auto* top = reinterpret_cast<void**>(bottom_ + kStackBytes) - 2;
        *top = nullptr;  // ends backtraces
        *--top = reinterpret_cast<void*>(&deep_jit_start_stack);
        *--top = nullptr;                                 // rbp
        *--top = reinterpret_cast<void*>(&Fiber::start);  // rbx
        *--top = this;                                    // r12
        for (int i = 13; i <= 15; ++i) *--top = nullptr;  // r13, r14, r15
        stack_pointer_ = top;
#endif
#if defined(DEEP_JIT_FIBER_TSAN)
        tsan_ = __tsan_create_fiber(0);
#endif
    }

    ~Fiber() {
        if (memory_ == nullptr)
            return;
#if defined(DEEP_JIT_FIBER_TSAN)
        __tsan_destroy_fiber(tsan_);
#endif
        ::munmap(memory_, size_);
    }

    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Leaves this fiber, which must be the running one, and goes on in `to` until something
    /// switches back.
    void switch_to(Fiber& to) {
        // Exceptions in flight belong to a stack, but the C++ runtime keeps them for the thread.
        void* globals = ::abi::__cxa_get_globals();
        std::memcpy(exceptions_, globals, sizeof(exceptions_));
        std::memcpy(globals, to.exceptions_, sizeof(exceptions_));
#if defined(DEEP_JIT_FIBER_ASAN)
        __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_,
                                       to.memory_ ? kStackBytes : to.size_);
        to.came_from_ = this;
#endif
#if defined(DEEP_JIT_FIBER_TSAN)
        __tsan_switch_to_fiber(to.tsan_, 0);
#endif
#if DEEP_JIT_FIBER_UCONTEXT
        ::swapcontext(&context_, &to.context_);
#else
        deep_jit_switch_stack(&stack_pointer_, to.stack_pointer_);
#endif
        arrived();
    }

private:
    static void start(void* self) {
        auto* fiber = static_cast<Fiber*>(self);
        fiber->arrived();
        fiber->function_(fiber->argument_);
    }

#if DEEP_JIT_FIBER_UCONTEXT
    static void start_parts(unsigned high, unsigned low) {
        start(reinterpret_cast<void*>((std::uintptr_t(high) << 32) | low));
    }
#endif

    /// Runs on this fiber's stack just after a switch to it.
    void arrived() {
#if defined(DEEP_JIT_FIBER_ASAN)
        // Learns where the stack is that was left; for a thread's own stack there is no other way.
        const void* bottom = nullptr;
        std::size_t size = 0;
        __sanitizer_finish_switch_fiber(fake_stack_, &bottom, &size);
        if (came_from_ != nullptr && came_from_->memory_ == nullptr) {
            came_from_->bottom_ = static_cast<char*>(const_cast<void*>(bottom));
            came_from_->size_ = size;
        }
#endif
    }

    void (*function_)(void*) = nullptr;
    void* argument_ = nullptr;
    void* memory_ = nullptr;
    char* bottom_ = nullptr;
    std::size_t size_ = 0;
    // __cxa_eh_globals: a pointer and a count
    alignas(void*) unsigned char exceptions_[2 * sizeof(void*)] = {};
#if DEEP_JIT_FIBER_UCONTEXT
    ucontext_t context_{};
#else
    void* stack_pointer_ = nullptr;
#endif
#if defined(DEEP_JIT_FIBER_ASAN)
    void* fake_stack_ = nullptr;
    Fiber* came_from_ = nullptr;
#endif
#if defined(DEEP_JIT_FIBER_TSAN)
    void* tsan_ = nullptr;
#endif
};

}  // namespace deep_jit::host
