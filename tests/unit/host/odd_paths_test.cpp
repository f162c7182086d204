// Names that a shell would trip over, everywhere one can be given. Each is taken literally; that
// nothing in them is run is checked by TempDir, whose directory the tests run in.
#include <string>
#include <vector>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

struct Odd {
    const char* name;
    const char* text;
};

const Odd kOdd[] = {
    {"Blank", "a  b"},
    {"LeadingDash", "-o x"},
    {"SingleQuote", "it's"},
    {"DoubleQuote", "a\"b"},
    {"Dollar", "$(touch pwned)${HOME}$HOME"},
    {"Backtick", "`touch pwned`"},
    {"Semicolon", "x;touch pwned;"},
    {"Ampersand", "x&touch pwned&"},
    {"Pipe", "x|touch pwned"},
    {"Redirection", "x>pwned"},
    {"Newline", "x\ntouch pwned\n"},
    {"Backslash", "a\\nb\\"},
    {"Wildcards", "*?[a]~"},
    {"Comment", "#x"},
    {"Equals", "a=b,c=d"},
    {"Percent", "%s%n%{O}"},
    {"AtSign", "@file"},
    {"Utf8", "\xe5\xad\x97\xf0\x9f\x8e\x89"},
    {"NotUtf8", "\xff\xfe"},
};

class OddNames : public testing::TestWithParam<Odd> {};

TEST_P(OddNames, Everywhere) {
    const std::string odd = GetParam().text;
    const TempDir dir(odd);
    const ScopedDirectory here(dir.path());
    write(dir / "include" / odd / "tracked/a.hpp", "#define A 40\n");
    fs::create_directories(dir / "tmp" / odd);
    const CountingCompiler compiler(dir / "bin" / odd / ("cc " + odd));

    const ScopedEnv home("HOME", (dir / "home" / odd).string());
    const ScopedEnv tmp("TMPDIR", (dir / "tmp" / odd).string());
    const ScopedEnv root("DJ_JIT_CACHE_DIR");
    const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", compiler.path());
    const ScopedEnv log("DJ_JIT_LOG_FILE", (dir / "log").string());
    const ScopedEnv print("DJ_JIT_PRINT_COMPILER_COMMAND", "1");
    const HostOptions options{
        .debug_info = true, .dump_asm = true, .extra_compiler_flags = {"-DUNUSED=" + odd, "-DB=2"}};
    const Config config(dir.path(), "ODD", odd, {dir / "include" / odd}, {"tracked/"});

    HostJit jit(config);
    const std::string source =
        "#include <tracked/a.hpp>\n__global__ void k(int* out) { *out = A + B; }\n";
    EXPECT_EQ(stored_by(jit, jit.compile("odd", source, options)), 42);
    EXPECT_EQ(compiler.compiles(), 1u);
    const auto entry = dir / "home" / odd / ".dj/cache" / ("odd." + jit.cache_key(source, options));
    EXPECT_EQ(slurp(entry / "kernel.cpp"), source);
    const auto meta = json::parse(slurp(entry / "meta.json"));
    EXPECT_EQ(meta.find("config")->get<std::string>("extra_signature"), odd);
    EXPECT_CONTAINS(slurp(dir / "log"), str::quote("-DUNUSED=" + odd));

    HostJit other(config);
    EXPECT_EQ(stored_by(other, other.compile("odd", source, options)), 42);
    EXPECT_EQ(compiler.compiles(), 1u) << "found again";

    EXPECT_THROW(jit.compile("odd", "broken\n", options), CompileError);
    EXPECT_EQ(names_in(dir.path()),
              (std::vector<std::string>{"bin", "home", "include", "log", "tmp"}));
    // GCC itself forgets a file of its linker plug-in where TMPDIR has a comma.
    auto left = names_in(dir / "tmp" / odd);
    if (contains(odd, ","))
        std::erase_if(left, [](const std::string& name) { return name.ends_with(".res"); });
    EXPECT_EQ(left, std::vector<std::string>{});
}

TEST_P(OddNames, InAStringThatAKernelIsGiven) {
    const std::string odd = GetParam().text;
    if (contains(odd, "\n"))
        GTEST_SKIP() << "a macro ends with its line";
    const TempDir dir;
    const ScopedDirectory here(dir.path());
    const ScopedEnv root("DJ_JIT_CACHE_DIR", (dir / "root").string());
    HostJit jit(Config(dir.path(), "ODD"));
    const auto kernel =
        jit.compile("text", "__global__ void k(char* out) { for (char c : TEXT) *out++ = c; }\n",
                    {.extra_compiler_flags = {"-DTEXT=R\"x(" + odd + ")x\""}});
    std::string out(100, '?');
    run_once(jit, kernel, out.data());
    EXPECT_EQ(std::string(out.c_str()), odd);
}

INSTANTIATE_TEST_SUITE_P(Host, OddNames, testing::ValuesIn(kOdd),
                         [](const auto& info) { return info.param.name; });

}  // namespace
