// A backend without compiler or device: "compiling" copies source and flags into the artifact,
// "loading" copies the artifact into the kernel. Everything is counted, and a test can put its own
// step in place of the compiler.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <deep_jit/runtime/runtime.hpp>

namespace deep_jit_test {

struct FakeDevice {
    std::string arch = "fake-1";
};

struct FakeCompilerOptions {
    std::optional<std::string> level = {};
    std::optional<bool> fast = {};
    std::optional<std::string> arch = {};
    std::optional<std::vector<std::string>> flags = {};
    std::vector<std::string> extra_flags = {};
    std::optional<std::string> post_hook = {};

    static constexpr auto fields() {
        using O = FakeCompilerOptions;
        return std::make_tuple(&O::level, &O::fast, &O::arch, &O::flags, &O::extra_flags,
                               &O::post_hook);
    }
    static FakeCompilerOptions default_options(const deep_jit::Env& env, const FakeDevice&) {
        FakeCompilerOptions out;
        out.level = env.get("JIT_FAKE_LEVEL", "3");
        out.fast = false;
        out.flags = std::vector<std::string>{"-fake"};
        return out;
    }
    FakeCompilerOptions override_with(const FakeCompilerOptions& over) const {
        return deep_jit::override_options(*this, over);
    }
    std::vector<std::string> get_flags() const {
        std::vector<std::string> out{"-O" + level.value_or("?"), "-arch=" + arch.value_or("?")};
        if (fast.value_or(false))
            out.emplace_back("-fast");
        if (flags)
            out.insert(out.end(), flags->begin(), flags->end());
        out.insert(out.end(), extra_flags.begin(), extra_flags.end());
        return out;
    }
    deep_jit::json to_json() const {
        deep_jit::json out = deep_jit::json::object();
        out["level"] = level;
        out["fast"] = fast;
        out["arch"] = arch;
        out["extra_flags"] = extra_flags;
        return out;
    }
};

struct FakeLaunchOptions {
    std::optional<int> count = {};
    std::optional<int> stream = {};

    static constexpr auto fields() {
        return std::make_tuple(&FakeLaunchOptions::count, &FakeLaunchOptions::stream);
    }
    static FakeLaunchOptions default_options(const deep_jit::Env& env) {
        return {.count = {}, .stream = env.get<int>("JIT_FAKE_STREAM", 7)};
    }
    FakeLaunchOptions override_with(const FakeLaunchOptions& over) const {
        return deep_jit::override_options(*this, over);
    }
};

struct FakeKernel {
    std::string text;  ///< the artifact
    std::string key;
};

/// What a fake compiler writes for a source and flags.
inline std::string fake_artifact(std::string_view source, const std::vector<std::string>& flags) {
    return "ARTIFACT\n" + deep_jit::str::join(flags, "\n") + "\n--\n" + std::string(source);
}

/// What the last launch was given; taken before launch() returns, as a device would.
struct FakeLaunch {
    std::string kernel;
    FakeLaunchOptions effective;
    std::vector<std::string> arguments;
};

/// Counters of the process; a test resets them.
struct FakeCounts {
    std::atomic<int> builds{0}, loads{0}, launches{0}, identities{0}, directory_loads{0};
};

struct FakeBackend {
    using Device = FakeDevice;
    using CompilerOptions = FakeCompilerOptions;
    using LaunchOptions = FakeLaunchOptions;
    using Kernel = FakeKernel;
    using Request = deep_jit::BuildRequest<FakeCompilerOptions>;

    inline static FakeCounts counts;
    /// Runs instead of the compiler when set; gets the request and what would be written.
    inline static std::function<void(const Request&, std::string& artifact)> on_build;
    inline static std::function<void(const deep_jit::LoadRequest&)> on_load;
    inline static std::string identity = "fake compiler 1.0";
    inline static std::string hook_content;

    static void reset() {
        counts.builds = counts.loads = counts.launches = 0;
        counts.identities = counts.directory_loads = 0;
        on_build = nullptr;
        on_load = nullptr;
        identity = "fake compiler 1.0";
        hook_content.clear();
    }

    FakeBackend(const deep_jit::Config&, const deep_jit::Env&,
                const std::vector<std::filesystem::path>&, FakeDevice& owner)
        : device(owner) {}

    static deep_jit::EntryFiles entry_files() { return {"kernel.fake", "kernel.bin"}; }

    std::string compiler_hash() const {
        ++counts.identities;
        return deep_jit::hash::get_hex_digest(identity);
    }
    CompilerOptions resolve(CompilerOptions options) const {
        if (!options.arch)
            options.arch = device.arch;
        return options;
    }
    std::vector<std::string> key_flags(const CompilerOptions& options) const {
        return options.get_flags();
    }
    std::string key_hook(const CompilerOptions& options) const {
        return options.post_hook ? deep_jit::encode_list({*options.post_hook, hook_content}) : "";
    }
    deep_jit::json build(const Request& request) const {
        ++counts.builds;
        const auto source = deep_jit::read(request.directory / "kernel.fake");
        std::string artifact = fake_artifact(source, request.options.get_flags());
        if (on_build)
            on_build(request, artifact);
        deep_jit::write_file_sync(request.directory / "kernel.bin", artifact);
        deep_jit::json meta = deep_jit::json::object();
        meta["compiler"] = identity;
        return meta;
    }
    static std::shared_ptr<Kernel> load(const deep_jit::LoadRequest& request,
                                        const deep_jit::Env&) {
        ++counts.loads;
        if (on_load)
            on_load(request);
        return std::make_shared<Kernel>(Kernel{std::string(request.artifact), request.key});
    }
    static std::shared_ptr<Kernel> load(const std::filesystem::path& directory,
                                        const deep_jit::Env&) {
        ++counts.directory_loads;
        return std::make_shared<Kernel>(Kernel{deep_jit::read(directory / "kernel.bin"), ""});
    }

    inline static FakeLaunch last_launch;

    void launch(const Kernel& kernel, const LaunchOptions& defaults, const LaunchOptions& overrides,
                const deep_jit::Arguments& arguments) const {
        ++counts.launches;
        last_launch = {kernel.text, defaults.override_with(overrides), {}};
        for (std::size_t i = 0; i < arguments.count; ++i)
            last_launch.arguments.emplace_back(static_cast<const char*>(arguments.pointers[i]),
                                               arguments.infos[i].size);
    }

    FakeDevice& device;
};

static_assert(deep_jit::Backend<FakeBackend>);

using FakeRuntime = deep_jit::Runtime<FakeBackend>;

/// The artifact that `source` must give under the runtime's defaults and these options.
inline std::string expected_artifact(const FakeRuntime& runtime, std::string_view source,
                                     const FakeCompilerOptions& options = {}) {
    return fake_artifact(
        source, runtime.backend.resolve(runtime.default_compiler_options.override_with(options))
                    .get_flags());
}

}  // namespace deep_jit_test
