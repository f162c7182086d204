// The CPU threads that run kernels, shared by every runtime of the process.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include <deep_jit/backend/host/task.hpp>
#include <deep_jit/utils/cpu.hpp>

namespace deep_jit::host {

/// Grows to the largest number of threads that a launch asked for. Never destroyed: a kernel may
/// still run while the process ends. A forked child, which has none of the threads, gets a new one.
class Pool {
public:
    static Pool& get() {
        Pool* pool = instance().load(std::memory_order_acquire);
        return pool != nullptr ? *pool : create();
    }

    /// Number of the current pool: 0 in the first process, one more after each fork.
    static int generation() { return generation_counter().load(std::memory_order_relaxed); }

    static int default_threads() {
        static const int threads = available_cpus();
        return threads;
    }

    /// Has the pool's threads work on `task`, `threads` of them if there are as many blocks.
    void start(const std::shared_ptr<Task>& task, int threads) {
        const auto wanted =
            static_cast<int>(std::min<std::uint64_t>(task->num_blocks(), std::uint64_t(threads)));
        const std::lock_guard lock(mutex_);
        ready_.push_back(task);
        for (; num_threads_ < std::min(wanted, kMaxThreads); ++num_threads_)
            std::thread([this] { run(); }).detach();
        if (wanted == 1)
            changed_.notify_one();
        else
            changed_.notify_all();
    }

private:
    static constexpr int kMaxThreads = 1024;

    static std::atomic<Pool*>& instance() {
        static std::atomic<Pool*> pool{nullptr};
        return pool;
    }
    static std::atomic<int>& generation_counter() {
        static std::atomic<int> counter{0};
        return counter;
    }

    static Pool& create() {
        static std::mutex mutex;
        static const int registered = ::pthread_atfork(nullptr, nullptr, [] {
            instance().store(nullptr);
            generation_counter().fetch_add(1);
        });
        (void)registered;
        const std::lock_guard lock(mutex);
        Pool* pool = instance().load(std::memory_order_acquire);
        if (pool == nullptr) {
            pool = new Pool();
            instance().store(pool, std::memory_order_release);
        }
        return *pool;
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
            lock.unlock();
            task->work();
            task.reset();
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<Task>> ready_;
    int num_threads_ = 0;
};

}  // namespace deep_jit::host
