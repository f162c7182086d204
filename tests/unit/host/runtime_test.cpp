// The whole way of a Host kernel: cold, from disk, from memory, by many at once.
#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

class HostRuntimeTest : public HostTest {
protected:
    CountingCompiler compiler_{dir_ / "counting compiler"};
    ScopedEnv chosen_{"DJ_JIT_HOST_COMPILER", compiler_.path()};
};

TEST_F(HostRuntimeTest, ColdThenDiskThenMemory) {
    HostJit jit = make();
    EXPECT_EQ(compiler_.runs(), 0u) << "making a runtime runs nothing";
    const auto kernel = jit.compile("scale", kScaleSource);
    EXPECT_TRUE(scales(jit, kernel));
    EXPECT_EQ(compiler_.compiles(), 1u);
    EXPECT_EQ(compiler_.links(), 1u);

    compiler_.reset();
    EXPECT_EQ(jit.compile("scale", kScaleSource), kernel) << "from memory";
    HostJit other = make();
    const auto again = other.compile("scale", kScaleSource);
    EXPECT_NE(again, kernel);
    EXPECT_TRUE(scales(other, again));
    EXPECT_EQ(compiler_.runs(), 0u) << "from disk";
    EXPECT_EQ(entries(), (std::vector<std::string>{"scale." + jit.cache_key(kScaleSource)}));
    EXPECT_TRUE(names_in(root_ / "tmp").empty());
    EXPECT_EQ(log(), "");
}

TEST_F(HostRuntimeTest, WithoutLoading) {
    HostJit jit = make();
    const auto path = jit.compile_without_load("scale", kScaleSource);
    EXPECT_EQ(path, entry_of(jit, "scale", kScaleSource));
    EXPECT_EQ(names_in(path),
              (std::vector<std::string>{".committed", "kernel.cpp", "kernel.so", "meta.json"}));
    EXPECT_EQ(slurp(path / "kernel.cpp"), kScaleSource);
    EXPECT_EQ(jit.compile_without_load("scale", kScaleSource), path);
    EXPECT_TRUE(scales(jit, jit.compile("scale", kScaleSource)));
    EXPECT_TRUE(scales(jit, Host::load(path, jit.env)));
    EXPECT_EQ(compiler_.compiles(), 1u);
}

TEST_F(HostRuntimeTest, LoadingWhatIsNoKernel) {
    const Env env("HOSTTEST");
    EXPECT_CONTAINS(message_of<LoadError>([&] { Host::load(dir_ / "nowhere", env); }), "nowhere");
    for (const std::string bytes : {"", "junk", "\x7f\x45LF"}) {
        write(dir_ / "tag.1/kernel.so", bytes);
        EXPECT_CONTAINS(message_of<LoadError>([&] { Host::load(dir_ / "tag.1", env); }), "tag.1");
    }
    // A library that is none of ours.
    write(dir_ / "lib.cpp", "int x = 1;\n");
    const auto made = call_external_command({"c++", "-shared", "-fPIC", (dir_ / "lib.cpp").string(),
                                             "-o", (dir_ / "tag.1/kernel.so").string()});
    ASSERT_TRUE(made.ok()) << made.output;
    EXPECT_CONTAINS(message_of<LoadError>([&] { Host::load(dir_ / "tag.1", env); }),
                    "tag.1 is not a kernel library of this version");
}

