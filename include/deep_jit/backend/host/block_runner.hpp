// Runs the threads of one block on the calling CPU thread.
#pragma once

#include <exception>
#include <memory>
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
    void run(const abi::Entry& entry, abi::Block block, void* const* arguments) {
        block_ = block;
        block_.next = 0;
        block_.count = block.block_dim.x * block.block_dim.y * block.block_dim.z;
        block_.barrier = [](abi::Block* running) {
            static_cast<BlockRunner*>(running->runner)->wait_at_barrier();
        };
        block_.runner = this;
        entry_ = &entry;
        arguments_ = arguments;
        error_ = nullptr;

        std::vector<Fiber*> released;
        while (true) {
            if (block_.next < block_.count) {
                resume(*take_fiber());
            } else if (!waiting_.empty()) {
                released.swap(waiting_);
                for (Fiber* fiber : released) resume(*fiber);
                released.clear();
            } else {
                break;
            }
        }
        if (error_ != nullptr)
            std::rethrow_exception(std::exchange(error_, nullptr));
    }

private:
    /// Unwinds a thread of a block that failed.
    struct Unwind {};

    Fiber* take_fiber() {
        if (free_.empty()) {
            fibers_.push_back(std::make_unique<Fiber>(&BlockRunner::fiber_main, this));
            free_.push_back(fibers_.back().get());
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
            entry_->run(&block_, arguments_);
        } catch (const Unwind&) {  // NOLINT: the error is known already
        } catch (...) {
            if (error_ == nullptr)
                error_ = std::current_exception();
            block_.next = block_.count;
        }
    }

    void wait_at_barrier() {
        if (error_ != nullptr)
            throw Unwind();
        if (block_.count == 1)
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
    abi::Block block_{};
    const abi::Entry* entry_ = nullptr;
    void* const* arguments_ = nullptr;
    std::exception_ptr error_;
};

}  // namespace deep_jit::host
