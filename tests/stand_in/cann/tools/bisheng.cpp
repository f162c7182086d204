// The stand-in for bisheng: drives the compiler of the CPU, so that what comes out has the shape
// of a device object and runs on a CPU.
#include <sys/utsname.h>

#include <cstdio>
#include <iostream>

#include "kernels.hpp"
#include "options.hpp"
#include "source.hpp"

namespace dj_stand_in {
namespace {

/// All releases call themselves clang 15.0.5; the time tells them apart.
std::string build_time() {
    const auto version = toolkit_version();
    if (version.rfind("8.", 0) == 0)
        return "2026-01-13T09:46:36+08:00";
    if (version.rfind("9.0", 0) == 0)
        return "2026-04-25T15:46:25+08:00";
    return "2026-07-30T20:53:21+08:00";
}

std::string version_text() {
    utsname name{};
    ::uname(&name);
    return build_time() + " clang version 15.0.5 (clang-5c68a1cb1231 flang-5c68a1cb1231)\n" +
           "Target: " + name.machine + "-unknown-linux-gnu\nThread model: posix\n" +
           "InstalledDir: " + (toolkit_root() / "tools/bisheng_compiler/bin").string() + "\n";
}

class Compilation {
public:
    explicit Compilation(Options options) : options_(std::move(options)) {
        source_ = read_file(options_.input);
        command_ = {host_compiler(),
                    "-x",
                    "c++",
                    "-std=" + options_.standard,
                    "-fPIC",
                    "-D__BISHENG_CCEC__=1",
                    "-D__NPU_DEVICE__=1",
                    "-D__DAV_VEC__=1",
                    "-D__NPU_ARCH__=" + options_.arch};
        const auto family = options_.arch == "3510" ? "310" : options_.arch == "2201" ? "220" : "";
        if (*family != '\0')
            command_.push_back("-D__DAV_C" + std::string(family) + "__=1");
        const auto add = [&](const Strings& words) {
            command_.insert(command_.end(), words.begin(), words.end());
        };
        add(options_.passed_on);
        // GCC only: variables of all objects in a process with the same name would be one.
        if (fs::path(host_compiler()).filename().string().find("clang") == std::string::npos)
            command_.emplace_back("-fno-gnu-unique");
        if (options_.debug)
            add({"-g", "-gdwarf-5"});
        const auto folder = fs::path(options_.input).parent_path();
        add({"-iquote", folder.empty() ? "." : folder.string()});
        const auto asc = toolkit_root() / "asc/include";
        add({"-isystem", asc.string(), "-include", (asc / "stand_in/words.h").string()});
    }

    int run_all() {
        // The line that messages and __FILE__ tell, though the compiler reads another file.
        const auto text = "# 1 \"" + quoted(options_.input) + "\"\n" + with_dynamic_ub(source_);
        write_file(scratch_ / "first", text);
        if (options_.save_temps && (preprocess() != 0 || assemble() != 0))
            return 1;
        if (compile({"-DDJ_STAND_IN_PASS=1", "-O0", "-ffunction-sections"}, "first") != 0)
            return failed();
        if (!options_.aicore_only) {  // a host object: not what ld.lld or ACL take
            write_file(output(), read_file(scratch_ / "object"));
            return 0;
        }
        const auto kernels = find_kernels(read_file(scratch_ / "object"));
        const int vf_flag = options_.arch == "3510" ? vf_flag_of(source_) : 0;
        write_file(scratch_ / "second", text + kernels_text(kernels, vf_flag));
        if (compile({"-DDJ_STAND_IN_PASS=2", "-w"}, "second") != 0)
            return failed();
        auto object = read_file(scratch_ / "object");
        disguise(object, kernels);
        write_file(output(), object);
        return 0;
    }

private:
    static std::string quoted(const std::string& path) {
        std::string out;
        for (const char c : path) {
            if (c == '"' || c == '\\')
                out += '\\';
            if (c == '\n')
                out += "\\n";
            else
                out += c;
        }
        return out;
    }

    std::string stem() const { return fs::path(options_.input).stem().string(); }
    std::string output() const { return options_.output.empty() ? stem() + ".o" : options_.output; }

    int with(const Strings& words, const char* input) {
        auto command = command_;
        command.insert(command.end(), words.begin(), words.end());
        command.emplace_back("-");
        return run(command, scratch_ / input);
    }
    int compile(Strings words, const char* input) {
        words.insert(words.end(), {"-c", "-o", (scratch_ / "object").string()});
        return with(words, input);
    }
    int preprocess() {
        return with({"-DDJ_STAND_IN_PASS=1", "-E", "-o", stem() + ".asci"}, "first");
    }
    int assemble() {
        return with({"-DDJ_STAND_IN_PASS=1", "-S", "-w", "-o", stem() + ".s"}, "first");
    }
    static int failed() {
        std::cerr << "bisheng: error: the compilation failed\n";
        return 1;
    }

    Options options_;
    std::string source_;
    Strings command_;
    Scratch scratch_;
};

int bisheng(int argc, char** argv) {
    log_run(argc, argv);
    const auto options = parse_options(Strings(argv + 1, argv + argc));
    if (options.version) {
        std::cout << version_text();
        return 0;
    }
    return Compilation(options).run_all();
}

}  // namespace
}  // namespace dj_stand_in

int main(int argc, char** argv) {
    try {
        return dj_stand_in::bisheng(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "bisheng: error: " << error.what() << '\n';
        return 1;
    }
}
