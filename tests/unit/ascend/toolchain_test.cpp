// The runtime with the stand-in's bisheng and ld.lld: flags that arrive, errors, dumps, layouts.
#include "unit/ascend/fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class AscendToolchain : public AscendStandIn {
protected:
    void SetUp() override {
        AscendStandIn::SetUp();
        if (IsSkipped())
            return;
        use_device(0);
        jit = std::make_unique<JIT>(config());
    }

    /// A kernel that stores a number.
    static std::string store(const std::string& value, const std::string& before = {}) {
        return before +
               "extern \"C\" __global__ __aicore__ void store(__gm__ int32_t* out) { *out = " +
               value + "; }\n";
    }
    int stored(const std::string& source, const ascend::CompilerOptions& options = {}) {
        const DeviceArray<int> out({-1});
        jit->launch(jit->compile("store", source, options), {.num_blocks = 1}, out.data());
        return out.values()[0];
    }
    CompileError failure(const std::string& source, const ascend::CompilerOptions& options = {}) {
        try {
            jit->compile("store", source, options);
        } catch (const CompileError& error) {
            return error;
        }
        ADD_FAILURE() << "it compiles";
        return CompileError("");
    }

    std::unique_ptr<JIT> jit;
};

TEST_F(AscendToolchain, FlagsReachTheCompiler) {
    EXPECT_EQ(stored(store("NUMBER"), {.extra_bisheng_flags = {"-DNUMBER=4"}}), 4);
    EXPECT_EQ(stored(store("NUMBER"), {.extra_bisheng_flags = {"-DNUMBER=5"}}), 5);
    EXPECT_EQ(stored(store("sizeof(NAME)"), {.extra_bisheng_flags = {"-DNAME=\"a b'$(x);\""}}), 10);
}

TEST_F(AscendToolchain, TheArchitectureIsTheDevicesOrTheOneGiven) {
    const auto source = store("__NPU_ARCH__");
    EXPECT_EQ(stored(source), 2201);
    EXPECT_CONTAINS(
        message_of<LoadError>([&] { jit->compile("store", source, {.arch = "dav-3510"}); }),
        "it was compiled for dav-3510");
    EXPECT_NE(jit->cache_key(source), jit->cache_key(source, {.arch = "3510"}));
    restart("Ascend950PR_9599", 1, "8.5.0");
    use_device(0);
    jit = std::make_unique<JIT>(config());
    EXPECT_EQ(stored(source), 3510);
    arch.set("2201");
    jit = std::make_unique<JIT>(config());
    EXPECT_CONTAINS(message_of<LoadError>([&] { jit->compile("store", source); }),
                    "it was compiled for dav-2201");
}

TEST_F(AscendToolchain, TrackedHeadersOfTheLibrary) {
    const auto include = temp / "my include; dir";
    write(include / "mylib" / "number.hpp", "#define NUMBER 6\n");
    const auto source = store("NUMBER", "#include <mylib/number.hpp>\n");
    const auto make = [&] {
        jit = std::make_unique<JIT>(Config(temp.path(), "NPUTEST", {}, {include}, {"mylib/"}));
    };
    make();
    EXPECT_EQ(stored(source), 6);
    const auto key = jit->cache_key(source);
    write(include / "mylib" / "number.hpp", "#define NUMBER 7\n");
    make();
    EXPECT_NE(jit->cache_key(source), key);
    EXPECT_EQ(stored(source), 7);
}

TEST_F(AscendToolchain, TheCompilersLogReachesTheError) {
    const auto error = failure(store("missing"));
    EXPECT_CONTAINS(error.what(), "The compiler bisheng failed for kernel store.");
    EXPECT_CONTAINS(error.what(), "kernel.asc:1:");
    EXPECT_CONTAINS(error.log(), "error: ");
    EXPECT_CONTAINS(error.log(), "missing");
    EXPECT_EQ(slurp(error.source_path()), store("missing"));
}

TEST_F(AscendToolchain, TheLinkersLogReachesTheError) {
    const auto error = failure(store("outside()", "extern \"C\" int outside();\n"));
    EXPECT_CONTAINS(error.what(), "The linker ld.lld failed for kernel store.");
    EXPECT_CONTAINS(error.log(), "ld.lld: error: undefined symbol: outside");
}

TEST_F(AscendToolchain, FlagsThatTheToolsDoNotKnow) {
    EXPECT_CONTAINS(failure(store("1"), {.extra_bisheng_flags = {"--no-such-flag"}}).log(),
                    "--no-such-flag");
    EXPECT_CONTAINS(failure(store("1"), {.extra_linker_flags = {"--no-such-flag"}}).log(),
                    "--no-such-flag");
    EXPECT_CONTAINS(failure(store("1"), {.arch = "9999"}).log(), "9999");
    EXPECT_CONTAINS(
        failure(store("1"), {.linker_flags = std::vector<std::string>{"-m", "elf_x86_64"}}).log(),
        "unknown emulation");
}

TEST_F(AscendToolchain, DumpsAndDebugInformation) {
    const auto source = store("8");
    const auto entry =
        jit->compile_without_load("store", source, {.debug_info = true, .dump_asm = true});
    EXPECT_CONTAINS(slurp(entry / "asm" / "kernel.asci"), "*out = 8");
    EXPECT_FALSE(fs::exists(entry / "asm" / "kernel.rel.o"));
    EXPECT_CONTAINS(slurp(entry / "kernel.o"), ".debug_line");
    EXPECT_EQ(jit->cache_key(source, {.debug_info = true}),
              jit->cache_key(source, {.debug_info = true, .dump_asm = true}));
    EXPECT_EQ(stored(source, {.debug_info = true}), 8);
}

TEST_F(AscendToolchain, EveryLayoutOfTheToolkit) {
    constexpr const char* kSource =
        "#include <activation/sigmoid.h>\n"
        "extern \"C\" __global__ __aicore__ void k() {}\n";
    const fs::path real = DEEP_JIT_TEST_CANN;
    for (const char* above : {"aarch64-linux", "x86_64-linux", ".", "compiler"}) {
        // The programs find the rest of their toolkit from where they really are.
        const auto root = temp / "layouts" / above / "cann";
        fs::create_directories(root / "bin");
        fs::create_directories(root / above / "asc" / "include");
        for (const char* tool : {"bisheng", "ld.lld"})
            fs::create_symlink(fs::canonical(real / "bin" / tool), root / "bin" / tool);
        fs::create_directory_symlink(fs::canonical(real / "asc" / "include" / "adv_api"),
                                     root / above / "asc" / "include" / "adv_api");
        home.set(root.string());
        JIT other(config());
        const auto kernel = other.compile("k", std::string(kSource) + "// " + above + "\n");
        EXPECT_EQ(kernel->name(), "k") << above;
    }
}

TEST_F(AscendToolchain, AWarmStartStartsNoProgram) {
    EXPECT_EQ(stored(store("9")), 9);
    const auto runs = slurp(temp / "programs");
    EXPECT_EQ(count_of(runs, " --version\n"), 2U) << runs;
    EXPECT_EQ(count_of(runs, "kernel.asc -o "), 1U) << runs;
    jit = std::make_unique<JIT>(config());
    EXPECT_EQ(stored(store("9")), 9);
    EXPECT_EQ(slurp(temp / "programs"), runs);
}

}  // namespace
