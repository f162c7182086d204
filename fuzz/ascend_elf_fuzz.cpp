// The reader of device objects.
#include <deep_jit/backend/ascend/elf.hpp>

#include <set>

#include "fuzz.hpp"

using namespace deep_jit_fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto file = text_of(data, size);
    const auto info = deep_jit::ascend::read_object(file);
    if (!info)
        return 0;
    std::set<std::string> names;
    for (const auto& name : info->kernels) {
        require(!name.empty() && contains(file, name), "a kernel's name is in the file");
        require(deep_jit::ascend::kernel_base_name(name + "_mix_aic") == name,
                "the name of a half gives the name of the whole");
        require(names.empty() || *names.rbegin() < name, "names are sorted, each is there once");
        names.insert(name);
    }
    // What is behind the end of a complete file changes nothing.
    const auto longer = deep_jit::ascend::read_object(std::string(file) + "more");
    require(longer && longer->kernels == info->kernels &&
                longer->argument_bytes == info->argument_bytes,
            "a longer file says the same");
    return 0;
}
