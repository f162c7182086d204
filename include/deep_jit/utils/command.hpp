// Runs external tools without a shell: an argument vector in, exit code and output back.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include <deep_jit/utils/exception.hpp>
#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/parent_fd.hpp>

extern char** environ;

namespace deep_jit {

struct CommandResult {
    /// Exit status; 128 + N when signal N ended the command, as shells count; 127 when it could
    /// not be started.
    int exit_code = 0;
    /// What it wrote to standard output and standard error, in the order written.
    std::string output;

    bool ok() const noexcept { return exit_code == 0; }
};

/// The command line with every argument quoted as a shell would need it: for messages only.
inline std::string command_text(const std::vector<std::string>& arguments) {
    std::string out;
    for (const auto& argument : arguments) {
        if (!out.empty())
            out += ' ';
        out += str::quote(argument);
    }
    return out;
}

/// Why a command with this exit code most likely failed, as a sentence to add; may be empty.
inline std::string exit_code_hint(int exit_code, std::string_view output) {
    if (exit_code == 128 + SIGKILL || output.find("Killed signal") != std::string_view::npos ||
        output.find("out of memory") != std::string_view::npos)
        return " It was killed, most likely because the machine or the container ran out of "
               "memory: compile fewer kernels at once or raise the memory limit.";
    if (exit_code == 127)
        return " The program, or one that it starts, is missing.";
    if (exit_code == 126)
        return " The program may not be executed.";
    if (output.find("No space left on device") != std::string_view::npos)
        return " The disk is full.";
    return "";
}

namespace detail {

struct SpawnActions {
    posix_spawn_file_actions_t value;
    SpawnActions() { ::posix_spawn_file_actions_init(&value); }
    ~SpawnActions() { ::posix_spawn_file_actions_destroy(&value); }
    SpawnActions(const SpawnActions&) = delete;
    SpawnActions& operator=(const SpawnActions&) = delete;
};

struct SpawnAttributes {
    posix_spawnattr_t value;
    SpawnAttributes() { ::posix_spawnattr_init(&value); }
    ~SpawnAttributes() { ::posix_spawnattr_destroy(&value); }
    SpawnAttributes(const SpawnAttributes&) = delete;
    SpawnAttributes& operator=(const SpawnAttributes&) = delete;
};

/// Exit code of a finished child as CommandResult counts it.
inline int wait_for(pid_t child) {
    int status = 0;
    pid_t result;
    do {
        result = ::waitpid(child, &status, 0);
    } while (result < 0 && errno == EINTR);
    if (result < 0)
        // The process ignores SIGCHLD, or some other code of it reaped our child.
        throw ToolchainError(str::format(
            "The exit status of a compiler is lost: {}. The process must not ignore SIGCHLD nor "
            "wait for children that it did not start",
            errno_text(errno)));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace detail

/// Runs `arguments[0]` (searched in PATH when it has no slash) with `arguments`, standard input
/// from /dev/null, in `directory` when one is given, in a process group of its own. Blocks until
/// it ends. A command that fails is not an error here: see CommandResult.
inline CommandResult call_external_command(const std::vector<std::string>& arguments,
                                           const std::filesystem::path& directory = {}) {
    DJ_HOST_ASSERT(!arguments.empty(), "a command needs a program");
    for (const auto& argument : arguments)
        if (argument.find('\0') != std::string::npos)
            throw ConfigError("A command argument holds a NUL byte: " + str::quote(argument));

    int pipe_ends[2] = {-1, -1};
    // A child forked by another thread must not hold the end that is written to: the other end
    // would not see that the command has ended.
    ParentFd writer =
        ParentFd::own([&] { return ::pipe2(pipe_ends, O_CLOEXEC) == 0 ? pipe_ends[1] : -1; });
    UniqueFd reader(pipe_ends[0]);
    if (!writer)
        detail::throw_error<ToolchainError>("Cannot make a pipe to run {}: {}", arguments[0],
                                            detail::errno_text(errno));

    detail::SpawnActions actions;
    ::posix_spawn_file_actions_addopen(&actions.value, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions.value, writer.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions.value, writer.get(), STDERR_FILENO);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    // Files that the host program opened without close-on-exec are none of the compiler's business.
    ::posix_spawn_file_actions_addclosefrom_np(&actions.value, STDERR_FILENO + 1);
#endif
    if (!directory.empty())
        ::posix_spawn_file_actions_addchdir_np(&actions.value, directory.c_str());

    detail::SpawnAttributes attributes;
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    // The host program may block or ignore signals; the tool starts with a clean slate.
    ::posix_spawnattr_setsigmask(&attributes.value, &none);
    ::posix_spawnattr_setsigdefault(&attributes.value, &all);
    ::posix_spawnattr_setpgroup(&attributes.value, 0);
    ::posix_spawnattr_setflags(
        &attributes.value, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

    std::vector<char*> argv;
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);

    pid_t child = -1;
    const int error =
        ::posix_spawnp(&child, argv[0], &actions.value, &attributes.value, argv.data(), environ);
    writer.reset();
    if (error != 0) {
        std::error_code ignored;
        if (!directory.empty() && !std::filesystem::is_directory(directory, ignored))
            detail::throw_error<ToolchainError>("Cannot run {} in {}: there is no such directory",
                                                arguments[0], directory);
        if (error == ENOENT || error == EACCES || error == ENOEXEC || error == ENOTDIR)
            return {error == EACCES || error == ENOEXEC ? 126 : 127,
                    str::format("cannot run {}: {}", arguments[0], detail::errno_text(error))};
        detail::throw_error<ToolchainError>("Cannot start {}: {}", arguments[0],
                                            detail::errno_text(error));
    }

    CommandResult result;
    char buffer[16384];
    while (true) {
        const auto n = ::read(reader.get(), buffer, sizeof(buffer));
        if (n > 0)
            result.output.append(buffer, static_cast<std::size_t>(n));
        else if (n == 0 || errno != EINTR)
            break;
    }
    result.exit_code = detail::wait_for(child);
    return result;
}

}  // namespace deep_jit
