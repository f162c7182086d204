// What is thrown when a kernel cannot be compiled, and what is left behind then.
#include <filesystem>
#include <string>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class HostCompileError : public HostTest {
protected:
    /// The error that compiling `source` throws.
    static CompileError error_of(HostJit& jit, std::string_view source,
                                 const HostOptions& options = {}) {
        try {
            jit.compile("broken", source, options);
        } catch (const CompileError& error) {
            return error;
        }
        ADD_FAILURE() << "nothing was thrown";
        return CompileError("");
    }
};

const std::string kBroken = "__global__ void k(int* out) {\n    *out = undeclared_thing;\n}\n";

TEST_F(HostCompileError, SaysEverything) {
    for (const std::string compiler : {"g++", "clang++"}) {
        if (host::detail::search_path(compiler).empty())
            continue;
        const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", compiler);
        HostJit jit = make();
        const auto error = error_of(jit, kBroken, {.extra_compiler_flags = {"-DNAME=a b"}});
        const auto key =
            "broken." + jit.cache_key(kBroken, {.extra_compiler_flags = {"-DNAME=a b"}});

        EXPECT_EQ(error.key(), key);
        EXPECT_CONTAINS(error.log(), "undeclared_thing");
        EXPECT_CONTAINS(error.log(), "kernel.cpp:2");
        EXPECT_CONTAINS(error.command(), compiler);
        EXPECT_CONTAINS(error.command(), " '-DNAME=a b' ");
        EXPECT_EQ(error.source_path(), (root_ / "failed" / key / "kernel.cpp").string());
        EXPECT_EQ(slurp(error.source_path()), kBroken);
        EXPECT_EQ(slurp(root_ / "failed" / key / "compiler.log"), error.log());

        const std::string what = error.what();
        for (const auto& part : {key, error.log(), error.command(), error.source_path()})
            EXPECT_CONTAINS(what, part);
        EXPECT_CONTAINS(what, "command failed with exit code 1");
    }
    EXPECT_TRUE(entries().empty());
    EXPECT_TRUE(names_in(root_ / "tmp").empty());
    EXPECT_EQ(log(), "") << "an error is thrown, not printed";
}

TEST_F(HostCompileError, TheKeptSourceCompilesByTheCommandThere) {
    HostJit jit = make();
    const auto error = error_of(jit, kBroken);
    const auto directory = fs::path(error.source_path()).parent_path();
    // What the message shows is what happened: run again in the kept directory it fails again.
    const auto again = call_external_command({"/bin/sh", "-c", error.command()}, directory);
    EXPECT_NE(again.exit_code, 0);
    EXPECT_CONTAINS(again.output, "undeclared_thing");
}

TEST_F(HostCompileError, ALinkErrorIsOneToo) {
    HostJit jit = make();
    const auto error =
        error_of(jit, store_source(1), {.extra_compiler_flags = {"-Wl,--no-such-linker-option"}});
    EXPECT_CONTAINS(error.command(), "-shared");
    EXPECT_CONTAINS(error.log(), "no-such-linker-option");
    EXPECT_TRUE(entries().empty());
}

TEST_F(HostCompileError, AnUndefinedFunctionIsALoadError) {
    HostJit jit = make();
    const auto message = message_of<LoadError>([&] {
        jit.compile("undefined", "void nowhere(int*);\n__global__ void k(int* p) { nowhere(p); }");
    });
    EXPECT_CONTAINS(message, "nowhere");
    EXPECT_CONTAINS(message, "undefined.");
}

/// Compiles with a compiler that runs `lines` instead when it is to compile.
class HostBrokenCompiler : public HostCompileError {
protected:
    CompileError compile_with(const std::string& lines) {
        const CountingCompiler compiler(dir_ / "cc",
                                        "if [ $kind = compile ]; then " + lines + "\nfi");
        const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", compiler.path());
        HostJit jit = make();
        return error_of(jit, store_source(1));
    }
};

TEST_F(HostBrokenCompiler, KilledMeansOutOfMemory) {
    const auto error = compile_with("kill -9 $$");
    EXPECT_CONTAINS(error.what(), "exit code 137");
    EXPECT_CONTAINS(error.what(), "ran out of memory");
}

TEST_F(HostBrokenCompiler, AKilledPartMeansOutOfMemory) {
    const auto error =
        compile_with("echo 'g++: fatal error: Killed signal terminated program'; exit 1");
    EXPECT_CONTAINS(error.what(), "exit code 1.");
    EXPECT_CONTAINS(error.what(), "ran out of memory");
}

TEST_F(HostBrokenCompiler, Exit127MeansMissing) {
    const auto error = compile_with("exit 127");
    EXPECT_CONTAINS(error.what(), "exit code 127");
    EXPECT_CONTAINS(error.what(), "missing");
}

TEST_F(HostBrokenCompiler, NoSpaceMeansDiskFull) {
    const auto error = compile_with("echo 'kernel.o: No space left on device'; exit 1");
    EXPECT_CONTAINS(error.what(), "The disk is full");
}

TEST_F(HostBrokenCompiler, SilenceIsSurvived) {
    const auto error = compile_with("exit 3");
    EXPECT_CONTAINS(error.what(), "exit code 3");
    EXPECT_EQ(error.log(), "");
}

TEST_F(HostBrokenCompiler, AnObjectThatIsNone) {
    const auto error = compile_with("echo junk >kernel.rel.o; exit 0");
    EXPECT_CONTAINS(error.what(), "did not produce an ELF object file");
}

TEST_F(HostBrokenCompiler, SuccessWithoutAnObject) {
    const CountingCompiler compiler(dir_ / "cc", "if [ $kind = compile ]; then exit 0; fi");
    const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", compiler.path());
    HostJit jit = make();
    EXPECT_THROW(jit.compile("nothing", store_source(1)), Error);
    EXPECT_TRUE(entries().empty());
}

TEST_F(HostCompileError, ACompilerThatVanishes) {
    const CountingCompiler compiler(dir_ / "cc");
    const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", compiler.path());
    HostJit jit = make();
    ASSERT_EQ(stored_by(jit, jit.compile("there", store_source(1))), 1);
    fs::remove(compiler.path());
    const auto error = error_of(jit, store_source(2));
    EXPECT_CONTAINS(error.what(), "exit code 127");
    EXPECT_CONTAINS(error.what(), "cannot run " + compiler.path());
    EXPECT_EQ(stored_by(jit, jit.compile("there", store_source(1))), 1);
}

}  // namespace
