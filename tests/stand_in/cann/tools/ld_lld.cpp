// The stand-in for the toolkit's ld.lld: makes of device objects what ACL loads, with the linker of
// the CPU.
#include <cstdio>
#include <iostream>
#include <set>
#include <sstream>

#include "device_object.hpp"
#include "support.hpp"

namespace dj_stand_in {
namespace {

struct LinkOptions {
    Strings inputs;
    std::string output = "a.out";
    std::string emulation;
    bool version = false;
};

LinkOptions parse(const Strings& words) {
    static const std::set<std::string> ignored = {"--no-mmap-output-file",
                                                  "-static",
                                                  "-q",
                                                  "-x",
                                                  "-n",
                                                  "--allow-multiple-definition",
                                                  "-Ttext=0",
                                                  "-execute-probe"};
    LinkOptions options;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto& word = words[i];
        const auto value = [&]() -> const std::string& {
            if (i + 1 >= words.size())
                throw Refusal(word + ": missing argument");
            return words[++i];
        };
        if (word == "--version")
            options.version = true;
        else if (word == "-m")
            options.emulation = value();
        else if (word == "-o")
            options.output = value();
        else if (word == "-Ttext") {
            if (const auto& address = value(); address != "0" && address != "0x0")
                throw Refusal("the stand-in links at address 0 only");
        } else if (word == "-z") {
            if (const auto& name = value(); name != "separate-loadable-segments")
                throw Refusal("unknown -z value: " + name);
        } else if (word == "--symbol-ordering-file")
            value();
        else if (word == "-r" || word.rfind("--version-script=", 0) == 0)
            throw Refusal("the stand-in has no '" + word + "'");
        else if (word.empty() || word[0] != '-')
            options.inputs.push_back(word);
        else if (ignored.count(word) == 0)
            throw Refusal("unknown argument '" + word + "'");
    }
    return options;
}

/// The object, no longer in disguise.
std::string read_object(const std::string& path) {
    if (!fs::exists(path))
        throw Refusal("cannot open " + path + ": No such file or directory");
    auto bytes = read_file(path);
    try {
        const auto header = stand_in::ElfImage(bytes).header();
        if (header.e_type == ET_REL && header.e_machine == kDeviceMachine) {
            set_machine(bytes, kHostMachine);
            return bytes;
        }
    } catch (const stand_in::Damaged& damage) {
        throw Refusal(path + ": " + damage.what());
    }
    throw Refusal(path + " is incompatible with aicorelinux");
}

/// The host linker's complaints in the words of LLD.
void report(const std::string& log, const Strings& inputs) {
    std::istringstream lines(log);
    std::set<std::string> told;
    const std::string undefined = "undefined reference to `";
    for (std::string line; std::getline(lines, line);) {
        auto start = line.find(undefined);
        if (start == std::string::npos)
            continue;
        start += undefined.size();
        const auto symbol = line.substr(start, line.rfind('\'') - start);
        if (told.insert(symbol).second)
            std::cerr << "ld.lld: error: undefined symbol: " << symbol << "\n>>> referenced by "
                      << inputs.front() << '\n';
    }
    if (told.empty())
        std::cerr << log;
}

int link(const LinkOptions& options) {
    if (options.emulation.empty())
        throw Refusal("target emulation unknown: -m or at least one .o file required");
    if (options.emulation != "aicorelinux")
        throw Refusal("unknown emulation: " + options.emulation);
    if (options.inputs.empty())
        throw Refusal("no input files");
    const Scratch scratch;
    const auto linked = scratch / "linked";
    Strings command = {host_compiler(),       "-shared", "-Wl,-z,defs",  "-Wl,-Bsymbolic",
                       "-Wl,--build-id=none", "-o",      linked.string()};
    for (std::size_t i = 0; i < options.inputs.size(); ++i) {
        const auto copy = scratch / (std::to_string(i) + ".o").c_str();
        write_file(copy, read_object(options.inputs[i]));
        command.push_back(copy.string());
    }
    if (run(command, "/dev/null", scratch / "log") != 0) {
        report(read_file(scratch / "log"), options.inputs);
        return 1;
    }
    auto object = read_file(linked);
    set_machine(object, kDeviceMachine);
    write_file(options.output, object);
    return 0;
}

int ld_lld(int argc, char** argv) {
    log_run(argc, argv);
    const auto options = parse(Strings(argv + 1, argv + argc));
    if (options.version) {
        std::cout << "LLD 15.0.5 (compatible with GNU linkers)\n";
        return 0;
    }
    return link(options);
}

}  // namespace
}  // namespace dj_stand_in

int main(int argc, char** argv) {
    try {
        return dj_stand_in::ld_lld(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "ld.lld: error: " << error.what() << '\n';
        return 1;
    }
}