TEST_F(HostRuntimeTest, ManyThreadsCompileEachKernelOnce) {
    constexpr int kThreads = 32, kKernels = 8;
    HostJit jit = make();
    std::atomic<int> wrong{0}, ready{0};
    std::vector<std::set<HostKernel>> seen(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            ++ready;
            while (ready < kThreads) std::this_thread::yield();
            for (int i = 0; i < kKernels; ++i) {
                const int k = (i + t) % kKernels;
                const auto kernel = jit.compile("store", store_source(k));
                seen[static_cast<std::size_t>(t)].insert(kernel);
                if (stored_by(jit, kernel) != k)
                    ++wrong;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(compiler_.compiles(), 8u);
    EXPECT_EQ(compiler_.links(), 8u);
    for (const auto& kernels : seen) EXPECT_EQ(kernels, seen[0]) << "the same objects for all";
    EXPECT_EQ(entries().size(), 8u);
}

TEST_F(HostRuntimeTest, AnErrorReachesAllWaitersAndIsNotKept) {
    // The compiler fails until the file `ok` is there, slowly, so that all wait for one run.
    const auto ok = dir_ / "ok";
    const CountingCompiler failing(
        dir_ / "failing", "if [ $kind = compile ]; then test -e " + str::quote(ok.string()) +
                              " || { sleep 0.5; echo no luck; exit 1; }; fi");
    const ScopedEnv chosen("DJ_JIT_HOST_COMPILER", failing.path());
    HostJit jit = make();
    std::atomic<int> caught{0}, ready{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&] {
            ++ready;
            while (ready < 8) std::this_thread::yield();
            try {
                jit.compile("store", store_source(1));
            } catch (const CompileError& error) {
                if (contains(error.log(), "no luck"))
                    ++caught;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(caught, 8);
    const auto runs = failing.compiles();
    EXPECT_LE(runs, 4u) << "with the guessed name and without, and perhaps for one that came late";
    EXPECT_TRUE(entries().empty());

    EXPECT_THROW(jit.compile("store", store_source(1)), CompileError);
    EXPECT_GT(failing.compiles(), runs) << "it is tried again";
    write(ok, "");
    EXPECT_EQ(stored_by(jit, jit.compile("store", store_source(1))), 1);
    EXPECT_EQ(entries().size(), 1u);
}

TEST_F(HostRuntimeTest, SeveralProcessesAtOnce) {
    std::vector<pid_t> children;
    for (int p = 0; p < 4; ++p)
        children.push_back(start_child([&] {
            HostJit jit = make();
            for (int k = 0; k < 2; ++k)
                if (stored_by(jit, jit.compile("store", store_source(k))) != k)
                    return 1;
            return 0;
        }));
    for (const auto child : children) {
        const auto result = wait_child(child);
        EXPECT_TRUE(result.ok()) << result;
    }
    EXPECT_GE(compiler_.compiles(), 2u);
    EXPECT_LE(compiler_.compiles(), 8u);
    EXPECT_EQ(entries().size(), 2u);
    EXPECT_TRUE(names_in(root_ / "tmp").empty());
    EXPECT_TRUE(names_in(root_ / "quarantine").empty());
    compiler_.reset();
    HostJit jit = make();
    EXPECT_EQ(stored_by(jit, jit.compile("store", store_source(1))), 1);
    EXPECT_EQ(compiler_.runs(), 0u);
}

TEST_F(HostRuntimeTest, TagsNameEntriesAndNothingElse) {
    HostJit jit = make();
    const auto a = jit.compile("a", store_source(1)), b = jit.compile("b", store_source(1));
    EXPECT_NE(a, b);
    const auto key = jit.cache_key(store_source(1));
    EXPECT_EQ(entries(), (std::vector<std::string>{"a." + key, "b." + key}));
    for (const std::string tag : {"", "a b", "a/b", "..", "a.b", "a-b", "\xc3\xa9"})
        EXPECT_CONTAINS(message_of<ConfigError>([&] { jit.compile(tag, store_source(1)); }),
                        "cache tag must contain only letters, digits, or underscores");
}

TEST_F(HostRuntimeTest, ChangedDefaultsTakeEffectAtOnce) {
    HostJit jit = make();
    const auto source = "__global__ void k(int* out) { *out = VALUE; }\n";
    auto& flags = *jit.default_compiler_options.compiler_flags;
    flags.push_back("-DVALUE=1");
    const auto first = jit.compile("defaults", source);
    EXPECT_EQ(stored_by(jit, first), 1);
    flags.back() = "-DVALUE=2";
    const auto second = jit.compile("defaults", source);
    EXPECT_EQ(stored_by(jit, second), 2);
    flags.back() = "-DVALUE=1";
    EXPECT_EQ(jit.compile("defaults", source), first);
    EXPECT_EQ(jit.compile("defaults", source, {.extra_compiler_flags = {"-UVALUE", "-DVALUE=2"}})
                  ->num_params(),
              1u);
    EXPECT_EQ(compiler_.compiles(), 3u);
}

TEST_F(HostRuntimeTest, MetaJson) {
    include_dirs_ = {dir_ / "include"};
    fs::create_directories(include_dirs_[0]);
    HostJit jit(config("sig-1"));
    const HostOptions options{.fast_math = true, .extra_compiler_flags = {"-DX=a b"}};
    const auto path = jit.compile_without_load("meta", store_source(1), options);
    const auto meta = json::parse(slurp(path / "meta.json"));

    const auto* command = meta.find("command");
    ASSERT_TRUE(command != nullptr && command->is_array());
    std::vector<std::string> words;
    for (const auto& word : *command->get_if<json::array_t>())
        words.push_back(*word.get_if<std::string>());
    EXPECT_EQ(words[0], compiler_.path());
    EXPECT_EQ(words[1], "-O3");
    const auto at = [&](const std::string& word) {
        return std::find(words.begin(), words.end(), word) - words.begin();
    };
    const auto size = static_cast<std::ptrdiff_t>(words.size());
    EXPECT_LT(at("-DX=a b"), size);
    EXPECT_LT(at("-ffast-math"), size);
    ASSERT_LT(at("-I"), size - 1);
    EXPECT_EQ(words[static_cast<std::size_t>(at("-I")) + 1], include_dirs_[0].string());

    const auto* config = meta.find("config");
    ASSERT_NE(config, nullptr);
    EXPECT_EQ(config->get<std::string>("python_library_root"), dir_.path().string());
    EXPECT_EQ(config->get<std::string>("extra_signature"), "sig-1");
    EXPECT_EQ(*config->find("include_dirs"), json(std::vector<std::string>{include_dirs_[0]}));
    EXPECT_EQ(*config->find("include_prefixes"), json(std::vector<std::string>{"tracked/"}));

    const auto* compiler = meta.find("compiler_info");
    ASSERT_NE(compiler, nullptr);
    EXPECT_EQ(compiler->get<std::string>("path"), compiler_.path());
    EXPECT_EQ(compiler->get<std::string>("version"),
              call_external_command({"c++", "--version"}).output +
                  call_external_command({"c++", "-dumpmachine"}).output);

    const auto* used = meta.find("compiler_options");
    ASSERT_NE(used, nullptr);
    EXPECT_EQ(used->get<std::string>("optimize_level"), "3");
    EXPECT_EQ(used->get<bool>("use_fast_math"), true);
    EXPECT_EQ(used->get<bool>("debug_info"), false);
    EXPECT_EQ(*used->find("compiler_flags"), json(std::vector<std::string>{"-std=c++20"}));
    EXPECT_EQ(*used->find("extra_compiler_flags"), json(std::vector<std::string>{"-DX=a b"}));
}

}  // namespace
