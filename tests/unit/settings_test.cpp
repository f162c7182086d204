// The README's table of settings and the settings that the headers read are the same.
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include <deep_jit/utils/str.hpp>

#include "support.hpp"

namespace {

using namespace deep_jit_test;

const fs::path kRoot = DEEP_JIT_REPO_ROOT;

/// Words in `text` that begin with JIT_ and have `quote` on both sides.
std::set<std::string> settings_in(const std::string& text, char quote) {
    std::set<std::string> out;
    const auto start = quote + std::string("JIT_");
    for (auto at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
        const auto end = text.find(quote, at + 1);
        out.insert(text.substr(at + 1, end - at - 1));
    }
    return out;
}

std::string headers() {
    std::string out;
    for (const auto& file : fs::recursive_directory_iterator(kRoot / "include"))
        if (file.is_regular_file())
            out += slurp(file.path());
    return out;
}

/// First cells of the tables in the README's section on configuration.
std::set<std::string> documented() {
    const auto readme = slurp(kRoot / "README.md");
    const auto begin = readme.find("\n## Configuration\n");
    std::istringstream lines(readme.substr(begin, readme.find("\n## ", begin + 1) - begin));
    std::set<std::string> out;
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("| `JIT_"))
            out.merge(settings_in(line.substr(0, line.find('|', 1)), '`'));
    return out;
}

TEST(Settings, TheReadmeListsWhatTheHeadersRead) {
    const auto read = settings_in(headers(), '"'), listed = documented();
    EXPECT_GT(read.size(), 15u);
    for (const auto& name : read) EXPECT_TRUE(listed.count(name)) << name << " is not in README.md";
    for (const auto& name : listed) EXPECT_TRUE(read.count(name)) << name << " is read nowhere";
}

TEST(Settings, TheReadmeNamesTheVariablesWithoutAPrefix) {
    const auto readme = slurp(kRoot / "README.md");
    const auto text = headers();
    for (const char* name :
         {"HOME", "TMPDIR", "PATH", "CXX", "CUDA_HOME", "CUDA_PATH", "PYTHONPATH", "VIRTUAL_ENV",
          "CONDA_PREFIX", "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_LAUNCH_BLOCKING"}) {
        EXPECT_CONTAINS(readme, "`" + std::string(name) + "`");
        EXPECT_CONTAINS(text, '"' + std::string(name) + '"');
    }
}

}  // namespace
