// The cores of a device, one thread each, and the launches that run on them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "memory.hpp"
#include "settings.hpp"
#include "stand_in/abi.h"
#include "stream.hpp"

namespace dj_stand_in {

/// Threads are started when they are first needed, and sleep when they are not.
class CorePool {
public:
    explicit CorePool(int cores) : cores_(cores) {}
    ~CorePool();
    CorePool(const CorePool&) = delete;
    CorePool& operator=(const CorePool&) = delete;

    int cores() const { return cores_; }
    /// Runs body(0) to body(count - 1) at the same time, each on a core of its own, and waits for
    /// all of them. `count` is not more than there are cores.
    void run(int count, const std::function<void(int)>& body);

private:
    struct Worker {
        std::function<void()> work;
        std::thread thread;
    };
    void main(Worker& worker);

    const int cores_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Worker> workers_;
    std::vector<Worker*> idle_;
    bool ending_ = false;
};

/// One launch, with all that it needs.
struct Launch {
    std::shared_ptr<void> library;
    const KernelEntry* entry = nullptr;  ///< null: the function is no kernel
    std::string name;
    std::uint32_t blocks = 0;
    std::vector<std::uint64_t> arguments;
    std::uint32_t dynamic_ub_bytes = 0;
    std::optional<std::chrono::microseconds> timeout;  ///< none: for ever
    int device = 0;
};

/// Runs all blocks. Waits for them.
std::optional<StreamError> run_launch(const Launch& launch, const Soc& soc, CorePool& pool,
                                      const Memory& memory);

}  // namespace dj_stand_in
