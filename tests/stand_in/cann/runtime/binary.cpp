#include "binary.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.hpp"
#include "stand_in/cann/tools/device_object.hpp"

namespace dj_stand_in {

namespace {

[[noreturn]] void refuse(const std::string& why) {
    fail(ACL_ERROR_RT_PARAM_INVALID, "The binary cannot be loaded. Reason: " + why);
}

/// A library that lies in memory. The file stays open with it: the linker knows a library by the
/// name that it was opened by, and here that is the number of the file.
std::shared_ptr<void> open_library(const std::string& bytes) {
    const int file = ::memfd_create("kernel", MFD_CLOEXEC);
    if (file < 0)
        refuse("there is no memory");
    const auto path = "/proc/self/fd/" + std::to_string(file);
    for (std::size_t done = 0; done < bytes.size();) {
        const auto n = ::write(file, bytes.data() + done, bytes.size() - done);
        if (n <= 0) {
            ::close(file);
            refuse("there is no memory");
        }
        done += static_cast<std::size_t>(n);
    }
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* problem = ::dlerror();
        const std::string text = problem != nullptr ? problem : "unknown";
        ::close(file);
        refuse(text);
    }
    return {library, [file, path](void* handle) {
                ::dlclose(handle);
                if (::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr)
                    ::close(file);
            }};
}

}  // namespace

Binary::Binary(std::string_view bytes, std::int64_t npu_arch) {
    std::string image(bytes);
    try {
        const stand_in::ElfImage elf(image);
        if (elf.header().e_machine != kDeviceMachine)
            refuse("its machine is not an AI Core");
        if (elf.header().e_type != ET_DYN)
            refuse("it is not linked");
        for (const auto& symbol : symbols_of(elf))
            if (symbol.is_global_function()) {
                const std::string name(kernel_name(symbol.name));
                functions_.emplace(name, Function{this, name, nullptr});
            }
    } catch (const stand_in::Damaged& damage) {
        refuse(damage.what());
    }
    if (functions_.empty())
        fail(ACL_ERROR_RT_INTERNAL_ERROR, "The binary has no kernel.");
    set_machine(image, kHostMachine);
    library = open_library(image);
    const auto* table =
        static_cast<const KernelTable*>(::dlsym(library.get(), "dj_stand_in_kernel_table"));
    if (table == nullptr || table->abi_version != kAbiVersion)
        refuse("it is not from the stand-in's compiler");
    if (table->npu_arch != npu_arch)
        refuse("it was compiled for dav-" + std::to_string(table->npu_arch) +
               ", the device is a dav-" + std::to_string(npu_arch));
    for (const auto* entry = table->begin; entry != table->end; ++entry)
        if (auto* function = find(entry->name))
            function->entry = entry;
}

Function* Binary::find(std::string_view name) {
    const auto found = functions_.find(name);
    return found != functions_.end() ? &found->second : nullptr;
}

}  // namespace dj_stand_in
