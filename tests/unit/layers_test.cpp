// The dependency between the headers' folders runs one way.
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include <deep_jit/utils/str.hpp>

#include "support.hpp"

namespace {

using namespace deep_jit_test;

/// `utils`, `source`, `cache`, `runtime`, `backend/cuda`, ... of a path below include/deep_jit.
std::string folder_of(const fs::path& path) {
    auto part = path.begin();
    std::string out = part->string();
    if (out == "backend" && ++part != path.end())
        out += "/" + part->string();
    return path.has_parent_path() ? out : "";
}

/// What the headers of a folder may include beside their own folder's. A backend may include
/// everything but other backends; a folder that is not named here, everything.
const std::map<std::string, std::vector<std::string>> kAllowed = {
    {"utils", {}},
    {"source", {"utils"}},
    {"cache", {"utils", "source"}},
    {"runtime", {"utils", "source", "cache", ""}},
};

bool allowed(const fs::path& from, const fs::path& to) {
    const auto here = folder_of(from), there = folder_of(to);
    // Kept for code that includes it under this path.
    if (here == there || from == "utils/parser.hpp")
        return true;
    const auto known = kAllowed.find(here);
    if (known == kAllowed.end())
        return !here.starts_with("backend/") || !there.starts_with("backend/");
    return std::find(known->second.begin(), known->second.end(), there) != known->second.end();
}

TEST(Layers, NoHeaderIncludesWhatIsAboveIt) {
    const auto root = fs::path(DEEP_JIT_REPO_ROOT) / "include" / "deep_jit";
    int includes = 0;
    for (const auto& file : fs::recursive_directory_iterator(root)) {
        if (!file.is_regular_file())
            continue;
        const auto from = file.path().lexically_relative(root);
        std::istringstream lines(slurp(file.path()));
        constexpr std::string_view kStart = "#include <deep_jit/";
        for (std::string line; std::getline(lines, line);) {
            if (!line.starts_with(kStart))
                continue;
            const fs::path to = line.substr(kStart.size(), line.find('>') - kStart.size());
            EXPECT_TRUE(allowed(from, to)) << from << " includes " << to;
            EXPECT_TRUE(fs::exists(root / to)) << from << " includes " << to;
            ++includes;
        }
    }
    EXPECT_GT(includes, 100);
}

TEST(Layers, TheRulesOfThisTest) {
    EXPECT_TRUE(allowed("cache/disk.hpp", "utils/str.hpp"));
    EXPECT_TRUE(allowed("backend/cuda/kernel.hpp", "runtime/runtime.hpp"));
    EXPECT_TRUE(allowed("backend/cuda/kernel.hpp", "backend/cuda/driver.hpp"));
    EXPECT_FALSE(allowed("utils/str.hpp", "cache/disk.hpp"));
    EXPECT_FALSE(allowed("cache/disk.hpp", "runtime/config.hpp"));
    EXPECT_FALSE(allowed("runtime/runtime.hpp", "backend/cuda/backend.hpp"));
    EXPECT_FALSE(allowed("backend/host/kernel.hpp", "backend/cuda/driver.hpp"));
}

}  // namespace
