// What changes a kernel's key, and what does not.
#include <string>
#include <vector>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

const std::string kIncluding =
    "#include <tracked/a.hpp>\n#include <untracked/b.hpp>\n"
    "__global__ void k(int* out) { *out = A * 100 + B; }\n";

class HostKey : public HostTest {
protected:
    HostKey() {
        include_dirs_ = {dir_ / "include"};
        set_headers(1, 2);
    }
    void set_headers(int a, int b, const fs::path& directory = "include") const {
        write(dir_ / directory / "tracked/a.hpp", "#define A " + std::to_string(a) + "\n");
        write(dir_ / directory / "untracked/b.hpp", "#define B " + std::to_string(b) + "\n");
    }
    std::string key(const std::string& source = kIncluding, const HostOptions& options = {}) const {
        return make().cache_key(source, options);
    }
    int run(const std::string& source = kIncluding, const HostOptions& options = {}) const {
        HostJit jit = make();
        return stored_by(jit, jit.compile("key", source, options));
    }
};

TEST_F(HostKey, ATrackedHeaderChangesIt) {
    const auto before = key();
    EXPECT_EQ(before.size(), 32u);
    EXPECT_EQ(run(), 102);
    set_headers(5, 2);
    EXPECT_NE(key(), before);
    EXPECT_EQ(run(), 502);
    set_headers(1, 2);
    EXPECT_EQ(key(), before);
    EXPECT_EQ(run(), 102);
}

TEST_F(HostKey, AnUntrackedHeaderDoesNot) {
    const auto before = key();
    EXPECT_EQ(run(), 102);
    set_headers(1, 7);
    EXPECT_EQ(key(), before);
    EXPECT_EQ(run(), 102) << "the kernel that is there is used";
}

TEST_F(HostKey, MovedIncludeDirectoriesDoNot) {
    const auto before = key();
    EXPECT_EQ(run(), 102);
    fs::rename(dir_ / "include", dir_ / "elsewhere");
    include_dirs_ = {dir_ / "empty", dir_ / "elsewhere"};
    EXPECT_EQ(key(), before);
    EXPECT_EQ(run(), 102);
    EXPECT_EQ(entries().size(), 1u);
}

TEST_F(HostKey, SourceSignatureFlagsAndStandardChangeIt) {
    std::vector<std::string> keys{
        key(),
        key(kIncluding + " "),
        HostJit(config("other")).cache_key(kIncluding),
        key(kIncluding, {.optimize_level = "2"}),
        key(kIncluding, {.fast_math = true}),
        key(kIncluding, {.debug_info = true}),
        key(kIncluding, {.arch = "native"}),
        key(kIncluding, {.compiler_flags = std::vector<std::string>()}),
        key(kIncluding, {.extra_compiler_flags = {"-DX"}}),
        key(kIncluding, {.extra_compiler_flags = {"-DX", "-DY"}}),
        key(kIncluding, {.extra_compiler_flags = {"-DY", "-DX"}}),
        key(kIncluding, {.extra_compiler_flags = {"-DX -DY"}}),
        key(kIncluding, {.extra_compiler_flags = {""}}),
    };
    {
        const ScopedEnv standard("DJ_JIT_CPP_STANDARD", "23");
        keys.push_back(key());
    }
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
    EXPECT_EQ(key(kIncluding, {.dump_asm = true}), key());
    EXPECT_EQ(key(kIncluding, {.optimize_level = "3"}), key()) << "the default, said aloud";
}

TEST_F(HostKey, TheCompilerChangesIt) {
    const auto with = [&](const std::string& version) {
        const CountingCompiler compiler(
            dir_ / "cc", "if [ \"$1\" = --version ]; then echo " + version + "; exit 0; fi");
        const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", compiler.path());
        return key();
    };
    const auto one = with("1.0");
    EXPECT_NE(with("1.1"), one);
    EXPECT_EQ(with("1.0"), one);
    // Where it lies does not matter, only what it says it is.
    fs::create_directories(dir_ / "other place");
    fs::copy_file(dir_ / "cc", dir_ / "other place/cc2");
    const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", (dir_ / "other place/cc2").string());
    EXPECT_EQ(key(), one);
}

TEST_F(HostKey, FlagsAreNeverConfused) {
    const std::string source =
        "#ifndef B\n#define B 5\n#endif\n"
        "__global__ void k(int* out) { *out = A * 100 + B; }\n";
    EXPECT_EQ(run(source, {.extra_compiler_flags = {"-DA=1", "-DB=2"}}), 102);
    EXPECT_EQ(run(source, {.extra_compiler_flags = {"-DA=2", "-DB=1"}}), 201);
    EXPECT_EQ(run(source, {.extra_compiler_flags = {"-DB=1", "-DA=2"}}), 201);
    EXPECT_EQ(entries().size(), 3u);

    // One flag with a blank in it is not two flags.
    const std::string text =
        "#define TEXT(x) #x\n#define STRING(x) TEXT(x)\n#ifndef b\n#define b 0\n"
        "#endif\n__global__ void k(int* out) { *out = sizeof(STRING(A)) * 10 + b; }\n";
    EXPECT_EQ(run(text, {.extra_compiler_flags = {"-DA=a -Db=1"}}), 10 * int(sizeof("a -Db=1")));
    EXPECT_EQ(run(text, {.extra_compiler_flags = {"-DA=a", "-Db=1"}}), 21);
}

TEST_F(HostKey, IsTheSeedsFiveComponents) {
    HostJit jit = make();
    const auto source_digest = hash::FNV1a()
                                   .update(kIncluding)
                                   .update("tracked/a.hpp")
                                   .update(hash::FNV1a().update("#define A 1\n").get_hex_digest())
                                   .get_hex_digest();
    const auto flags = encode_list({"-O3", "-std=c++20", "-DX"});
    EXPECT_EQ(jit.cache_key(kIncluding, {.extra_compiler_flags = {"-DX"}}),
              hash::FNV1a()
                  .update("")
                  .update(jit.backend.compiler_hash())
                  .update(flags)
                  .update("")
                  .update(source_digest)
                  .get_hex_digest());
}

TEST_F(HostKey, AMissingTrackedHeaderIsAnErrorAndAQuotedIncludeToo) {
    HostJit jit = make();
    EXPECT_THROW(jit.compile("key", "#include <tracked/no.hpp>\n" + store_source(1)), ConfigError);
    EXPECT_CONTAINS(message_of<ConfigError>([&] {
                        jit.compile("key", "#include \"tracked/a.hpp\"\n" + store_source(1));
                    }),
                    "non-standard include");
}

}  // namespace
