// Runtime<B> behind the interface that the Python objects use; for any backend.
//
// Of a backend it takes, beside what Runtime needs, what is there of
//   B::kName                                         "cuda"
//   B::current_stream(), B::synchronize(stream)      where streams are addresses
//   S::default_stream(), synchronize(), idle()       of a stream type S that is a class
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <deep_jit/python/interface.hpp>
#include <deep_jit/python/values.hpp>
#include <deep_jit/runtime/runtime.hpp>

namespace deep_jit {
namespace [[gnu::visibility("hidden")]] python {

namespace detail {

template <typename Options>
using StreamOf = typename decltype(Options::stream)::value_type;

template <typename Stream>
class StreamObject final : public AnyStream {
public:
    explicit StreamObject(Stream its_stream) : stream(std::move(its_stream)) {}
    ~StreamObject() override {
        // Its launches may still use what is kept.
        try {
            synchronize();
        } catch (...) {  // NOLINT: nobody is left to hear of it
        }
    }
    bool idle() const override { return stream.idle(); }

    Stream stream;

protected:
    void wait() override { stream.synchronize(); }
};

/// Names of the fields of compiler options, in the order of `fields()`: those of `to_json()`.
template <typename Options>
const std::vector<std::string>& option_names() {
    static const auto names = [] {
        std::vector<std::string> out;
        const json members = Options().to_json();
        for (const auto& [name, value] : *members.template get_if<json::object_t>())
            out.push_back(name == "use_fast_math" ? "fast_math" : name);
        DJ_HOST_ASSERT(out.size() == std::tuple_size_v<decltype(Options::fields())>);
        return out;
    }();
    return names;
}

template <typename Options>
void set_option(Options& options, PyObject* keyword, PyObject* value) {
    const auto name = text_of(keyword, "an option's name");
    const auto& names = option_names<Options>();
    std::size_t index = 0;
    bool found = false;
    deep_jit::detail::for_each_field<Options>([&](auto field) {
        if (names[index++] == name) {
            assign(options.*field, value, name);
            found = true;
        }
    });
    if (!found)
        raise(PyExc_TypeError, "there is no compiler option '{}'; the options are: {}", name,
              str::join(names, ", "));
}

template <typename Options>
Options read_options(const Keywords& keywords) {
    Options out;
    for (Py_ssize_t i = 0; i < keywords.size(); ++i)
        set_option(out, PyTuple_GET_ITEM(keywords.names, i), keywords.values[i]);
    return out;
}

template <typename Options>
constexpr unsigned supported_settings() {
    using S = LaunchSettings;
    unsigned out = 1U << S::kGrid | 1U << S::kStream;
    const auto add = [&](bool there, S::Field field) { out |= there ? 1U << field : 0U; };
    add(
        requires(Options o) { o.block_dim; }, S::kBlock);
    add(
        requires(Options o) { o.cluster_dim; }, S::kCluster);
    add(
        requires(Options o) { o.num_smem_bytes; } || requires(Options o) { o.num_ubuf_bytes; },
        S::kSmem);
    add(
        requires(Options o) { o.cooperative; }, S::kCooperative);
    add(
        requires(Options o) { o.enable_pdl; }, S::kPdl);
    add(
        requires(Options o) { o.nonportable_cluster_size_allowed; }, S::kNonportableCluster);
    add(
        requires(Options o) { o.num_threads; }, S::kNumThreads);
    add(
        requires(Options o) { o.num_launch_timeout_secs; }, S::kTimeout);
    return out;
}

template <typename Options>
Options launch_options(const LaunchSettings& from, const std::uintptr_t* stream) {
    using S = LaunchSettings;
    using Stream = StreamOf<Options>;
    Options out;
    [[maybe_unused]] const auto set_dim = [&](auto& field, S::Field which, const Dim& dim) {
        if (from.has(which))
            field.emplace(dim.x, dim.y, dim.z);
    };
    if constexpr (requires { out.grid_dim; })
        set_dim(out.grid_dim, S::kGrid, from.grid);
    if constexpr (requires { out.block_dim; })
        set_dim(out.block_dim, S::kBlock, from.block);
    if constexpr (requires { out.cluster_dim; })
        set_dim(out.cluster_dim, S::kCluster, from.cluster);
    if constexpr (requires { out.num_blocks; }) {
        if (from.has(S::kGrid)) {
            if (from.grid.y != 1 || from.grid.z != 1)
                throw LaunchError("The grid of this backend has one dimension");
            out.num_blocks = static_cast<int>(from.grid.x);
        }
    }
    if constexpr (requires { out.num_smem_bytes; }) {
        if (from.has(S::kSmem))
            out.num_smem_bytes = from.smem;
    } else if constexpr (requires { out.num_ubuf_bytes; }) {
        if (from.has(S::kSmem))
            out.num_ubuf_bytes = from.smem;
    }
    if constexpr (std::is_pointer_v<Stream>) {
        if (stream != nullptr)
            out.stream = reinterpret_cast<Stream>(*stream);
        else if (from.has(S::kStream))
            out.stream = reinterpret_cast<Stream>(from.stream);
    } else if (from.has(S::kStream)) {
        out.stream = static_cast<const StreamObject<Stream>&>(*from.stream_object).stream;
    }
    if constexpr (requires { out.cooperative; })
        if (from.has(S::kCooperative))
            out.cooperative = from.cooperative;
    if constexpr (requires { out.enable_pdl; })
        if (from.has(S::kPdl))
            out.enable_pdl = from.pdl;
    if constexpr (requires { out.nonportable_cluster_size_allowed; })
        if (from.has(S::kNonportableCluster))
            out.nonportable_cluster_size_allowed = from.nonportable_cluster;
    if constexpr (requires { out.num_threads; })
        if (from.has(S::kNumThreads))
            out.num_threads = from.num_threads;
    if constexpr (requires { out.num_launch_timeout_secs; })
        if (from.has(S::kTimeout))
            out.num_launch_timeout_secs = from.timeout;
    return out;
}

/// Answers of a device under the names of its questions.
template <typename Device>
json device_facts(const Device& device) {
    json out = json::object();
    if constexpr (requires { device.get_prop().name; })
        out["name"] = std::string(device.get_prop().name);
    if constexpr (requires { device.get_prop().soc_name; })
        out["soc_name"] = std::string(device.get_prop().soc_name);
    if constexpr (requires { device.get_index(); })
        out["index"] = device.get_index();
    if constexpr (requires { device.get_arch(); })
        out["arch"] = device.get_arch();
    if constexpr (requires { device.get_npu_arch(); })
        out["arch"] = device.get_npu_arch();
    if constexpr (requires { device.get_arch_pair(); })
        out["compute_capability"] =
            json(json::array_t{device.get_arch_major(), device.get_arch_minor()});
    if constexpr (requires { device.get_num_sms(); })
        out["num_sms"] = device.get_num_sms();
    if constexpr (requires { device.get_num_l2_cache_bytes(); })
        out["num_l2_cache_bytes"] = device.get_num_l2_cache_bytes();
    if constexpr (requires { device.get_num_smem_bytes(); })
        out["num_smem_bytes"] = device.get_num_smem_bytes();
    if constexpr (requires { device.get_prop().totalGlobalMem; })
        out["num_memory_bytes"] = device.get_prop().totalGlobalMem;
    if constexpr (requires { device.get_clock_rate(); })
        out["clock_rate"] = device.get_clock_rate();
    return out;
}

}  // namespace detail

template <Backend B>
class KernelAdapter final : public AnyKernel {
public:
    KernelAdapter(Runtime<B>& runtime, std::shared_ptr<typename B::Kernel> kernel)
        : runtime_(runtime), kernel_(std::move(kernel)) {}

