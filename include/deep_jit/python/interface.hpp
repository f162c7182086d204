// A runtime and its kernels without their backend's type: what the Python objects talk to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <deep_jit/python/array.hpp>
#include <deep_jit/python/object.hpp>
#include <deep_jit/runtime/arguments.hpp>
#include <deep_jit/utils/json.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

/// A stream that is an object, not an address. Keeps the memory that its launches use.
class AnyStream {
public:
    virtual ~AnyStream() = default;
    virtual bool idle() const = 0;

    /// Waits for all launches. Needs the GIL, and lets it go meanwhile.
    void synchronize() {
        // What is launched while this waits is kept by the emptied list.
        const KeptObjects done = std::exchange(kept_, {});
        const AllowThreads allow;
        wait();
    }

    /// Before a launch: lets go of what ended launches used.
    void release_ended() {
        if (kept_.size() > kMostKept)
            synchronize();
        else if (!kept_.empty() && idle())
            const KeptObjects done = std::exchange(kept_, {});
    }
    void keep(KeptObjects objects) {
        for (auto& object : objects) kept_.push_back(std::move(object));
    }

protected:
    virtual void wait() = 0;

private:
    static constexpr std::size_t kMostKept = 4096;

    KeptObjects kept_;
};

struct Dim {
    unsigned x = 1, y = 1, z = 1;
};

/// How to launch, as far as it is said; the rest is the runtime's defaults.
struct LaunchSettings {
    enum Field : unsigned {
        kGrid,
        kBlock,
        kCluster,
        kSmem,
        kStream,
        kCooperative,
        kPdl,
        kNonportableCluster,
        kNumThreads,
        kTimeout,
        kNumFields,
    };

    unsigned set = 0;  ///< bit by bit: which fields are
    Dim grid, block, cluster;
    int smem = 0;
    std::uintptr_t stream = 0;                 ///< of backends whose streams are addresses
    std::shared_ptr<AnyStream> stream_object;  ///< of the others
    Ref stream_owner;
    bool cooperative = false, pdl = false, nonportable_cluster = false;
    int num_threads = 0, timeout = 0;

    bool has(Field field) const { return (set >> field & 1U) != 0; }
};

class AnyKernel {
public:
    virtual ~AnyKernel() = default;
    /// Bytes of each parameter, if the compiled kernel tells. May need a device.
    virtual std::optional<std::vector<std::uint32_t>> param_sizes() const = 0;
    /// The kernel's C++ name with its parameter types; empty when it is not known.
    virtual std::string full_name() const = 0;
    /// The driver's handle, or 0.
    virtual std::uintptr_t handle() const = 0;
    /// `stream`: overrides that of the settings. Does not need the GIL.
    virtual void launch(const LaunchSettings& settings, const std::uintptr_t* stream,
                        const Arguments& arguments) const = 0;
};

/// Values of keyword arguments and their names, as vectorcall passes them.
struct Keywords {
    PyObject* const* values = nullptr;
    PyObject* names = nullptr;  ///< a tuple, or null

    Py_ssize_t size() const { return names != nullptr ? PyTuple_GET_SIZE(names) : 0; }
};

class AnyRuntime {
public:
    virtual ~AnyRuntime() = default;

    std::string backend;       ///< "host", "cuda", ...
    Space space = Space::cpu;  ///< whose memory its kernels use
    unsigned supported = 0;    ///< LaunchSettings' fields that it has, bit by bit
    bool streams_are_objects = false;

    /// A loaded kernel; one address for each. Keywords are compiler options.
    virtual std::shared_ptr<void> compile(std::string_view tag, std::string_view source,
                                          const Keywords& options) = 0;
    /// What `compile` returned, for launching.
    virtual std::unique_ptr<AnyKernel> wrap(std::shared_ptr<void> kernel) = 0;
    virtual std::filesystem::path compile_without_load(std::string_view tag,
                                                       std::string_view source,
                                                       const Keywords& options) = 0;
    virtual std::string cache_key(std::string_view source, const Keywords& options) = 0;
    /// Sets fields of the default compiler options.
    virtual void set_defaults(const Keywords& options) = 0;

    virtual json config() const = 0;
    virtual std::vector<std::filesystem::path> cache_dirs() const = 0;
    virtual json default_options() const = 0;
    virtual json compiler() const = 0;
    virtual json device() const = 0;
    virtual json statistics() const = 0;

    /// Index of the device that a launch of this thread goes to, or -1 when that does not matter.
    virtual int launch_device() const = 0;
    /// The stream that launches without one use: an address, where streams are.
    virtual std::uintptr_t current_stream() const = 0;
    virtual void synchronize(std::uintptr_t stream) const = 0;
    /// Null where streams are addresses.
    virtual std::shared_ptr<AnyStream> default_stream() const = 0;
    virtual std::shared_ptr<AnyStream> make_stream() const = 0;
};

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
