#include <utility>

#include "cores.hpp"

namespace dj_stand_in {

CorePool::~CorePool() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
        changed_.notify_all();
    }
    for (auto& worker : workers_) worker.thread.join();
}

void CorePool::main(Worker& worker) {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return ending_ || worker.work != nullptr; });
        if (worker.work == nullptr)
            return;
        lock.unlock();
        worker.work();
        lock.lock();
        worker.work = nullptr;
        idle_.push_back(&worker);
        changed_.notify_all();
    }
}

void CorePool::run(int count, const std::function<void(int)>& body) {
    std::unique_lock lock(mutex_);
    // All at once or none: blocks may wait for each other.
    const auto wanted = static_cast<std::size_t>(count);
    changed_.wait(lock, [&] {
        return idle_.size() + static_cast<std::size_t>(cores_) - workers_.size() >= wanted;
    });
    int running = count;
    for (int i = 0; i < count; ++i) {
        Worker* worker = nullptr;
        if (idle_.empty()) {
            worker = &workers_.emplace_back();
        } else {
            worker = idle_.back();
            idle_.pop_back();
        }
        worker->work = [&, i] {
            body(i);
            const std::lock_guard done(mutex_);
            --running;
        };
        if (!worker->thread.joinable())
            worker->thread = std::thread([this, worker] { main(*worker); });
    }
    changed_.notify_all();
    changed_.wait(lock, [&] { return running == 0; });
}

}  // namespace dj_stand_in
