// Which compiler the Host backend takes, and what it says of those that do not work.
#include <filesystem>
#include <string>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

/// PATH holds only scripts of this test, which call the machine's compiler by its full path.
class CompilerChoice : public HostTest {
protected:
    void add(const std::string& name, const std::string& before = "") {
        CountingCompiler(bin_ / name, before, real_);
    }
    std::string chosen() const {
        return fs::path(host::CompilerInfo(Env("HOSTTEST"), {root_}).path.get()).filename();
    }

    const std::string real_ = host::detail::search_path("c++").string();
    const fs::path bin_ = dir_ / "bin";
    ScopedEnv path_{"PATH", bin_.string()};
};

TEST_F(CompilerChoice, Order) {
    add("clang++");
    EXPECT_EQ(chosen(), "clang++");
    add("g++");
    EXPECT_EQ(chosen(), "g++");
    add("c++");
    EXPECT_EQ(chosen(), "c++");
    add("from-cxx");
    const ScopedEnv cxx("CXX", "from-cxx");
    EXPECT_EQ(chosen(), "from-cxx");
    add("global");
    const ScopedEnv global("DJ_JIT_HOST_COMPILER", "global");
    EXPECT_EQ(chosen(), "global");
    add("own");
    const ScopedEnv own("HOSTTEST_JIT_HOST_COMPILER", (bin_ / "own").string());
    EXPECT_EQ(chosen(), "own");
}

TEST_F(CompilerChoice, EmptyMeansUnset) {
    add("g++");
    const ScopedEnv cxx("CXX", ""), global("DJ_JIT_HOST_COMPILER", "");
    EXPECT_EQ(chosen(), "g++");
}

TEST_F(CompilerChoice, ACxxThatDoesNotWorkIsPassedOver) {
    add("g++");
    for (const std::string value : {"no-such-compiler", "g++ -m64", "/nowhere/g++", "."}) {
        const ScopedEnv cxx("CXX", value);
        EXPECT_EQ(chosen(), "g++") << value;
    }
    add("broken", "exit 1");
    const ScopedEnv cxx("CXX", "broken");
    EXPECT_EQ(chosen(), "g++");
}

TEST_F(CompilerChoice, NoneAtAllListsWhatWasTried) {
    add("c++", "echo I am broken; exit 5");
    make_script(bin_ / "g++", "#!/no/such/interpreter\n");
    write(bin_ / "clang++", "not executable");
    const ScopedEnv cxx("CXX", "mine");
    const auto message = message_of<ToolchainError>([&] { make().compile("x", store_source(1)); });
    EXPECT_CONTAINS(message, "DJ_JIT_HOST_COMPILER");
    EXPECT_CONTAINS(message, "mine: not found");
    EXPECT_CONTAINS(message, "c++: ");
    EXPECT_CONTAINS(message, "command failed with exit code 5: I am broken");
    EXPECT_CONTAINS(message, "g++: ");
    EXPECT_CONTAINS(message, "exit code 127");
    EXPECT_CONTAINS(message, "clang++: not found");
    EXPECT_FALSE(fs::exists(root_ / "cache"));
}

TEST_F(CompilerChoice, ANamedOneMustWork) {
    add("g++");
    write(bin_ / "plain-file", "no program");
    fs::create_directories(bin_ / "directory");
    const std::vector<std::string> values{"no-such-compiler",
                                          "/nowhere/g++",
                                          (bin_ / "plain-file").string(),
                                          (bin_ / "directory").string(),
                                          "g++ -O2",
                                          " "};
    for (const std::string& value : values) {
        const ScopedEnv named("DJ_JIT_HOST_COMPILER", value);
        const auto message =
            message_of<ToolchainError>([&] { make().compile("x", store_source(1)); });
        EXPECT_CONTAINS(message, "DJ_JIT_HOST_COMPILER='" + value + "'");
    }
    add("broken", "echo no license; exit 9");
    const ScopedEnv named("HOSTTEST_JIT_HOST_COMPILER", "broken");
    const auto message = message_of<ToolchainError>([&] { make().compile("x", store_source(1)); });
    EXPECT_CONTAINS(message, "broken --version' failed: command failed with exit code 9");
    EXPECT_CONTAINS(message, "no license");
}

TEST_F(CompilerChoice, ARuntimeWithoutACompilerStillServesWhatIsThere) {
    fs::path entry;
    {
        const ScopedEnv named("DJ_JIT_HOST_COMPILER", real_);
        const ScopedEnv path("PATH", "/usr/bin:/bin");
        HostJit jit = make();
        jit.compile("kept", store_source(5));
        entry = entry_of(jit, "kept", store_source(5));
    }
    const auto kernel = Host::load(entry, Env("HOSTTEST"));
    EXPECT_EQ(stored_by(make(), kernel), 5);
}

TEST_F(CompilerChoice, IsAskedWhoItIsOnceForAllProcesses) {
    const CountingCompiler compiler(bin_ / "c++", "", real_);
    const ScopedEnv path("PATH", bin_.string() + ":/usr/bin:/bin");
    make().compile("a", store_source(1));
    EXPECT_EQ(compiler.identities(), 2u) << "--version and -dumpmachine";
    make().compile("a", store_source(1));
    make().compile("b", store_source(2));
    EXPECT_EQ(compiler.identities(), 2u);
    // Another file under the same name is asked again.
    add("c++", "# changed");
    make().compile("a", store_source(1));
    EXPECT_EQ(compiler.identities(), 4u);
}

TEST_F(CompilerChoice, NothingIsLookedForBeforeItIsNeeded) {
    HostJit jit = make();
    EXPECT_FALSE(jit.backend.compiler_info.path.initialized());
    EXPECT_THROW(jit.cache_key("x"), ToolchainError);
    add("g++");
    EXPECT_EQ(jit.backend.compiler_info.path.get().filename(), "g++") << "a failure is not kept";
}

}  // namespace
