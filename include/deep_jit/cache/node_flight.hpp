// Single flight among the processes of one node, as the environment asks for it.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include <deep_jit/cache/process_lock.hpp>
#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/log.hpp>

namespace deep_jit {

/// Makes the processes that share a cache root build each kernel once. `JIT_SINGLE_FLIGHT=0`
/// turns it off; `JIT_LOCK_TIMEOUT` says after how many seconds (600) a process no longer waits
/// for another one and builds for itself.
class NodeFlight {
public:
    /// Throws ConfigError for environment variables with invalid values.
    explicit NodeFlight(const Env& env)
        : env_(env),
          enabled_(env.get("JIT_SINGLE_FLIGHT", true)),
          timeout_(env.get("JIT_LOCK_TIMEOUT", 600)) {
        if (timeout_.count() < 0)
            detail::throw_error<ConfigError>("Environment variable {} must not be negative: {}",
                                             env.name_of("JIT_LOCK_TIMEOUT"),
                                             static_cast<int>(timeout_.count()));
    }

    /// Waits until nobody else builds the entry `name` of the cache root `root`, and takes its
    /// lock when it can. Returns true when another process was at it: what it made may be there
    /// now. `lock` may be left unlocked; then the work is done without.
    bool enter(const std::filesystem::path& root, const std::string& name,
               ProcessLock& lock) const {
        if (!enabled_)
            return false;
        bool waited = false;
        const auto result = lock.acquire(
            identity_of(root) + "/" + name, name, timeout_, [&](const std::string& holder) {
                waited = true;
                if (env_.get("JIT_DEBUG", false))
                    log::write(env_, str::format("deep_jit: waiting for {}, which "
                                                 "compiles {}",
                                                 holder, name));
            });
        if (result == ProcessLock::Result::timed_out)
            log::warn_once(
                env_, "lock timeout " + name,
                str::format("another process has been compiling {} for {} seconds; it is "
                            "compiled here as well ({})",
                            name, static_cast<int>(timeout_.count()),
                            env_.name_of("JIT_LOCK_TIMEOUT")));
        return waited;
    }

private:
    /// The same for all paths that lead to one directory. The first process makes it: the others
    /// must not see another identity.
    static std::string identity_of(const std::filesystem::path& root) {
        struct stat info {};
        if (try_make_dirs(root) == 0 && ::stat(root.c_str(), &info) == 0)
            return str::format("{}:{}", info.st_dev, info.st_ino);
        return root.string();
    }

    Env env_;
    bool enabled_;
    std::chrono::duration<double> timeout_;
};

}  // namespace deep_jit
