// Launches in order, asynchronously.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <deep_jit/backend/host/pool.hpp>
#include <deep_jit/backend/host/task.hpp>

namespace deep_jit::host {

/// A handle; copies are the same stream. Launches on one stream run one after the other, in the
/// order in which they were made; launches on different streams may run at once.
///
/// When a kernel throws, the launches behind it on the stream are dropped until `synchronize`
/// has reported it. A forked child starts with empty streams.
class Stream {
public:
    Stream() : state_(std::make_shared<State>()) {}

    /// The stream of launches that name none; one a process.
    static Stream default_stream() {
        // Never destroyed: kernels may run until the process is gone.
        static const auto* stream = new Stream();
        return *stream;
    }

    /// Waits until every launch made so far has ended; the waiting thread helps. Throws what a
    /// kernel threw, once, and clears it.
    void synchronize() const { state_->queue().synchronize(); }

    /// True when nothing is queued or running.
    bool idle() const { return state_->queue().idle(); }

    bool operator==(const Stream&) const = default;

    /// Queues a launch that runs on up to `threads` threads. For the backend.
    void submit(std::shared_ptr<Task> task, int threads) const {
        Queue& queue = state_->queue();
        task->on_done = [state = state_, &queue](Task& done) { queue.finish(done); };
        queue.submit(std::move(task), threads);
    }

private:
    /// The launches of one process.
    class Queue {
    public:
        /// `parent` was inherited by fork. It is not touched, as its mutex may be locked for good
        /// here, and not forgotten, as it owns memory.
        explicit Queue(const Queue* parent) : parent_(parent) {}

        bool is_current() const { return generation_ == Pool::generation(); }

        bool idle() {
            const std::lock_guard lock(mutex_);
            return launches_.empty();
        }

        void submit(std::shared_ptr<Task> task, int threads) {
            const std::lock_guard lock(mutex_);
            if (error_ != nullptr)
                return;
            if (launches_.empty())
                Pool::get().start(task, threads);
            launches_.push_back({std::move(task), threads});
            ++submitted_;
        }

        void synchronize() {
            std::unique_lock lock(mutex_);
            const auto target = submitted_;
            while (ended_ < target) {
                const auto task = launches_.front().task;
                lock.unlock();
                task->work();
                lock.lock();
                // What is left runs in other threads.
                changed_.wait(lock,
                              [&] { return ended_ >= target || launches_.front().task != task; });
            }
            if (error_ != nullptr)
                std::rethrow_exception(std::exchange(error_, nullptr));
        }

        void finish(Task& done) {
            // Tasks must outlive this call, and the queue may hold their last references. (An
            // empty deque owns memory, so there is none without an error.)
            std::shared_ptr<Task> ended;
            std::optional<std::deque<Launch>> dropped;
            const std::lock_guard lock(mutex_);
            if (auto error = done.take_error(); error != nullptr) {
                error_ = std::move(error);
                ended_ += launches_.size();
                dropped.emplace().swap(launches_);
            } else {
                ended = std::move(launches_.front().task);
                launches_.pop_front();
                ++ended_;
                if (!launches_.empty())
                    Pool::get().start(launches_.front().task, launches_.front().threads);
            }
            changed_.notify_all();
        }

    private:
        struct Launch {
            std::shared_ptr<Task> task;
            int threads;
        };

        std::mutex mutex_;
        std::condition_variable changed_;
        std::deque<Launch> launches_;  // the first one runs
        std::uint64_t submitted_ = 0;
        std::uint64_t ended_ = 0;
        std::exception_ptr error_;
        const int generation_ = Pool::generation();
        const Queue* const parent_;
    };

    class State {
    public:
        State() = default;
        State(const State&) = delete;
        State& operator=(const State&) = delete;
        ~State() {
            const Queue* queue = queue_.load(std::memory_order_acquire);
            if (queue->is_current())
                delete queue;
        }

        Queue& queue() {
            Queue* queue = queue_.load(std::memory_order_acquire);
            if (!queue->is_current()) {
                auto fresh = std::make_unique<Queue>(queue);
                if (queue_.compare_exchange_strong(queue, fresh.get(), std::memory_order_acq_rel))
                    queue = fresh.release();
            }
            return *queue;
        }

    private:
        std::atomic<Queue*> queue_{new Queue(nullptr)};
    };

    std::shared_ptr<State> state_;
};

}  // namespace deep_jit::host
