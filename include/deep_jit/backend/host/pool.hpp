// The CPU threads that run kernels, shared by every runtime of the process.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include <deep_jit/backend/host/task.hpp>
#include <deep_jit/utils/cpu.hpp>
#include <deep_jit/utils/exception.hpp>

namespace deep_jit::host {

/// Grows to the largest number of threads that a launch asked for, and by one when a launch on
/// another stream has them all. Never destroyed: a kernel may still run while the process ends. A
/// forked child, which has none of the threads, gets a new one.
class Pool {
public:
    static Pool& get() {
        Pool* pool = instance_.load(std::memory_order_acquire);
        if (pool == nullptr) {
            // No mutex: a child may be forked while another thread is here.
            auto fresh = std::make_unique<Pool>();
            if (instance_.compare_exchange_strong(pool, fresh.get(), std::memory_order_acq_rel))
                pool = fresh.release();
        }
        return *pool;
    }

    /// Number of the current process: one more after each fork.
    static int generation() { return generation_.load(std::memory_order_relaxed); }

    static int default_threads() {
        static std::atomic<int> known{0};
        int threads = known.load(std::memory_order_relaxed);
        if (threads == 0)
            known.store(threads = available_cpus(), std::memory_order_relaxed);
        return threads;
    }

    /// Has the pool's threads work on `task`, `threads` of them if there are as many blocks, or
    /// fewer when the system gives no more. Throws LaunchError when it gives none.
    void start(const std::shared_ptr<Task>& task, int threads) {
        const auto wanted =
            static_cast<int>(std::min<std::uint64_t>(task->num_blocks(), std::uint64_t(threads)));
        const std::lock_guard lock(mutex_);
        grow(wanted);
        ready_.push_back(task);
        if (wanted == 1)
            changed_.notify_one();
        else
            changed_.notify_all();
    }

private:
    static constexpr int kMaxThreads = 1024;

    void grow(int wanted) {
        const auto waiting = std::count_if(ready_.begin(), ready_.end(),
                                           [](const auto& task) { return task->untouched(); });
        const auto target =
            std::min(std::max(wanted, num_busy_ + static_cast<int>(waiting) + 1), kMaxThreads);
        while (num_threads_ < target) {
            try {
                std::thread([this] { run(); }).detach();
            } catch (const std::system_error& error) {
                if (num_threads_ == 0)
                    deep_jit::detail::throw_error<LaunchError>(
                        "Cannot start a thread to run kernels: {}", error.what());
                return;
            }
            ++num_threads_;
        }
    }

    [[noreturn]] void run() {
        std::unique_lock lock(mutex_);
        while (true) {
            while (!ready_.empty() && !ready_.front()->wants_threads()) ready_.pop_front();
            if (ready_.empty()) {
                changed_.wait(lock);
                continue;
            }
            auto task = ready_.front();
            ++num_busy_;
            lock.unlock();
            task->work();
            task.reset();
            lock.lock();
            --num_busy_;
        }
    }

    inline static std::atomic<Pool*> instance_{nullptr};
    inline static std::atomic<int> generation_{0};
    inline static const int fork_handler_ = ::pthread_atfork(nullptr, nullptr, [] {
        instance_.store(nullptr);
        generation_.fetch_add(1);
    });

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<Task>> ready_;
    int num_threads_ = 0;
    int num_busy_ = 0;
};

}  // namespace deep_jit::host
