// Runs the blocks of a launch on the cores of a device.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <new>

#include <deep_jit/backend/host/block_runner.hpp>

#include "acl/acl_rt.h"
#include "cores.hpp"

namespace dj_stand_in {

namespace {

using deep_jit::host::BlockRunner;
namespace abi = deep_jit::host::abi;

constexpr int kFlags = 16;

/// Thrown through a kernel. `told`: another core has said why already.
struct KernelEnd {
    bool told = false;
    bool timeout = false;
    std::string what;
};

/// The unified buffer of the thread's core.
char* unified_buffer(std::size_t bytes) {
    thread_local std::vector<char> memory;
    constexpr std::size_t kAlignment = 512;
    if (memory.size() < bytes + kAlignment)
        memory.resize(bytes + kAlignment);
    void* start = memory.data();
    std::size_t space = memory.size();
    return static_cast<char*>(std::align(kAlignment, bytes, start, space));
}

class Run;

/// The cores that run one block of a mix kernel, or the only one.
struct Group {
    std::array<int, kFlags> to_cube_from[2]{};
    std::array<int, kFlags> to_vector[2]{};
};

struct RunningCore : Core {
    Run* run = nullptr;
    Group* group = nullptr;
    BlockRunner* threads = nullptr;
    abi::RunningBlock* block = nullptr;
};

class Run {
public:
    Run(const Launch& launch, const Soc& soc, const Memory& memory)
        : launch_(launch), soc_(soc), memory_(memory) {
        if (launch.timeout)
            deadline_ = std::chrono::steady_clock::now() + *launch.timeout;
    }

    std::optional<StreamError> on(CorePool& pool) {
        const auto& entry = *launch_.entry;
        per_block_ = static_cast<int>(entry.cube_cores + entry.vector_cores);
        const auto at_once = std::min<std::int64_t>(
            {launch_.blocks, soc_.vector_cores / std::max<std::int64_t>(entry.vector_cores, 1),
             soc_.cube_cores / std::max<std::int64_t>(entry.cube_cores, 1)});
        if (entry.vector_cores > 0 && soc_.vector_cores == 0)
            return StreamError{ACL_ERROR_RT_INTERNAL_ERROR, "The device has no vector core."};
        concurrent_ = static_cast<int>(std::max<std::int64_t>(at_once, 1));
        groups_.resize(static_cast<std::size_t>(concurrent_));
        pool.run(concurrent_ * per_block_, [&](int core) { work(core); });
        if (error_ == nullptr)
            return std::nullopt;
        const bool vector = entry.cube_cores == 0;
        const int code =
            error_->timeout
                ? (vector ? ACL_ERROR_RT_VECTOR_CORE_TIMEOUT : ACL_ERROR_RT_AICORE_TIMEOUT)
                : (vector ? ACL_ERROR_RT_VECTOR_CORE_EXCEPTION : ACL_ERROR_RT_AICORE_EXCEPTION);
        return StreamError{code, "The kernel " + launch_.name + " failed on device(" +
                                     std::to_string(launch_.device) + "): " + error_->what};
    }

    void poll() {
        if (failed_.load())
            throw KernelEnd{true, false, {}};
        if (deadline_ && std::chrono::steady_clock::now() > *deadline_)
            throw KernelEnd{false, true, "it ran longer than its timeout"};
    }

    void check_global(const void* start, std::uint64_t bytes) const {
        if (!memory_.contains(start, bytes))
            throw KernelEnd{false, false,
                            "The DDR address of the MTE instruction is out of range."};
    }

    void sync_all(RunningCore& core) {
        if (launch_.blocks > static_cast<unsigned>(concurrent_))
            throw KernelEnd{false, false, "SyncAll with more blocks than cores never ends"};
        if (core.is_cube != 0)
            throw KernelEnd{false, false, "SyncAll is for the vector cores"};
        std::unique_lock lock(mutex_);
        const auto all = launch_.blocks * launch_.entry->vector_cores;
        const auto round = sync_rounds_;
        if (++waiting_ == all) {
            waiting_ = 0;
            ++sync_rounds_;
            changed_.notify_all();
        }
        wait(lock, [&] { return sync_rounds_ != round; });
    }

    void set_flag(RunningCore& core, std::uint32_t flag) {
        check_flag(flag);
        const std::lock_guard lock(mutex_);
        if (core.is_cube != 0) {
            for (auto& flags : core.group->to_vector) ++flags.at(flag);
        } else {
            ++core.group->to_cube_from[core.sub_block_idx].at(flag);
        }
        changed_.notify_all();
    }

    void wait_flag(RunningCore& core, std::uint32_t flag) {
        check_flag(flag);
        std::unique_lock lock(mutex_);
        auto& group = *core.group;
        if (core.is_cube == 0) {
            auto& count = group.to_vector[core.sub_block_idx].at(flag);
            wait(lock, [&] { return count > 0; });
            --count;
            return;
        }
        const auto from = launch_.entry->vector_cores;
        wait(lock, [&] {
            return group.to_cube_from[0].at(flag) > 0 &&
                   (from < 2 || group.to_cube_from[1].at(flag) > 0);
        });
        for (std::uint32_t i = 0; i < from; ++i) --group.to_cube_from[i].at(flag);
    }

private:
    static void check_flag(std::uint32_t flag) {
        if (flag >= kFlags)
            throw KernelEnd{false, false, "there is no such flag"};
    }

