#include "stream.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace dj_stand_in {

void Gate::hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    opened_.notify_all();
}

void Gate::pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [&] { return !held_; });
}

void Stream::push(Work work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    ++pushed_;
    if (!thread_.joinable())
        thread_ = std::thread([this] { main(); });
    changed_.notify_all();
}

void Stream::main() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return finishing_ || !queue_.empty(); });
        if (queue_.empty())
            return;
        auto work = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        gate_.pass();
        auto error = work();
        work = nullptr;  // before anybody hears that it is done
        lock.lock();
        if (error && !error_)
            error_ = std::move(error);
        ++done_;
        changed_.notify_all();
    }
}

bool Stream::wait(std::int64_t milliseconds) {
    std::unique_lock lock(mutex_);
    const auto last = pushed_;
    const auto is_done = [&] { return done_ >= last; };
    if (milliseconds < 0) {
        changed_.wait(lock, is_done);
        return true;
    }
    // The system's clock: ThreadSanitizer knows how to wait by it.
    const auto until = std::chrono::system_clock::now() + std::chrono::milliseconds(milliseconds);
    return changed_.wait_until(lock, until, is_done);
}

std::optional<StreamError> Stream::take_error() {
    const std::lock_guard lock(mutex_);
    return std::exchange(error_, std::nullopt);
}

void Stream::finish() {
    std::thread thread;
    {
        const std::lock_guard lock(mutex_);
        finishing_ = true;
        thread.swap(thread_);
        changed_.notify_all();
    }
    if (thread.joinable())
        thread.join();
}

std::uint64_t Event::record() {
    const std::lock_guard lock(mutex_);
    return ++recorded_;
}

void Event::reach(std::uint64_t recording) {
    const std::lock_guard lock(mutex_);
    reached_ = std::max(reached_, recording);
    changed_.notify_all();
}

std::uint64_t Event::last_recording() {
    const std::lock_guard lock(mutex_);
    return recorded_;
}

void Event::wait(std::uint64_t recording) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_ >= recording; });
}

bool Event::reached(std::uint64_t recording) {
    const std::lock_guard lock(mutex_);
    return reached_ >= recording;
}

}  // namespace dj_stand_in
