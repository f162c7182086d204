// What the stand-in's programs share: files, processes and the toolkit that they belong to.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" char** environ;

namespace dj_stand_in {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

/// What the program prints before it ends with status 1.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline std::string env_or(const char* name, const std::string& fallback) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : fallback;
}

/// $R: the programs lie in $R/tools/bisheng_compiler/bin, everything else are links to them.
inline fs::path toolkit_root() {
    return fs::canonical("/proc/self/exe").parent_path().parent_path().parent_path().parent_path();
}

inline std::string read_file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in)
        throw Refusal("cannot open " + path.string() + ": " + std::strerror(errno));
    return std::string(std::istreambuf_iterator<char>(in), {});
}

inline void write_file(const fs::path& path, const std::string& bytes) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush())
        throw Refusal("unable to open output file '" + path.string() +
                      "': " + std::strerror(errno));
}

/// A folder of its own, removed at the end.
class Scratch {
public:
    Scratch() {
        std::string pattern = env_or("TMPDIR", "/tmp") + "/bisheng-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr)
            throw Refusal("cannot make a temporary folder: " + std::string(std::strerror(errno)));
        path_ = pattern;
    }
    ~Scratch() {
        std::error_code error;
        fs::remove_all(path_, error);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    fs::path operator/(const char* name) const { return path_ / name; }

private:
    fs::path path_;
};

/// Runs a program with its input, and its output and errors if `output` is given, in files.
inline int run(const Strings& command, const fs::path& input = "/dev/null",
               const fs::path& output = {}) {
    std::vector<char*> arguments;
    for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
    if (!output.empty()) {
        posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                         0600);
        posix_spawn_file_actions_adddup2(&actions, 1, 2);
    }
    pid_t child = 0;
    const int error =
        ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        throw Refusal("unable to execute command: " + command[0] + ": " + std::strerror(error));
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The compiler of the CPU.
inline std::string host_compiler() { return env_or("DJ_STAND_IN_CANN_CXX", DJ_STAND_IN_CXX); }

/// Appends the command line to the file that DJ_STAND_IN_CANN_LOG names, one run a line.
inline void log_run(int argc, char** argv) {
    const auto path = env_or("DJ_STAND_IN_CANN_LOG", "");
    if (path.empty())
        return;
    std::string line = fs::path(argv[0]).filename().string();
    for (int i = 1; i < argc; ++i) line += std::string(" ") + argv[i];
    line += '\n';
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0 || ::write(file, line.data(), line.size()) < 0)
        throw Refusal("cannot write to " + path);
    ::close(file);
}

/// The toolkit's version: DJ_STAND_IN_CANN_VERSION, else as it was built.
inline std::string toolkit_version() { return env_or("DJ_STAND_IN_CANN_VERSION", "9.1.0"); }

}  // namespace dj_stand_in
