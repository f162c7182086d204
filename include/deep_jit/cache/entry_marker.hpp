// `.committed`: the file that makes a directory a cache entry, with size and checksum of each file.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/hash.hpp>

namespace deep_jit {

inline constexpr const char* kCommitFileName = ".committed";

/// Contents of `.committed`. As text, lines of
///     deep_jit entry 1
///     <size in bytes> <checksum, 16 hex digits> <file, relative to the entry>
///     end <checksum of all lines before>
/// An empty marker is one of another implementation of this cache: it says only "complete".
struct EntryMarker {
    struct File {
        std::string name;
        std::uint64_t size = 0;
        std::string checksum;
    };
    std::vector<File> files;

    /// Lists every regular file below `directory`, sorted by name. Throws CacheError.
    static EntryMarker of_directory(const std::filesystem::path& directory) {
        EntryMarker marker;
        std::error_code error;
        std::filesystem::recursive_directory_iterator it(directory, error), end;
        for (; !error && it != end; it.increment(error)) {
            std::string name = it->path().lexically_relative(directory).string();
            // A line break cannot be written here; such a file is not one of ours.
            if (!it->is_regular_file(error) || error || name == kCommitFileName ||
                name.find('\n') != std::string::npos)
                continue;
            const std::string bytes = read(it->path());
            marker.files.push_back({std::move(name), bytes.size(), hash::checksum(bytes)});
        }
        if (error)
            throw CacheError(str::format("Cannot list {}: {}", directory, error.message()));
        std::sort(marker.files.begin(), marker.files.end(),
                  [](const File& a, const File& b) { return a.name < b.name; });
        return marker;
    }

    std::string to_text() const {
        std::string out = std::string(kHeader) + "\n";
        for (const auto& file : files)
            out += str::format("{} {} {}\n", file.size, file.checksum, file.name);
        return out + "end " + hash::checksum(out) + "\n";
    }

    /// Reads the text form; nothing when it is damaged. An empty text gives an empty marker.
    static std::optional<EntryMarker> parse(std::string_view text) {
        EntryMarker marker;
        if (text.empty())
            return marker;
        const auto last = text.rfind("end ");
        if (last == std::string_view::npos || last == 0 || text[last - 1] != '\n' ||
            text.substr(last) != "end " + hash::checksum(text.substr(0, last)) + "\n")
            return std::nullopt;
        const auto lines = str::split(text.substr(0, last - 1), '\n');
        if (lines[0] != kHeader)
            return std::nullopt;
        for (std::size_t i = 1; i < lines.size(); ++i) {
            const std::string& line = lines[i];
            const auto first = line.find(' ');
            const auto second = first == std::string::npos ? first : line.find(' ', first + 1);
            if (second == std::string::npos)
                return std::nullopt;
            File file{line.substr(second + 1), 0, line.substr(first + 1, second - first - 1)};
            const auto result = std::from_chars(line.data(), line.data() + first, file.size);
            // A name must stay inside the entry.
            if (result.ec != std::errc() || result.ptr != line.data() + first ||
                file.name.empty() || file.name.front() == '/' ||
                ("/" + file.name + "/").find("/../") != std::string::npos)
                return std::nullopt;
            marker.files.push_back(std::move(file));
        }
        return marker;
    }

private:
    static constexpr std::string_view kHeader = "deep_jit entry 1";
};

}  // namespace deep_jit
