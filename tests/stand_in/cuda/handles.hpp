// Handles that can be told from invalid ones: nothing a client passes is dereferenced before it
// was found in a registry.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stand_in {

/// Owns the objects behind one handle type. A removed object's memory is kept, so that its handle
/// never comes to life again as another object.
template <typename T>
class Registry {
public:
    template <typename... Arguments>
    T* add(Arguments&&... arguments) {
        auto object = std::make_unique<T>(T{std::forward<Arguments>(arguments)...});
        T* out = object.get();
        alive_.emplace(out, std::move(object));
        return out;
    }

    /// The object behind a handle, or null when there is none (any more).
    T* find(const void* handle) const {
        const auto found = alive_.find(handle);
        return found != alive_.end() ? found->second.get() : nullptr;
    }

    void remove(T* object) {
        auto node = alive_.extract(object);
        if (!node.empty())
            removed_.push_back(std::move(node.mapped()));
    }

    template <typename Predicate>
    void remove_if(Predicate&& predicate) {
        std::vector<T*> chosen;
        for (const auto& [handle, object] : alive_)
            if (predicate(*object))
                chosen.push_back(object.get());
        for (auto* object : chosen) remove(object);
    }

    template <typename Predicate>
    bool any_of(Predicate&& predicate) const {
        for (const auto& [handle, object] : alive_)
            if (predicate(*object))
                return true;
        return false;
    }

    std::size_t size() const { return alive_.size(); }

private:
    std::unordered_map<const void*, std::unique_ptr<T>> alive_;
    std::vector<std::unique_ptr<T>> removed_;
};

}  // namespace stand_in
