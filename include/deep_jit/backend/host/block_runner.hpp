// Runs the threads of one block on the calling CPU thread.
#pragma once

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <deep_jit/backend/host/abi.hpp>
#include <deep_jit/backend/host/fiber.hpp>

namespace deep_jit::host {

/// A kernel's threads run one after the other on one stack for as long as none waits at a
/// barrier. A thread that does is left on its stack, and the threads behind it go on on another;
/// so a kernel without barriers pays nothing for them. When every thread of the block waits or
/// has ended, all that wait go on.
class BlockRunner {
public:
    BlockRunner() = default;
    BlockRunner(const BlockRunner&) = delete;
    BlockRunner& operator=(const BlockRunner&) = delete;

    /// Runs the block to its end. Throws what one of its threads threw first; the others are
    /// unwound at their next barrier or do not start.
    void run(const abi::KernelEntry& entry, abi::RunningBlock block, void* const* arguments) {
        block_ = block;
        block_.next_thread = 0;
        block_.num_threads = block.block_dim.x * block.block_dim.y * block.block_dim.z;
        block_.barrier = [](abi::RunningBlock* running) {
            static_cast<BlockRunner*>(running->block_runner)->wait_at_barrier();
        };
        block_.block_runner = this;
        entry_ = &entry;
        arguments_ = arguments;
        error_ = nullptr;

        while (true) {
            if (block_.next_thread < block_.num_threads) {
                if (Fiber* fiber = take_fiber())
                    resume(*fiber);
            } else if (!waiting_.empty()) {
                released_.swap(waiting_);
                for (Fiber* fiber : released_) resume(*fiber);
                released_.clear();
            } else {
                break;
            }
        }
        if (std::exchange(out_of_memory_, false)) {
            free_.clear();
            fibers_.clear();
        }
        if (error_ != nullptr)
            std::rethrow_exception(std::exchange(error_, nullptr));
    }

private:
    /// Unwinds a thread of a block that failed.
    struct Unwind {};

    /// Null when there is no memory; then the block has failed.
    Fiber* take_fiber() {
        if (free_.empty()) {
            try {
                fibers_.push_back(std::make_unique<Fiber>(&BlockRunner::fiber_main, this));
                free_.push_back(fibers_.back().get());
            } catch (...) {
                fail();
                out_of_memory_ = true;
                return nullptr;
            }
        }
        Fiber* fiber = free_.back();
        free_.pop_back();
        return fiber;
    }

    void resume(Fiber& fiber) {
        current_ = &fiber;
        thread_.switch_to(fiber);
    }

    static void fiber_main(void* self) {
        auto* runner = static_cast<BlockRunner*>(self);
        while (true) {
            Fiber* fiber = runner->current_;
            runner->run_threads();
            runner->free_.push_back(fiber);
            fiber->switch_to(runner->thread_);
        }
    }

    void run_threads() noexcept {
        try {
            entry_->run_threads(&block_, arguments_);
        } catch (const Unwind&) {  // NOLINT: the error is known already
        } catch (...) {
            fail();
        }
    }

    /// Keeps the exception being handled, if it is the first, and starts no more threads. Those
    /// that wait are unwound.
    void fail() {
        if (error_ == nullptr)
            error_ = std::current_exception();
        block_.next_thread = block_.num_threads;
    }

    void wait_at_barrier() {
        if (error_ != nullptr)
            throw Unwind();
        if (block_.num_threads == 1)
            return;
        Fiber* fiber = current_;
        waiting_.push_back(fiber);
        fiber->switch_to(thread_);
        if (error_ != nullptr)
            throw Unwind();
    }

    Fiber thread_;
    Fiber* current_ = nullptr;
    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::vector<Fiber*> free_;
    std::vector<Fiber*> waiting_;
    // Not a local variable of run: a search for leaks sees the stack of the running fiber only.
    std::vector<Fiber*> released_;
    abi::RunningBlock block_{};
    const abi::KernelEntry* entry_ = nullptr;
    void* const* arguments_ = nullptr;
    std::exception_ptr error_;
    bool out_of_memory_ = false;
};

}  // namespace deep_jit::host
