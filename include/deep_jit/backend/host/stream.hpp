// Launches in order, asynchronously.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
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
    void synchronize() const {
        std::unique_lock lock(state_->mutex);
        state_->forget_parent();
        while (!state_->queue.empty()) {
            const auto task = state_->queue.front().task;
            lock.unlock();
            task->work();
            lock.lock();
            // What is left runs in other threads.
            state_->changed.wait(
                lock, [&] { return state_->queue.empty() || state_->queue.front().task != task; });
        }
        if (state_->error != nullptr)
            std::rethrow_exception(std::exchange(state_->error, nullptr));
    }

    /// True when nothing is queued or running.
    bool idle() const {
        const std::lock_guard lock(state_->mutex);
        state_->forget_parent();
        return state_->queue.empty();
    }

    bool operator==(const Stream&) const = default;

    /// Queues a launch that runs on up to `threads` threads. For the backend.
    void submit(std::shared_ptr<Task> task, int threads) const {
        task->on_done = [state = state_](Task& done) { state->finish(done); };
        const std::lock_guard lock(state_->mutex);
        state_->forget_parent();
        if (state_->error != nullptr)
            return;
        state_->queue.push_back({std::move(task), threads});
        if (state_->queue.size() == 1)
            Pool::get().start(state_->queue.front().task, threads);
    }

private:
    struct Launch {
        std::shared_ptr<Task> task;
        int threads;
    };

    struct State {
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<Launch> queue;  // the first one runs
        std::exception_ptr error;
        int generation = Pool::generation();

        void forget_parent() {
            if (generation != Pool::generation()) {
                generation = Pool::generation();
                queue.clear();
                error = nullptr;
            }
        }

        void finish(Task& done) {
            // The task must outlive this call, and the queue may hold its last reference.
            std::deque<Launch> dropped;
            const std::lock_guard lock(mutex);
            if (done.error() != nullptr) {
                error = done.error();
                dropped.swap(queue);
            } else {
                dropped.push_back(std::move(queue.front()));
                queue.pop_front();
                if (!queue.empty())
                    Pool::get().start(queue.front().task, queue.front().threads);
            }
            changed.notify_all();
        }
    };

    std::shared_ptr<State> state_;
};

}  // namespace deep_jit::host
