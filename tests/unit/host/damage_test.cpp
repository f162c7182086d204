// Entries that time, accidents or strangers changed: noticed, put aside, rebuilt, never loaded.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "host_support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

struct Damage {
    const char* name;
    std::function<void(const fs::path&)> inflict;
};

void flip(const fs::path& file, std::size_t at) {
    auto bytes = slurp(file);
    bytes[at < bytes.size() ? at : bytes.size() - 1] ^= 0x20;
    write(file, bytes);
}

const Damage kDamages[] = {
    {"FirstByte", [](const fs::path& file) { flip(file, 0); }},
    {"MiddleByte", [](const fs::path& file) { flip(file, fs::file_size(file) / 2); }},
    {"LastByte", [](const fs::path& file) { flip(file, fs::file_size(file) - 1); }},
    {"TailCut", [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 1); }},
    {"HalfCut", [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); }},
    {"Grown", [](const fs::path& file) { write(file, slurp(file) + "x"); }},
    {"Emptied", [](const fs::path& file) { write(file, ""); }},
    {"Removed", [](const fs::path& file) { fs::remove(file); }},
    {"ADirectoryInstead",
     [](const fs::path& file) {
         fs::remove(file);
         fs::create_directories(file / "inside");
     }},
    {"ADanglingLinkInstead",
     [](const fs::path& file) {
         fs::remove(file);
         fs::create_symlink("nowhere", file);
     }},
    {"AFifoInstead",
     [](const fs::path& file) {
         fs::remove(file);
         ASSERT_EQ(::mkfifo(file.c_str(), 0644), 0);
     }},
};

class HostDamage : public HostTest, public testing::WithParamInterface<const char*> {
protected:
    CountingCompiler compiler_{dir_ / "cc"};
    ScopedEnv chosen_{"DJ_JIT_HOST_COMPILER", compiler_.path()};
    const HostOptions options_{.dump_asm = true};

    int compile_and_run(const std::string& source) {
        HostJit jit = make();
        return stored_by(jit, jit.compile("damage", source, options_));
    }
};

TEST_P(HostDamage, OfOneFile) {
    const std::string file = GetParam();
    const auto source = store_source(42);
    ASSERT_EQ(compile_and_run(source), 42);
    HostJit jit = make();
    const auto entry = entry_of(jit, "damage", source);
    const auto files = names_in(entry);
    ASSERT_EQ(files, (std::vector<std::string>{".committed", "kernel.cpp", "kernel.s", "kernel.so",
                                               "meta.json"}));
    std::size_t quarantined = 0;
    for (const auto& damage : kDamages) {
        SCOPED_TRACE(damage.name);
        compiler_.reset();
        damage.inflict(entry / file);
        EXPECT_EQ(compile_and_run(source), 42);
        if (file == ".committed" && damage.name == std::string("Emptied")) {
            // The marker of another implementation: it says no more than that all is there.
            EXPECT_EQ(compiler_.runs(), 0u);
            write(entry / file, "x");
            EXPECT_EQ(compile_and_run(source), 42);
        }
        EXPECT_EQ(compiler_.compiles(), 1u);
        EXPECT_EQ(names_in(root_ / "quarantine").size(), ++quarantined);
        EXPECT_EQ(names_in(entry), files) << "a whole entry is there again";

        compiler_.reset();
        EXPECT_EQ(compile_and_run(source), 42);
        EXPECT_EQ(compiler_.runs(), 0u) << "and it is used";
    }
    EXPECT_EQ(count_of(log(), "deep_jit warning"), 1u)
        << "said once a process for each entry: " << log();
    EXPECT_CONTAINS(log(), entry.string());
}

INSTANTIATE_TEST_SUITE_P(Host, HostDamage,
                         testing::Values("kernel.so", "kernel.cpp", "meta.json", ".committed",
                                         "kernel.s"),
                         [](const auto& info) {
                             std::string name = info.param;
                             for (char& c : name)
                                 if (c == '.')
                                     c = '_';
                             return name;
                         });

class HostForgery : public HostDamage {};

TEST_F(HostForgery, AnotherKernelsLibraryIsNeverLoaded) {
    // The foreign library would leave a file behind when it is loaded.
    const auto trace = dir_ / "loaded";
    HostJit jit = make();
    const auto other = jit.compile_without_load(
        "damage",
        "__attribute__((constructor)) static void loaded() {\n"
        "    if (FILE* f = fopen(R\"(" +
            trace.string() + ")\", \"w\")) fclose(f);\n}\n" + store_source(666),
        options_);
    ASSERT_FALSE(fs::exists(trace));
    ASSERT_EQ(stored_by(jit, Host::load(other, jit.env)), 666);
    ASSERT_TRUE(fs::remove(trace)) << "it does leave the file";

    ASSERT_EQ(compile_and_run(store_source(1)), 1);
    const auto entry = entry_of(jit, "damage", store_source(1));
    fs::copy_file(other / "kernel.so", entry / "kernel.so", fs::copy_options::overwrite_existing);
    EXPECT_EQ(compile_and_run(store_source(1)), 1);
    EXPECT_FALSE(fs::exists(trace));

    // A whole foreign entry under this name: it is not the source that was asked for.
    fs::remove_all(entry);
    fs::copy(other, entry, fs::copy_options::recursive);
    EXPECT_EQ(compile_and_run(store_source(1)), 1);
    EXPECT_FALSE(fs::exists(trace));
    EXPECT_EQ(names_in(root_ / "quarantine").size(), 2u);
}

TEST_F(HostForgery, DamageInALaterRootIsSurvivedToo) {
    const auto source = store_source(3);
    ASSERT_EQ(compile_and_run(source), 3);
    HostJit jit = make();
    flip(entry_of(jit, "damage", source) / "kernel.so", 100);
    cache_env_.set((dir_ / "first").string() + ":" + root_.string());
    EXPECT_EQ(compile_and_run(source), 3);
    EXPECT_EQ(names_in(dir_ / "first/quarantine").size(), 1u);
    EXPECT_EQ(names_in(dir_ / "first/cache").size(), 1u);
    compiler_.reset();
    EXPECT_EQ(compile_and_run(source), 3);
    EXPECT_EQ(compiler_.runs(), 0u);
}

TEST_F(HostForgery, WhatIsInMemoryDoesNotNeedTheDisk) {
    HostJit jit = make();
    const auto kernel = jit.compile("damage", store_source(8));
    fs::remove_all(root_);
    EXPECT_EQ(jit.compile("damage", store_source(8)), kernel);
    EXPECT_EQ(stored_by(jit, kernel), 8);
    EXPECT_EQ(compile_and_run(store_source(8)), 8) << "and another runtime builds it again";
}

}  // namespace
