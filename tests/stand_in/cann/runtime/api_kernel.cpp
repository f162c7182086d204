// Loading, look-up and launch of kernels.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "runtime.hpp"

using namespace dj_stand_in;

namespace {

constexpr std::size_t kMaxName = 4095;
constexpr std::uint64_t kUb = 256 * 1024, kSimtCache = 32 * 1024;

/// What a launch's configuration says; -1 where it says nothing.
struct Attributes {
    std::int64_t dynamic_ub = -1;
    std::int64_t timeout = -1;
    std::int64_t timeout_us = -1;
    std::int64_t schem_mode = -1;
};

void refuse_unless(bool condition, const char* message) {
    require(condition, ACL_ERROR_RT_PARAM_INVALID, message);
}

Attributes read_config(const aclrtLaunchKernelCfg* config) {
    Attributes out;
    if (config == nullptr)
        return out;
    refuse_unless(config->attrs != nullptr, "cfg->attrs is NULL.");
    for (size_t i = 0; i < config->numAttrs; ++i) {
        const auto& [id, value] = config->attrs[i];
        switch (static_cast<int>(id)) {
            case ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE:
                refuse_unless(value.schemMode < 2, "schemMode is neither 0 nor 1.");
                out.schem_mode = value.schemMode;
                break;
            case ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE: out.dynamic_ub = value.dynUBufSize; break;
            case ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE:
            case ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET: break;
            case ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH:
                refuse_unless(value.isBlockTaskPrefetch < 2, "A flag is neither 0 nor 1.");
                break;
            case ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP:
                refuse_unless(value.isDataDump < 2, "A flag is neither 0 nor 1.");
                break;
            case ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT: out.timeout = value.timeout; break;
            case ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US:
                out.timeout_us =
                    static_cast<std::int64_t>((std::uint64_t{value.timeoutUs.timeoutHigh} << 32) |
                                              value.timeoutUs.timeoutLow);
                break;
            default: fail(ACL_ERROR_RT_PARAM_INVALID, "The launch attribute is unknown.");
        }
    }
    refuse_unless(out.timeout < 0 || out.timeout_us < 0, "The timeout is given in two units.");
    return out;
}

void check_dynamic_ub(const Soc& soc, const KernelEntry& entry, std::int64_t bytes) {
    if (!soc.is_950() || bytes <= 0)
        return;  // elsewhere the number is stored and not used
    refuse_unless(entry.vf_flag >= 2, "The kernel has no vector function for a dynamic UB.");
    const auto rounded = (static_cast<std::uint64_t>(bytes) + 127) / 128 * 128;
    refuse_unless(
        entry.vf_flag == 2 ? static_cast<std::uint64_t>(bytes) <= kUb : rounded <= kUb - kSimtCache,
        "The dynamic UB is larger than there is room.");
}

/// The timeout that counts: 0 and none are for ever.
std::optional<std::chrono::microseconds> timeout_of(const Attributes& attributes) {
    if (attributes.timeout > 0)
        return std::chrono::seconds(attributes.timeout);
    if (attributes.timeout_us > 0)
        return std::chrono::microseconds(attributes.timeout_us);
    return std::nullopt;
}

void fill_placeholders(std::vector<std::uint64_t>& arguments, size_t size,
                       const aclrtPlaceHolderInfo* places, size_t count) {
    require(places != nullptr || count == 0, ACL_ERROR_RT_PARAM_INVALID,
            "placeHolderArray is NULL.");
    auto* start = reinterpret_cast<char*>(arguments.data());
    for (size_t i = 0; i < count; ++i) {
        refuse_unless(places[i].addrOffset + sizeof(void*) <= size && places[i].dataOffset < size,
                      "A placeholder lies outside the arguments.");
        const char* data = start + places[i].dataOffset;
        std::memcpy(start + places[i].addrOffset, &data, sizeof(data));
    }
}

/// A failing load leaves the runtime as it was.
void load(Runtime& runtime, std::string_view bytes, aclrtBinHandle* out) {
    *out = runtime.binaries.add(bytes, runtime.settings.soc.arch);
    ++runtime.binary_loads;
}

std::shared_ptr<Binary> binary_of(Runtime& runtime, const void* handle) {
    require(handle != nullptr, ACL_ERROR_INVALID_PARAM, "binHandle is NULL.");
    auto binary = runtime.binaries.find(handle);
    require(binary != nullptr, ACL_ERROR_RT_INVALID_HANDLE, "The binary does not exist.");
    return binary;
}

const Function& function_of(Runtime& runtime, const void* handle) {
    require(handle != nullptr, ACL_ERROR_INVALID_PARAM, "funcHandle is NULL.");
    require(runtime.functions.count(handle) > 0, ACL_ERROR_RT_INVALID_HANDLE,
            "The function does not exist (any more).");
    return *static_cast<const Function*>(handle);
}

void record(Runtime& runtime, const Launch& launch, const Attributes& attributes,
            aclrtStream stream, bool has_config, std::string arguments) {
    Record out;
    out.name = launch.name;
    out.launch.num_blocks = launch.blocks;
    out.launch.stream = stream;
    out.launch.device = launch.device;
    out.launch.args_size = arguments.size();
    out.launch.has_config = has_config ? 1 : 0;
    out.launch.dyn_ubuf_size = attributes.dynamic_ub;
    out.launch.timeout = attributes.timeout;
    out.launch.timeout_us = attributes.timeout_us;
    out.launch.schem_mode = attributes.schem_mode;
    out.arguments = std::move(arguments);
    runtime.records.push_back(std::move(out));
}

}  // namespace

