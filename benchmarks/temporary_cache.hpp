// A cache directory for the time of a benchmark; nothing of the user's is read or written.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace benchmarks {

class TemporaryCache {
public:
    TemporaryCache() {
        std::string pattern = (std::filesystem::temp_directory_path() / "deep_jit_bench.XXXXXX");
        if (::mkdtemp(pattern.data()) == nullptr)
            throw std::runtime_error("cannot make a temporary directory");
        path_ = pattern;
        ::setenv("DJ_JIT_CACHE_DIR", (path_ / "cache").c_str(), 1);
    }
    TemporaryCache(const TemporaryCache&) = delete;
    TemporaryCache& operator=(const TemporaryCache&) = delete;
    ~TemporaryCache() {
        std::error_code error;
        std::filesystem::remove_all(path_, error);
    }

    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace benchmarks