    template <typename Condition>
    void wait(std::unique_lock<std::mutex>& lock, Condition&& condition) {
        while (!condition()) {
            poll();
            // The system's clock: ThreadSanitizer knows how to wait by it.
            changed_.wait_until(lock,
                                std::chrono::system_clock::now() + std::chrono::milliseconds(20));
        }
    }

    void fill_functions(RunningCore& core) const;

    /// What one core does in this launch.
    void work(int number) {
        const auto& entry = *launch_.entry;
        const int slot = number / per_block_, part = number % per_block_;
        BlockRunner threads;
        RunningCore core{};
        core.run = this;
        core.group = &groups_[static_cast<std::size_t>(slot)];
        core.threads = &threads;
        core.is_cube = part < static_cast<int>(entry.cube_cores) ? 1 : 0;
        core.sub_block_idx = core.is_cube != 0 ? 0 : part - static_cast<int>(entry.cube_cores);
        core.sub_block_num = std::max<std::int64_t>(entry.vector_cores, 1);
        core.block_num = launch_.blocks;
        core.ub_bytes = static_cast<std::uint64_t>(soc_.ub_bytes);
        core.ub = unified_buffer(core.ub_bytes);
        core.dynamic_ub_bytes = soc_.is_950() ? launch_.dynamic_ub_bytes : 0;
        fill_functions(core);
        std::memset(core.ub, 0xff, core.ub_bytes);  // NaN: nobody may rely on zeros
        try {
            for (std::uint32_t block = static_cast<std::uint32_t>(slot); block < launch_.blocks;
                 block += static_cast<std::uint32_t>(concurrent_)) {
                poll();
                core.block_idx = block;
                core.ub_used = (core.dynamic_ub_bytes + 31) / 32 * 32;
                entry.run(&core, launch_.arguments.data());
            }
        } catch (const KernelEnd& end) {
            if (!end.told)
                keep(end);
        } catch (const std::exception& error) {
            keep({false, false, error.what()});
        } catch (...) {
            keep({false, false, "an exception left the kernel"});
        }
    }

    void keep(const KernelEnd& end) {
        const std::lock_guard lock(mutex_);
        if (error_ == nullptr)
            error_ = std::make_unique<KernelEnd>(end);
        failed_ = true;
        changed_.notify_all();
    }

    const Launch& launch_;
    const Soc& soc_;
    const Memory& memory_;
    std::optional<std::chrono::steady_clock::time_point> deadline_;
    int per_block_ = 1;   ///< cores
    int concurrent_ = 1;  ///< blocks
    std::deque<Group> groups_;
    std::atomic<bool> failed_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint32_t waiting_ = 0;
    std::uint64_t sync_rounds_ = 0;
    std::unique_ptr<KernelEnd> error_;
};

struct Threads {
    void (*thread)(void*, std::uint32_t);
    void* context;
    RunningCore* core;
};

void run_some_threads(abi::RunningBlock* block, void* const* arguments) {
    const auto& threads = *static_cast<const Threads*>(arguments[0]);
    threads.core->block = block;
    while (block->next_thread < block->num_threads)
        threads.thread(threads.context, block->next_thread++);
}

void Run::fill_functions(RunningCore& core) const {
    core.fault = [](Core*, Fault, const char* what) { throw KernelEnd{false, false, what}; };
    core.check_global = [](Core* self, const void* start, std::uint64_t bytes) {
        static_cast<RunningCore*>(self)->run->check_global(start, bytes);
    };
    core.poll = [](Core* self) { static_cast<RunningCore*>(self)->run->poll(); };
    core.run_threads = [](Core* self, std::uint32_t x, std::uint32_t y, std::uint32_t z,
                          void (*thread)(void*, std::uint32_t), void* context) {
        auto* on = static_cast<RunningCore*>(self);
        Threads threads{thread, context, on};
        const abi::KernelEntry entry{abi::kVersion, 0, nullptr, nullptr, run_some_threads};
        abi::RunningBlock block{};
        block.block_dim = {x, y, z};
        void* arguments[] = {&threads};
        on->threads->run(entry, block, arguments);
        on->block = nullptr;
    };
    core.thread_barrier = [](Core* self) {
        auto* on = static_cast<RunningCore*>(self);
        on->run->poll();
        if (on->block == nullptr)
            throw KernelEnd{false, false, "a barrier of threads where there are none"};
        on->block->barrier(on->block);
    };
    core.sync_all = [](Core* self) {
        auto* on = static_cast<RunningCore*>(self);
        on->run->sync_all(*on);
    };
    core.set_flag = [](Core* self, std::uint32_t flag) {
        auto* on = static_cast<RunningCore*>(self);
        on->run->set_flag(*on, flag);
    };
    core.wait_flag = [](Core* self, std::uint32_t flag) {
        auto* on = static_cast<RunningCore*>(self);
        on->run->wait_flag(*on, flag);
    };
}

}  // namespace

std::optional<StreamError> run_launch(const Launch& launch, const Soc& soc, CorePool& pool,
                                      const Memory& memory) {
    if (launch.entry == nullptr)
        return StreamError{ACL_ERROR_RT_AICORE_EXCEPTION,
                           "The function " + launch.name + " is not a kernel."};
    return Run(launch, soc, memory).on(pool);
}

}  // namespace dj_stand_in
