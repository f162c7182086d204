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
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <deep_jit/backend/host/abi.hpp>
#include <deep_jit/backend/host/block_runner.hpp>
#include <deep_jit/runtime/arguments.hpp>

namespace deep_jit::host {

class Task {
public:
    /// `keep_alive` owns the code behind `entry`. At most `max_threads` threads run blocks.
    Task(std::shared_ptr<const void> keep_alive, const abi::KernelEntry& entry, abi::Index3 grid,
         abi::Index3 block, const Arguments& arguments, int max_threads)
        : keep_alive_(std::move(keep_alive)),
          entry_(entry),
          grid_(grid),
          block_(block),
          num_blocks_(std::uint64_t(grid.x) * grid.y * grid.z),
          places_(max_threads) {
        // A launch may outlive its caller's frame, so the arguments' bytes move in.
        std::size_t size = 0, align = alignof(std::max_align_t);
        const auto place = [&](unsigned i) {
            const std::size_t mask = entry.param_aligns[i] - 1;
            const auto offset = (size + mask) & ~mask;
            size = offset + entry.param_sizes[i];
            return offset;
        };
        for (unsigned i = 0; i < entry.num_params; ++i) {
            align = std::max<std::size_t>(align, entry.param_aligns[i]);
            place(i);
        }
        storage_ = AlignedBytes(std::exchange(size, 0), align);
        pointers_.reserve(entry.num_params);
        for (unsigned i = 0; i < entry.num_params; ++i) {
            pointers_.push_back(storage_.get() + place(i));
            std::memcpy(pointers_.back(), arguments.pointers[i], entry.param_sizes[i]);
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

    /// Whether no thread has come yet.
    bool untouched() const { return next_.load(std::memory_order_relaxed) == 0; }

    std::uint64_t num_blocks() const { return num_blocks_; }

    /// What a block threw first, or null. Moved out, so that the exception does not end in the
    /// thread that happens to end the task, while another one looks at it.
    std::exception_ptr take_error() { return std::exchange(error_, nullptr); }

    /// Runs blocks until none is left, if there is still a place for one more thread. Returns
    /// whether there was.
    bool work() {
        if (places_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
            places_.fetch_add(1, std::memory_order_relaxed);
            return false;
        }
        std::optional<BlockRunner> temporary;
        BlockRunner* const own = thread_runner();
        BlockRunner& runner = own != nullptr ? *own : temporary.emplace();
        std::uint64_t done = 0;
        while (true) {
            const auto begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
            if (begin >= num_blocks_)
                break;
            const auto end = std::min(begin + chunk_, num_blocks_);
            for (auto i = begin; i < end && !failed_.load(std::memory_order_relaxed); ++i)
                run_block(runner, i);
            done += end - begin;
        }
        places_.fetch_add(1, std::memory_order_relaxed);
        // The last one to report sees what all others wrote.
        if (done > 0 && finished_.fetch_add(done, std::memory_order_acq_rel) + done == num_blocks_)
            on_done(*this);
        return true;
    }

private:
    class AlignedBytes {
    public:
        AlignedBytes() = default;
        AlignedBytes(std::size_t size, std::size_t align)
            : bytes_(static_cast<unsigned char*>(::operator new(size, std::align_val_t(align))),
                     Delete{align}) {}
        unsigned char* get() const { return bytes_.get(); }

    private:
        struct Delete {
            std::size_t align;
            void operator()(unsigned char* bytes) const {
                ::operator delete(bytes, std::align_val_t(align));
            }
        };
        std::unique_ptr<unsigned char, Delete> bytes_{nullptr, Delete{1}};
    };

    /// The stacks of the calling thread; null when the thread ends and they are gone: objects of
    /// longer life may still wait for their kernels.
    static BlockRunner* thread_runner() {
        static thread_local bool gone = false;
        struct Owner {
            BlockRunner runner;
            ~Owner() { gone = true; }
        };
        if (gone)
            return nullptr;
        static thread_local Owner owner;
        return &owner.runner;
    }

    /// Keeps a library for good. An exception of a kernel may have its code and its type in there,
    /// and may live on anywhere.
    static void keep_loaded(const std::shared_ptr<const void>& library) {
        struct Kept {
            std::shared_ptr<const void> library;
            const Kept* next;
        };
        static std::atomic<const Kept*> all{nullptr};
        const Kept* known = all.load(std::memory_order_acquire);
        for (const Kept* kept = known; kept != nullptr; kept = kept->next)
            if (kept->library == library)
                return;
        auto* kept = new Kept{library, known};
        while (!all.compare_exchange_weak(kept->next, kept, std::memory_order_acq_rel)) {
        }
    }

    void run_block(BlockRunner& runner, std::uint64_t index) {
        abi::RunningBlock block{};
        block.grid_dim = grid_;
        block.block_dim = block_;
        block.block_idx = {static_cast<unsigned>(index % grid_.x),
                           static_cast<unsigned>(index / grid_.x % grid_.y),
                           static_cast<unsigned>(index / grid_.x / grid_.y)};
        try {
            runner.run(entry_, block, pointers_.data());
        } catch (...) {
            keep_loaded(keep_alive_);
            const std::lock_guard lock(error_mutex_);
            if (error_ == nullptr)
                error_ = std::current_exception();
            failed_.store(true, std::memory_order_relaxed);
        }
    }

    std::shared_ptr<const void> keep_alive_;
    const abi::KernelEntry& entry_;
    abi::Index3 grid_;
    abi::Index3 block_;
    std::uint64_t num_blocks_;
    std::uint64_t chunk_ = 1;
    AlignedBytes storage_;
    std::vector<void*> pointers_;
    std::atomic<int> places_;
    std::atomic<std::uint64_t> next_{0};
    std::atomic<std::uint64_t> finished_{0};
    std::atomic<bool> failed_{false};
    std::mutex error_mutex_;
    std::exception_ptr error_;
};

}  // namespace deep_jit::host
