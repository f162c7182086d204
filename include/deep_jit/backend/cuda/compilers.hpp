// The compilers of a runtime: looked for when first needed, and who they are.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <deep_jit/backend/cuda/device.hpp>
#include <deep_jit/backend/cuda/nvcc.hpp>
#include <deep_jit/backend/cuda/nvrtc_identity.hpp>
#include <deep_jit/backend/cuda/nvrtc_library.hpp>
#include <deep_jit/backend/cuda/options.hpp>
#include <deep_jit/backend/cuda/toolkit.hpp>
#include <deep_jit/cache/identity.hpp>
#include <deep_jit/utils/hash.hpp>
#include <deep_jit/utils/json.hpp>
#include <deep_jit/utils/lazy.hpp>

namespace deep_jit::cuda {

/// The toolkit of a runtime; looked for when one of these is first read.
struct LazyToolkit {
    LazyValue<std::filesystem::path> nvcc;
    LazyValue<std::optional<std::filesystem::path>> cuobjdump;
    LazyValue<Toolkit> found;
};

/// A compiler; looked for when first asked. Its version is remembered on disk, so that a warm
/// start runs no program and opens no library.
struct CompilerInfo {
    LazyValue<std::filesystem::path> path;  ///< of NVCC, or of NVRTC's library
    LazyValue<std::string> version;  ///< complete output of `nvcc --version`, or NVRTC's identity

    std::string get_hash() const { return hash::get_hex_digest(version.get()); }

    json to_json() const {
        json out = json::object();
        out["path"] = path.get().string();
        out["version"] = version.get();
        return out;
    }
};

/// NVCC and NVRTC, as the environment has them. Copies share what was found.
class Compilers {
public:
    Compilers(const Env& env, const std::vector<std::filesystem::path>& roots) {
        using std::filesystem::path;
        const LazyValue<Toolkit> found([env] { return find_cuda_toolkit(env); });
        toolkit_.found = found;
        toolkit_.nvcc = LazyValue<path>([found] { return found->nvcc; });
        toolkit_.cuobjdump = LazyValue<std::optional<path>>([found] { return found->cuobjdump; });
        nvcc_.path = toolkit_.nvcc;
        nvcc_.version = LazyValue<std::string>([found, roots] {
            const auto& nvcc = found->nvcc;
            auto version =
                remember_identity(roots, nvcc, "--version", [&] { return ask_nvcc_version(nvcc); });
            check_nvcc_version(nvcc, version);
            return version;
        });

        const LazyValue<NvrtcLibrary> library([env] { return find_nvrtc(env); });
        library_ = library;
        nvrtc_.path = LazyValue<path>([library] { return library->path; });
        nvrtc_.version =
            LazyValue<std::string>([library, roots] { return nvrtc::identity(*library, roots); });

        has_nvcc_ = LazyValue<bool>([version = nvcc_.version] {
            try {
                return !version.get().empty();
            } catch (const ToolchainError&) {
                return false;
            }
        });
        const auto name = CompilerOptions::default_compiler(env);
        if (name == "auto") {
            const auto pick =
                [ has_nvcc = has_nvcc_, nvcc = nvcc_, other = nvrtc_ ]() -> const auto& {
                return has_nvcc ? nvcc : other;
            };
            chosen_.path = LazyValue<path>([pick] { return pick().path.get(); });
            chosen_.version = LazyValue<std::string>([pick] { return pick().version.get(); });
        } else {
            chosen_ = info(name == "nvrtc");
        }
        base_hash_ = LazyValue<std::string>([chosen = chosen_] {
            try {
                return chosen.get_hash();
            } catch (const ToolchainError&) {
                // Kernels that name the other compiler can do without this one.
                return std::string();
            }
        });
    }

    const LazyToolkit& toolkit() const { return toolkit_; }
    const LazyValue<NvrtcLibrary>& nvrtc() const { return library_; }
    /// True when there is an NVCC that can be used.
    bool has_nvcc() const { return has_nvcc_; }

    const CompilerInfo& info(bool of_nvrtc) const { return of_nvrtc ? nvrtc_ : nvcc_; }
    /// Of the one that `JIT_COMPILER` says.
    const CompilerInfo& chosen() const { return chosen_; }
    /// Its hash; empty when there is no such compiler.
    const std::string& base_hash() const { return base_hash_; }

private:
    LazyToolkit toolkit_;
    LazyValue<NvrtcLibrary> library_;
    CompilerInfo nvcc_, nvrtc_, chosen_;
    LazyValue<bool> has_nvcc_;
    LazyValue<std::string> base_hash_;
};

}  // namespace deep_jit::cuda
