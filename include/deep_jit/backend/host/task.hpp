// One launch: a kernel, its grid and a copy of its arguments, shared by the threads that run it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <deep_jit/backend/host/abi.hpp>
#include <deep_jit/backend/host/block_runner.hpp>
#include <deep_jit/runtime/arguments.hpp>

namespace deep_jit::host {

class Task {
public:
    /// `keep_alive` owns the code behind `entry`. At most `max_threads` threads run blocks.
    Task(std::shared_ptr<const void> keep_alive, const abi::Entry& entry, abi::Index grid,
         abi::Index block, const Arguments& arguments, int max_threads)
        : keep_alive_(std::move(keep_alive)),
          entry_(entry),
          grid_(grid),
          block_(block),
          num_blocks_(std::uint64_t(grid.x) * grid.y * grid.z),
          places_(max_threads) {
        // A launch may outlive its caller's frame, so the arguments' bytes move in.
        std::size_t bytes = 0;
        for (unsigned i = 0; i < entry.num_params; ++i)
            bytes += (entry.param_sizes[i] + kAlign - 1) / kAlign;
        storage_.resize(bytes);
        std::size_t at = 0;
        for (unsigned i = 0; i < entry.num_params; ++i) {
            std::memcpy(&storage_[at], arguments.pointers[i], entry.param_sizes[i]);
            pointers_.push_back(&storage_[at]);
            at += (entry.param_sizes[i] + kAlign - 1) / kAlign;
        }
        chunk_ = std::max<std::uint64_t>(1, num_blocks_ / (8 * std::uint64_t(max_threads)));
    }

    /// Called by whichever thread finishes the last block.
    std::function<void(Task&)> on_done;

    /// Whether a thread that comes now would find something to do.
    bool wants_threads() const {
        return places_.load(std::memory_order_relaxed) > 0 &&
               next_.load(std::memory_order_relaxed) < num_blocks_;
    }

    std::uint64_t num_blocks() const { return num_blocks_; }
    const std::exception_ptr& error() const { return error_; }

    /// Runs blocks until none is left, if there is still a place for one more thread. Returns
    /// whether there was.
    bool work() {
        if (places_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
            places_.fetch_add(1, std::memory_order_relaxed);
            return false;
        }
        static thread_local BlockRunner runner;
        std::uint64_t done = 0;
        while (true) {
            const auto begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
            if (begin >= num_blocks_)
                break;
            const auto end = std::min(begin + chunk_, num_blocks_);
            for (auto i = begin; i < end; ++i) run_block(runner, i);
            done += end - begin;
        }
        places_.fetch_add(1, std::memory_order_relaxed);
        // The last one to report sees what all others wrote.
        if (done > 0 && finished_.fetch_add(done, std::memory_order_acq_rel) + done == num_blocks_)
            on_done(*this);
        return true;
    }

private:
    static constexpr std::size_t kAlign = alignof(std::max_align_t);
    struct alignas(std::max_align_t) Chunk {
        unsigned char bytes[kAlign];
    };

    void run_block(BlockRunner& runner, std::uint64_t index) {
        if (failed_.load(std::memory_order_relaxed))
            return;
        abi::Block block{};
        block.grid_dim = grid_;
        block.block_dim = block_;
        block.block_idx = {static_cast<unsigned>(index % grid_.x),
                           static_cast<unsigned>(index / grid_.x % grid_.y),
                           static_cast<unsigned>(index / grid_.x / grid_.y)};
        try {
            runner.run(entry_, block, pointers_.data());
        } catch (...) {
            const std::lock_guard lock(error_mutex_);
            if (error_ == nullptr)
                error_ = std::current_exception();
            failed_.store(true, std::memory_order_relaxed);
        }
    }

    std::shared_ptr<const void> keep_alive_;
    const abi::Entry& entry_;
    abi::Index grid_;
    abi::Index block_;
    std::uint64_t num_blocks_;
    std::uint64_t chunk_ = 1;
    std::vector<Chunk> storage_;
    std::vector<void*> pointers_;
    std::atomic<int> places_;
    std::atomic<std::uint64_t> next_{0};
    std::atomic<std::uint64_t> finished_{0};
    std::atomic<bool> failed_{false};
    std::mutex error_mutex_;
    std::exception_ptr error_;
};

}  // namespace deep_jit::host
