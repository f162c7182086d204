// Questions to the NPU that a runtime compiles for.
#pragma once

#include <cstdint>
#include <string>

#include <deep_jit/backend/ascend/driver.hpp>
#include <deep_jit/backend/ascend/soc.hpp>
#include <deep_jit/utils/lazy.hpp>

namespace deep_jit::ascend {

/// Properties of a device.
struct DeviceProp {
    std::string soc_name;  ///< such as "Ascend910B2"
    std::string npu_arch;  ///< such as "2201"; empty when neither ACL nor this library knows
    std::int64_t num_aicore_cores = 0;
    std::int64_t num_cube_cores = 0;
    std::int64_t num_vec_cores = 0;
    std::int64_t num_ubuf_bytes_per_vec_core = 0;
    std::int64_t num_l2_cache_bytes = 0;
};

/// The device that is current when it is first asked something: the one of the calling thread,
/// else device 0. All its answers are of that moment and that device. Queries throw
/// ToolchainError when there is no ACL or no device. Thread-safe.
class Device {
public:
    const DeviceProp& get_prop() const { return snapshot_->prop; }
    /// Number of the device.
    int get_index() const { return snapshot_->index; }

    /// Such as "2201", of ACL from CANN 9.1 on, else by the name of the processor. Throws
    /// ToolchainError for an unknown processor.
    std::string get_npu_arch() const {
        const auto& prop = get_prop();
        if (prop.npu_arch.empty())
            deep_jit::detail::throw_error<ToolchainError>(
                "The architecture of this NPU, '{}', is not known", prop.soc_name);
        return prop.npu_arch;
    }

    /// AI cores; the same as `get_num_aicore_cores`.
    int get_num_sms() const { return get_num_aicore_cores(); }
    int get_num_aicore_cores() const { return static_cast<int>(get_prop().num_aicore_cores); }
    int get_num_vec_cores() const { return static_cast<int>(get_prop().num_vec_cores); }
    int get_num_cube_cores() const { return static_cast<int>(get_prop().num_cube_cores); }
    int get_num_vec_cores_per_ai_core() const {
        const int cores = get_num_aicore_cores();
        return cores > 0 ? get_num_vec_cores() / cores : 0;
    }
    /// Bytes of unified buffer that kernels may use; on Ascend 950, what SIMT kernels may use.
    int get_num_ubuf_bytes_per_vec_core() const {
        return static_cast<int>(get_prop().num_ubuf_bytes_per_vec_core);
    }
    int get_num_l2_cache_bytes() const { return static_cast<int>(get_prop().num_l2_cache_bytes); }

private:
    struct Snapshot {
        int index = 0;
        DeviceProp prop;
    };

    static Snapshot take() {
        driver::initialize();
        std::uint32_t count = 0;
        driver::check<ToolchainError>(driver::lazy_aclrtGetDeviceCount(&count),
                                      "aclrtGetDeviceCount");
        if (count == 0)
            throw ToolchainError("There is no NPU in this machine, or none is visible");
        Snapshot out;
        const int current = driver::current_device();
        out.index = current >= 0 ? current : 0;
        const char* name = driver::lazy_aclrtGetSocName();
        if (name == nullptr)
            throw ToolchainError("ACL does not tell the name of the NPU (aclrtGetSocName)");
        out.prop.soc_name = name;
        fill(out);
        return out;
    }

    static void fill(Snapshot& out) {
        using acl::DeviceAttribute;
        // An attribute that this version of ACL does not know is 0.
        const auto attribute = [&](DeviceAttribute which) {
            std::int64_t value = 0;
            const auto code = driver::lazy_aclrtGetDeviceInfo(static_cast<std::uint32_t>(out.index),
                                                              which, &value);
            if (code == acl::kSuccess)
                return value;
            driver::error_text(code);  // takes the message away: nobody is to find it later
            return std::int64_t(0);
        };
        auto& prop = out.prop;
        const auto soc = find_soc(prop.soc_name);
        const auto arch = attribute(DeviceAttribute::kNpuArch);
        prop.npu_arch = arch > 0 ? str::to_text(arch) : std::string(soc ? soc->arch : "");
        prop.num_aicore_cores = attribute(DeviceAttribute::kAiCores);
        prop.num_cube_cores = attribute(DeviceAttribute::kCubeCores);
        prop.num_vec_cores = attribute(DeviceAttribute::kVectorCores);
        prop.num_l2_cache_bytes = attribute(DeviceAttribute::kL2Bytes);
        prop.num_ubuf_bytes_per_vec_core = attribute(DeviceAttribute::kUbufPerVectorCore);
        if (prop.num_ubuf_bytes_per_vec_core == 0 && soc)
            prop.num_ubuf_bytes_per_vec_core = soc->ubuf_bytes;
    }

    LazyValue<Snapshot> snapshot_{[] { return take(); }};
};

/// "NPU 1 (Ascend910B2)", for messages; never fails.
inline std::string describe_device(int index) {
    const auto get = driver::lazy_aclrtGetSocName.try_get();
    const char* name = get != nullptr ? get() : nullptr;
    return str::format("NPU {} ({})", index, name != nullptr ? name : "unknown");
}

}  // namespace deep_jit::ascend
