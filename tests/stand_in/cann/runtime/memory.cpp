#include "memory.hpp"

#include <cstdlib>
#include <cstring>

namespace dj_stand_in {

namespace {

constexpr std::size_t kAlignment = 512;

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void* Memory::allocate(std::size_t bytes) {
    if (bytes > SIZE_MAX - kAlignment)
        return nullptr;
    const auto rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* out = std::aligned_alloc(kAlignment, rounded);
    if (out == nullptr)
        return nullptr;
    std::memset(out, 0xa5, rounded < (1u << 24) ? rounded : 0);  // nobody may rely on zeros
    const std::lock_guard lock(mutex_);
    blocks_.emplace(number(out), bytes);
    return out;
}

bool Memory::free(void* start) {
    {
        const std::lock_guard lock(mutex_);
        if (blocks_.erase(number(start)) == 0)
            return false;
    }
    std::free(start);
    return true;
}

bool Memory::contains(const void* start, std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    auto found = blocks_.upper_bound(number(start));
    if (found == blocks_.begin())
        return false;
    --found;
    const auto offset = number(start) - found->first;
    return offset <= found->second && bytes <= found->second - offset;
}

std::size_t Memory::allocations() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size();
}

void Memory::clear() {
    const std::lock_guard lock(mutex_);
    for (const auto& [start, bytes] : blocks_)
        std::free(reinterpret_cast<void*>(start));  // NOLINT(performance-no-int-to-ptr)
    blocks_.clear();
}

}  // namespace dj_stand_in
