// A file descriptor that stays with its process: a child made by fork does not get it.
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <deep_jit/utils/filesystem.hpp>

namespace deep_jit {

namespace detail {

/// Close-on-exec does nothing for a child that never executes another program. Such a child would
/// keep a pipe from ending, or a lock from being free, for as long as it lives.
class ParentFds {
public:
    /// No fork happens while `make` runs, so none falls between making and knowing.
    template <typename Make>
    static int add(Make&& make) {
        auto& self = get();
        const std::lock_guard lock(self.mutex_);
        const int fd = make();
        if (fd >= 0)
            self.fds_.push_back(fd);
        return fd;
    }
    static void close(int fd) {
        auto& self = get();
        const std::lock_guard lock(self.mutex_);
        self.fds_.erase(std::remove(self.fds_.begin(), self.fds_.end(), fd), self.fds_.end());
        ::close(fd);
    }

private:
    ParentFds() {
        ::pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                         [] {
                             for (const int fd : get().fds_) ::close(fd);
                             get().fds_.clear();
                             get().mutex_.unlock();
                         });
    }
    static ParentFds& get() {
        // Never destroyed: a process may fork while it ends.
        static auto* fds = new ParentFds();
        return *fds;
    }

    std::mutex mutex_;
    std::vector<int> fds_;
};

}  // namespace detail

class ParentFd {
public:
    ParentFd() = default;
    ParentFd(ParentFd&& other) noexcept { *this = std::move(other); }
    ParentFd& operator=(ParentFd&& other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(process_, other.process_);
        return *this;
    }
    ~ParentFd() { reset(); }

    /// Owns what `make` returns: a descriptor, or a negative number.
    template <typename Make>
    static ParentFd own(Make&& make) {
        ParentFd out;
        out.fd_ = detail::ParentFds::add(std::forward<Make>(make));
        out.process_ = ::getpid();
        return out;
    }

    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    /// False in a forked child, where the number may be another file's by now.
    bool is_own() const noexcept { return fd_ >= 0 && process_ == ::getpid(); }

    void reset() noexcept {
        if (is_own())
            detail::ParentFds::close(fd_);
        fd_ = -1;
    }

private:
    int fd_ = -1;
    pid_t process_ = 0;
};

}  // namespace deep_jit
