// A backend that compiles and loads nothing, so that what a benchmark measures is the runtime. Its
// options have as many fields, of the same types, as those of the CUDA backend.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <deep_jit/runtime/runtime.hpp>

namespace benchmarks {

struct NullDevice {};

struct NullCompilerOptions {
    std::optional<std::string> optimize_level = {};
    std::optional<bool> fast_math = {};
    std::optional<bool> verbose = {};
    std::optional<int> register_usage_level = {};
    std::optional<bool> check_no_spills = {};
    std::optional<bool> check_no_local_memory = {};
    std::optional<bool> with_line_info = {};
    std::optional<bool> dump_ptx = {};
    std::optional<bool> dump_sass = {};
    std::optional<std::string> arch = {};
    std::optional<std::vector<std::string>> flags = {};
    std::vector<std::string> extra_flags = {};
    std::optional<std::string> post_hook = {};

    static constexpr auto fields() {
        using O = NullCompilerOptions;
        return std::tuple(&O::optimize_level, &O::fast_math, &O::verbose, &O::register_usage_level,
                          &O::check_no_spills, &O::check_no_local_memory, &O::with_line_info,
                          &O::dump_ptx, &O::dump_sass, &O::arch, &O::flags, &O::extra_flags,
                          &O::post_hook);
    }
    static NullCompilerOptions default_options(const deep_jit::Env&, const NullDevice&) {
        NullCompilerOptions out;
        out.optimize_level = "3";
        out.fast_math = out.verbose = out.check_no_spills = out.check_no_local_memory = false;
        out.with_line_info = out.dump_ptx = out.dump_sass = false;
        out.register_usage_level = 10;
        out.arch = "90a";
        out.flags = {"-std=c++20", "--compiler-options=-fPIC", "--compiler-options=-fconcepts",
                     "--expt-relaxed-constexpr", "--expt-extended-lambda"};
        return out;
    }
    NullCompilerOptions override_with(const NullCompilerOptions& over) const {
        return deep_jit::override_options(*this, over);
    }
    deep_jit::json to_json() const { return deep_jit::json::object(); }
};

struct NullLaunchOptions {
    std::optional<int> stream = {};

    static constexpr auto fields() { return std::tuple(&NullLaunchOptions::stream); }
    static NullLaunchOptions default_options(const deep_jit::Env&) { return {}; }
    NullLaunchOptions override_with(const NullLaunchOptions& over) const {
        return deep_jit::override_options(*this, over);
    }
};

struct NullBackend {
    struct Kernel {};
    using Device = NullDevice;
    using CompilerOptions = NullCompilerOptions;
    using LaunchOptions = NullLaunchOptions;

    NullBackend(const deep_jit::Config&, const deep_jit::Env&,
                const std::vector<std::filesystem::path>&, NullDevice&) {}

    static deep_jit::EntryFiles entry_files() { return {"kernel.txt", "kernel.bin"}; }
    std::string compiler_hash() const { return "none"; }
    CompilerOptions resolve(const CompilerOptions& options) const { return options; }
    std::vector<std::string> key_flags(const CompilerOptions& options) const {
        std::vector<std::string> out = *options.flags;
        out.push_back("-O" + *options.optimize_level);
        out.insert(out.end(), options.extra_flags.begin(), options.extra_flags.end());
        return out;
    }
    std::string key_hook(const CompilerOptions&) const { return {}; }
    deep_jit::json build(const deep_jit::BuildRequest<CompilerOptions>& request) const {
        deep_jit::write_file_sync(request.directory / "kernel.bin", "nothing");
        return deep_jit::json::object();
    }
    static std::shared_ptr<Kernel> load(const deep_jit::LoadRequest&, const deep_jit::Env&) {
        return std::make_shared<Kernel>();
    }
    static std::shared_ptr<Kernel> load(const std::filesystem::path&, const deep_jit::Env&) {
        return std::make_shared<Kernel>();
    }
    void launch(const Kernel&, const LaunchOptions&, const LaunchOptions&,
                const deep_jit::Arguments&) const {}
};

static_assert(deep_jit::Backend<NullBackend>);

}  // namespace benchmarks