    std::optional<std::vector<std::uint32_t>> param_sizes() const override {
        if constexpr (requires { kernel_->param_sizes(); }) {
            const auto& sizes = kernel_->param_sizes();
            return std::vector<std::uint32_t>(sizes.begin(), sizes.end());
        } else if constexpr (requires { kernel_->param_size(0); }) {
            std::vector<std::uint32_t> out;
            for (std::size_t i = 0; i < kernel_->num_params(); ++i)
                out.push_back(static_cast<std::uint32_t>(kernel_->param_size(i)));
            return out;
        } else {
            return std::nullopt;
        }
    }

    std::string full_name() const override {
        std::string name = kernel_->name();
        int status = 0;
        const std::unique_ptr<char, void (*)(void*)> text(
            abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
        return status == 0 && name.starts_with("_Z") ? std::string(text.get()) : std::string();
    }

    std::uintptr_t handle() const override {
        if constexpr (requires { kernel_->kernel_handle; })
            return reinterpret_cast<std::uintptr_t>(kernel_->kernel_handle);
        else
            return 0;
    }

    void launch(const LaunchSettings& settings, const std::uintptr_t* stream,
                const Arguments& arguments) const override {
        runtime_.backend.launch(*kernel_, runtime_.default_launch_options,
                                detail::launch_options<typename B::LaunchOptions>(settings, stream),
                                arguments);
    }

private:
    Runtime<B>& runtime_;
    std::shared_ptr<typename B::Kernel> kernel_;
};

template <Backend B>
class RuntimeAdapter final : public AnyRuntime {
public:
    using CompilerOptions = typename B::CompilerOptions;
    using Stream = detail::StreamOf<typename B::LaunchOptions>;

