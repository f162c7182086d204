// The memory of the devices: ordinary memory whose borders are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace dj_stand_in {

class Memory {
public:
    /// Null when there is no memory.
    void* allocate(std::size_t bytes);
    /// False when `start` is not the start of an allocation.
    bool free(void* start);
    bool contains(const void* start, std::size_t bytes) const;
    /// Whether any part of it is the device's.
    bool touches(const void* start) const { return contains(start, 1); }
    std::size_t allocations() const;
    void clear();

private:
    mutable std::mutex mutex_;
    std::map<std::uintptr_t, std::size_t> blocks_;
};

}  // namespace dj_stand_in
