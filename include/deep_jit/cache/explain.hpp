// Why a kernel was not found: which part of the key is another one.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <deep_jit/source/digest.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/json.hpp>

namespace deep_jit {

/// The components of a key, each hashed for itself, as `meta.json` keeps them under "key".
class KeyComponents {
private:
    template <typename Self>
    static auto fields_of(Self& self) {
        using Value = decltype(&self.source);
        return std::vector<std::pair<std::string, Value>>{
            {"extra_signature", &self.extra_signature},
            {"compiler", &self.compiler},
            {"flags", &self.flags},
            {"post_hook", &self.post_hook},
            {"source", &self.source},
            {"headers", &self.headers}};
    }

public:
    std::string extra_signature;
    std::string compiler;
    std::string flags;
    std::string post_hook;
    std::string source;   ///< the source alone
    std::string headers;  ///< the source and its tracked headers

    static KeyComponents of(std::string_view signature, std::string_view compiler_hash,
                            const std::vector<std::string>& key_flags, std::string_view hook,
                            std::string_view kernel_source, std::string_view source_digest) {
        const auto digest = [](std::string_view bytes) {
            return hash::FNV1a().update(bytes).get_hex_digest();
        };
        return {digest(signature), digest(compiler_hash), digest(encode_list(key_flags)),
                digest(hook),      digest(kernel_source), digest(source_digest)};
    }

    json to_json() const {
        json out;
        for (const auto& [name, value] : fields_of(*this)) out[name] = *value;
        return out;
    }

    /// Throws nothing; what is missing stays empty.
    static KeyComponents from_json(const json* object) {
        KeyComponents out;
        if (object != nullptr)
            for (const auto& [name, value] : fields_of(out))
                *value = object->get<std::string>(name).value_or(std::string());
        return out;
    }

    /// The names of those that differ. A source that differs hides whether its headers do.
    std::vector<std::string> differences(const KeyComponents& other) const {
        std::vector<std::string> out;
        const auto theirs = fields_of(other);
        std::size_t i = 0;
        for (const auto& [name, value] : fields_of(*this))
            if (*value != *theirs[i++].second && !(name == "headers" && source != other.source))
                out.push_back(name);
        return out;
    }
};

/// One entry of the same tag, and what of its key differs from what was asked for.
struct MissReason {
    std::filesystem::path entry;
    std::vector<std::string> differences;  ///< component names; empty: the same key
};

/// The components of an entry's key; empty ones when its meta.json has none or cannot be read.
inline KeyComponents key_of_entry(const std::filesystem::path& entry) {
    std::string text;
    if (try_read(entry / "meta.json", text) != 0)
        return {};
    try {
        const auto meta = json::parse(text);
        return KeyComponents::from_json(meta.find("key"));
    } catch (const Error&) {
        return {};
    }
}

/// Compares the entries of `tag` in the roots with `wanted`, the most alike first.
inline std::vector<MissReason> explain_miss(const std::vector<std::filesystem::path>& roots,
                                            std::string_view tag, const KeyComponents& wanted) {
    std::vector<MissReason> out;
    for (const auto& root : roots) {
        std::error_code error;
        std::filesystem::directory_iterator it(root / "cache", error), end;
        for (; !error && it != end; it.increment(error)) {
            const auto name = it->path().filename().string();
            if (name.size() == tag.size() + 33 && name.starts_with(tag) && name[tag.size()] == '.')
                out.push_back({it->path(), wanted.differences(key_of_entry(it->path()))});
        }
    }
    std::stable_sort(out.begin(), out.end(), [](const MissReason& a, const MissReason& b) {
        return a.differences.size() < b.differences.size();
    });
    return out;
}

}  // namespace deep_jit
