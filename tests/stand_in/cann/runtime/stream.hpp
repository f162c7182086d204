// Streams and events: one thread a stream, which does one thing after the other.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace dj_stand_in {

/// Why work in a stream failed; told by whoever waits for it.
struct StreamError {
    int code = 0;
    std::string message;
};

/// While it is held, no stream starts anything.
class Gate {
public:
    void hold(bool held);
    void pass();

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool held_ = false;
};

class Stream {
public:
    using Work = std::function<std::optional<StreamError>()>;

    Stream(int device, Gate& gate) : device(device), gate_(gate) {}
    ~Stream() { finish(); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void push(Work work);
    /// Waits for what was pushed before the call; false when `milliseconds` (-1: no limit) went by.
    bool wait(std::int64_t milliseconds);
    /// The first error since the last call.
    std::optional<StreamError> take_error();
    /// Does what is left and ends the thread. Nothing may be pushed afterwards.
    void finish();

    const int device;

private:
    void main();

    Gate& gate_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> queue_;
    std::uint64_t pushed_ = 0;
    std::uint64_t done_ = 0;
    bool finishing_ = false;
    std::optional<StreamError> error_;
    std::thread thread_;
};

class Event {
public:
    explicit Event(int device) : device(device) {}

    /// A number for one recording; `reach` it when the stream gets there.
    std::uint64_t record();
    void reach(std::uint64_t recording);
    std::uint64_t last_recording();
    void wait(std::uint64_t recording);
    bool reached(std::uint64_t recording);

    const int device;

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t recorded_ = 0;
    std::uint64_t reached_ = 0;
};

}  // namespace dj_stand_in
