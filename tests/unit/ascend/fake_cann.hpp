// A CANN toolkit of shell scripts: takes no time, notes what it was asked, and does as it is told.
#pragma once

#include <deep_jit/backend/ascend/backend.hpp>

#include "unit/ascend/objects.hpp"
#include "unit/support.hpp"

namespace deep_jit_test {

using JIT = deep_jit::Runtime<deep_jit::Ascend>;

class FakeCann {
public:
    FakeCann() {
        fs::create_directories(root() / "aarch64-linux" / "asc" / "include" / "adv_api");
        compiler("");
        linker("");
        produce(DeviceObject().kernel("scale").bytes());
        version("bisheng", "2026-07-30T20:53:21+08:00 clang version 15.0.5\n");
        version("ld.lld", "LLD 15.0.5\n");
    }

    fs::path root() const { return temp_ / "cann"; }
    fs::path bin(const char* tool) const { return root() / "bin" / tool; }

    /// From now on, what both make.
    void produce(const std::string& object) const { write(root() / "object", object); }
    /// A script that runs before the compiler, or the linker, makes its file.
    void compiler(const std::string& script) const { make_tool("bisheng", script); }
    void linker(const std::string& script) const { make_tool("ld.lld", script); }
    void version(const std::string& tool, const std::string& text) const {
        write(root() / (tool + ".version"), text);
        // Another file, as after an update.
        fs::copy_file(bin(tool.c_str()), root() / "bin" / "new",
                      fs::copy_options::overwrite_existing);
        fs::rename(root() / "bin" / "new", bin(tool.c_str()));
    }

    /// Arguments of the runs so far, one run a line, arguments split by "|"; without `--version`.
    std::vector<std::string> runs(const std::string& tool) const {
        std::vector<std::string> out;
        const auto log = root() / (tool + ".runs");
        if (!fs::exists(log))
            return out;
        for (const auto& line : deep_jit::str::split(slurp(log), '\x01'))
            if (!line.empty() && line != "--version|")
                out.push_back(line);
        return out;
    }
    std::size_t starts() const {
        std::size_t out = 0;
        for (const char* tool : {"bisheng", "ld.lld"}) {
            const auto log = root() / (std::string(tool) + ".runs");
            out += fs::exists(log) ? count_of(slurp(log), "\x01") : 0;
        }
        return out;
    }

private:
    void make_tool(const std::string& tool, const std::string& script) const {
        // $output is what follows -o; it is the last argument.
        make_script(bin(tool.c_str()),
                    "#!/bin/sh\nroot=$(dirname \"$(dirname \"$0\")\")\n"
                    "{ printf '%s|' \"$@\"; printf '\\001'; } >>\"$root/" +
                        tool + ".runs\"\nif [ \"$1\" = --version ]; then cat \"$root/" + tool +
                        ".version\"; exit; fi\nfor output; do :; done\n" + script +
                        "\ncp \"$root/object\" \"$output\"\n");
    }

    TempDir temp_{"fake cann; it's $(touch pwned)"};
    ScopedEnv variable_{"ASCEND_HOME_PATH", root().string()};
};

/// A runtime's surroundings: a toolkit and a cache of its own, an architecture.
class AscendFakeCann : public testing::Test {
protected:
    deep_jit::Config config() const {
        return deep_jit::Config(temp.path(), "NPUTEST", {}, {temp / "my include"});
    }
    std::string logged() const { return fs::exists(temp / "log") ? slurp(temp / "log") : ""; }

    TempDir temp;
    FakeCann cann;
    ScopedEnv cache{"NPUTEST_JIT_CACHE_DIR", (temp / "cache").string()};
    ScopedEnv log{"NPUTEST_JIT_LOG_FILE", (temp / "log").string()};
    ScopedEnv arch{"NPUTEST_JIT_ARCH", "2201"};
};

}  // namespace deep_jit_test