extern "C" {

aclError aclrtBinaryLoadFromFile(const char* path, aclrtBinaryLoadOptions*, aclrtBinHandle* out) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(path != nullptr && out != nullptr, ACL_ERROR_INVALID_PARAM, "A pointer is NULL.");
        std::ifstream in(path, std::ios::binary);
        refuse_unless(in.good(), "The file cannot be read.");
        load(runtime, std::string(std::istreambuf_iterator<char>(in), {}), out);
    });
}

aclError aclrtBinaryLoadFromData(const void* data, size_t length, const aclrtBinaryLoadOptions*,
                                 aclrtBinHandle* out) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(data != nullptr && out != nullptr, ACL_ERROR_INVALID_PARAM, "A pointer is NULL.");
        refuse_unless(length > 0, "length is 0.");
        load(runtime, std::string_view(static_cast<const char*>(data), length), out);
    });
}

aclError aclrtBinaryUnLoad(aclrtBinHandle handle) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        const auto binary = binary_of(runtime, handle);
        for (auto it = runtime.functions.begin(); it != runtime.functions.end();)
            it = it->second == binary ? runtime.functions.erase(it) : std::next(it);
        runtime.binaries.remove(handle);
        binary->library.reset();
    });
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle handle, const char* name,
                                aclrtFuncHandle* out) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(name != nullptr && out != nullptr, ACL_ERROR_INVALID_PARAM, "A pointer is NULL.");
        const auto binary = binary_of(runtime, handle);
        const int device = runtime.current_device();
        refuse_unless(std::strlen(name) <= kMaxName, "The kernel's name is too long.");
        auto* function = binary->find(name);
        if (function == nullptr)
            fail(ACL_ERROR_RT_INTERNAL_ERROR,
                 std::string("The binary has no kernel ") + name + ".");
        if (binary->device < 0)
            binary->device = device;
        runtime.functions[function] = binary;
        *out = function;
    });
}

aclError aclrtGetFunctionName(aclrtFuncHandle handle, uint32_t room, char* out) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(out != nullptr, ACL_ERROR_INVALID_PARAM, "name is NULL.");
        const auto& name = function_of(runtime, handle).name;
        refuse_unless(name.size() < room, "maxLen is too small.");
        std::memcpy(out, name.c_str(), name.size() + 1);
    });
}

aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle handle, uint32_t blocks, aclrtStream stream,
                                       aclrtLaunchKernelCfg* config, void* host_arguments,
                                       size_t size, aclrtPlaceHolderInfo* places, size_t count) {
    return call(__func__, [&](Runtime& runtime, auto&) {
        require(handle != nullptr, ACL_ERROR_INVALID_PARAM, "funcHandle is NULL.");
        require(host_arguments != nullptr, ACL_ERROR_INVALID_PARAM, "hostArgs is NULL.");
        const auto& function = function_of(runtime, handle);
        const auto binary = runtime.functions.at(handle);
        refuse_unless(size > 0, "argsSize is 0.");
        refuse_unless(blocks > 0, "numBlocks is 0.");
        const auto attributes = read_config(config);
        const auto on = runtime.stream(stream);
        require(binary->device == on->device, ACL_ERROR_RT_INVALID_HANDLE,
                "The kernel was loaded on another device.");
        Launch launch;
        if (function.entry != nullptr) {
            // Stricter than ACL, which copies whatever it is given.
            refuse_unless(size == std::max(function.entry->argument_bytes, 8u),
                          "argsSize is not what the kernel expects.");
            check_dynamic_ub(runtime.settings.soc, *function.entry, attributes.dynamic_ub);
        }
        launch.library = binary->library;
        launch.entry = function.entry;
        launch.name = function.name;
        launch.blocks = blocks;
        launch.arguments.resize((size + 7) / 8);
        std::memcpy(launch.arguments.data(), host_arguments, size);
        fill_placeholders(launch.arguments, size, places, count);
        launch.dynamic_ub_bytes =
            static_cast<std::uint32_t>(std::max<std::int64_t>(attributes.dynamic_ub, 0));
        launch.timeout = timeout_of(attributes);
        launch.device = on->device;
        record(runtime, launch, attributes, stream, config != nullptr,
               std::string(static_cast<const char*>(host_arguments), size));
        auto& device = runtime.devices[static_cast<std::size_t>(launch.device)];
        on->push([launch = std::move(launch), &device, &runtime] {
            return run_launch(launch, runtime.settings.soc, device.cores, runtime.memory);
        });
    });
}

}  // extern "C"