    /// `runtime` may own the runtime, or not.
    explicit RuntimeAdapter(std::shared_ptr<Runtime<B>> runtime) : runtime_(std::move(runtime)) {
        if constexpr (requires { B::kName; })
            backend = B::kName;
        space = backend == "cuda" ? Space::cuda : backend == "ascend" ? Space::npu : Space::cpu;
        supported = detail::supported_settings<typename B::LaunchOptions>();
        streams_are_objects = !std::is_pointer_v<Stream>;
    }

    std::shared_ptr<void> compile(std::string_view tag, std::string_view source,
                                  const Keywords& options) override {
        return runtime_->compile(tag, source, detail::read_options<CompilerOptions>(options));
    }
    std::unique_ptr<AnyKernel> wrap(std::shared_ptr<void> kernel) override {
        return std::make_unique<KernelAdapter<B>>(
            *runtime_, std::static_pointer_cast<typename B::Kernel>(std::move(kernel)));
    }
    std::filesystem::path compile_without_load(std::string_view tag, std::string_view source,
                                               const Keywords& options) override {
        return runtime_->compile_without_load(tag, source,
                                              detail::read_options<CompilerOptions>(options));
    }
    std::string cache_key(std::string_view source, const Keywords& options) override {
        const auto read = detail::read_options<CompilerOptions>(options);
        const AllowThreads allow;  // it may ask the compiler for its version
        return runtime_->cache_key(source, read);
    }
    void set_defaults(const Keywords& options) override {
        runtime_->default_compiler_options = runtime_->default_compiler_options.override_with(
            detail::read_options<CompilerOptions>(options));
    }

    json config() const override {
        json out = runtime_->config.to_json();
        out["env_prefix"] = runtime_->config.env_prefix;
        return out;
    }
    std::vector<std::filesystem::path> cache_dirs() const override {
        return runtime_->disk_cache.paths;
    }
    json default_options() const override {
        const auto& names = detail::option_names<CompilerOptions>();
        json out = runtime_->default_compiler_options.to_json();
        json::object_t members = *out.template get_if<json::object_t>();
        for (std::size_t i = 0; i < members.size(); ++i) members[i].first = names[i];
        return json(std::move(members));
    }
    json compiler() const override {
        const AllowThreads allow;
        return runtime_->backend.compiler_info.to_json();
    }
    json device() const override {
        const AllowThreads allow;
        return detail::device_facts(runtime_->device);
    }
    json statistics() const override {
        if constexpr (requires { runtime_->statistics().to_json(); })
            return runtime_->statistics().to_json();
        else
            return json::object();
    }

    int launch_device() const override {
        if constexpr (requires { B::launch_device(); })
            return B::launch_device();
        else
            return -1;
    }
    std::uintptr_t current_stream() const override {
        if constexpr (std::is_pointer_v<Stream> && requires { B::current_stream(); })
            return reinterpret_cast<std::uintptr_t>(B::current_stream());
        else
            return 0;
    }
    void synchronize(std::uintptr_t stream) const override {
        const AllowThreads allow;
        if constexpr (std::is_pointer_v<Stream> && requires(Stream s) { B::synchronize(s); })
            B::synchronize(reinterpret_cast<Stream>(stream));
        else
            throw LaunchError(
                "This backend cannot wait for a stream; use the library of the "
                "stream");
    }
    std::shared_ptr<AnyStream> default_stream() const override {
        if constexpr (requires { Stream::default_stream(); }) {
            // Never destroyed: kernels may run until the process is gone.
            static const auto* stream = new std::shared_ptr<AnyStream>(
                std::make_shared<detail::StreamObject<Stream>>(Stream::default_stream()));
            return *stream;
        } else {
            return nullptr;
        }
    }
    std::shared_ptr<AnyStream> make_stream() const override {
        if constexpr (std::is_pointer_v<Stream>)
            return nullptr;
        else
            return std::make_shared<detail::StreamObject<Stream>>(Stream());
    }

private:
    std::shared_ptr<Runtime<B>> runtime_;
};

// clang-format off
}  // namespace deep_jit::python
}  // namespace deep_jit
