// Where diagnostics and warnings go. Nothing else in this library prints.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include <deep_jit/utils/env.hpp>
#include <deep_jit/utils/filesystem.hpp>

namespace deep_jit::log {

/// Writes one message as whole lines to where `JIT_LOG_FILE` says: `stderr` (the default),
/// `stdout`, or a path that is appended to. Never throws; a log that cannot be written is lost.
inline void write(const Env& env, std::string_view message) noexcept {
    try {
        std::string text(message);
        if (text.empty() || text.back() != '\n')
            text += '\n';
        const auto target = env.get<std::string>("JIT_LOG_FILE", std::string("stderr"));
        if (target == "stdout") {
            fs_detail::write_all(STDOUT_FILENO, text);
        } else if (target != "stderr" && !target.empty()) {
            // One write in append mode: lines of several processes do not mix.
            const auto fd = fs_detail::open_retrying(target, O_WRONLY | O_CREAT | O_APPEND, 0666);
            fs_detail::write_all(fd ? fd.get() : STDERR_FILENO, text);
        } else {
            fs_detail::write_all(STDERR_FILENO, text);
        }
    } catch (...) {  // NOLINT: a diagnostic must not break what it reports on
    }
}

/// A warning about something that goes on working, at most once a process for each `topic`.
inline void warn_once(const Env& env, const std::string& topic, std::string_view message) noexcept {
    try {
        static std::mutex mutex;
        static std::set<std::string> said;
        {
            const std::lock_guard lock(mutex);
            if (!said.insert(topic).second)
                return;
        }
        write(env, "deep_jit warning: " + std::string(message));
    } catch (...) {  // NOLINT: see write()
    }
}

}  // namespace deep_jit::log
