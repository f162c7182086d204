// Loading cubins: libraries, modules and the kernels in them.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "driver.hpp"

using namespace stand_in;

namespace {

/// Copies memory that may not exist; fewer bytes than asked for where it ends.
std::string read_memory(const char* address, std::uint64_t bytes) {
    if (bytes > std::uint64_t{1} << 31)
        return {};
    std::string out(bytes, '\0');
    iovec local{out.data(), out.size()};
    iovec remote{const_cast<char*>(address), out.size()};
    const auto got = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
    out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return out;
}

/// An image as it is loaded: what is no CUBIN at all is only found out when it is used.
struct Image {
    Cubin cubin;
    CUresult problem = CUDA_SUCCESS;
};

bool is_cuda_elf(const std::string& start) {
    Elf64_Ehdr header;
    if (start.size() < sizeof(header))
        return false;
    std::memcpy(&header, start.data(), sizeof(header));
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_machine == EM_CUDA;
}

/// The driver is given no length: it has to believe the headers. So do we, but no further than
/// memory is readable.
Image read_image(const void* image) {
    require(image != nullptr);
    const auto* start = static_cast<const char*>(image);
    if (const auto head = read_memory(start, sizeof(Elf64_Ehdr));
        head.size() == sizeof(Elf64_Ehdr) && !is_cuda_elf(head))
        return {{}, CUDA_ERROR_INVALID_IMAGE};
    try {
        const auto size = elf_extent([&](std::uint64_t offset, std::uint64_t bytes) {
            return offset > std::uint64_t{1} << 31 ? std::string()
                                                   : read_memory(start + offset, bytes);
        });
        auto cubin = Cubin::parse(read_memory(start, size));
        require(cubin.has_value(), CUDA_ERROR_INVALID_IMAGE);
        return {*std::move(cubin), CUDA_SUCCESS};
    } catch (const Damaged&) {
        fail(CUDA_ERROR_INVALID_IMAGE);
    }
}

Library& add_library(Driver& driver, Image image, Context* context) {
    auto* library = driver.libraries.add();
    library->cubin = std::move(image.cubin);
    library->problem = image.problem;
    library->context = context;
    if (library->problem == CUDA_SUCCESS)
        for (const auto& code : library->cubin.kernels)
            library->kernels.push_back(driver.kernels.add(library, &code));
    ++driver.library_loads;
    return *library;
}

void check_arch(const Cubin& cubin, const Device& device) {
    require(cubin.arch.runs_on(device.major, device.minor), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

Library& library_of(Driver& driver, const void* handle) {
    auto* library = driver.libraries.find(handle);
    require(library != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return *library;
}

Kernel& kernel_named(const Library& library, const char* name) {
    require(name != nullptr);
    require(library.problem == CUDA_SUCCESS, library.problem);
    for (auto* kernel : library.kernels)
        if (kernel->code->name == name)
            return *kernel;
    fail(CUDA_ERROR_NOT_FOUND);
}

/// Present drivers load in a capture, older ones refuse it.
void refuse_load_in_capture(Driver& driver) {
    if (driver.settings.strict_capture)
        driver.refuse_during_capture();
}

CUresult load_module(const char* function, CUmodule* out, const void* image) {
    return call(function, [&](Driver& driver) {
        require(out != nullptr);
        *out = nullptr;
        auto& context = driver.current_context();
        refuse_load_in_capture(driver);
        auto read = read_image(image);
        require(read.problem == CUDA_SUCCESS, read.problem);
        check_arch(read.cubin, *context.device);
        *out = reinterpret_cast<CUmodule>(&add_library(driver, std::move(read), &context));
    });
}

}  // namespace

CUresult CUDAAPI cuLibraryLoadData(CUlibrary* out, const void* code, CUjit_option* jit_options,
                                   void** jit_values, unsigned int num_jit,
                                   CUlibraryOption* options, void**, unsigned int num_options) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr);
        require(num_jit == 0 || (jit_options != nullptr && jit_values != nullptr));
        require(num_options == 0 || options != nullptr);
        for (unsigned i = 0; i < num_options; ++i)
            require(options[i] >= 0 && options[i] < CU_LIBRARY_NUM_OPTIONS);
        *out = nullptr;
        refuse_load_in_capture(driver);
        auto image = read_image(code);
        const auto runs = [&](const Device& device) {
            return image.cubin.arch.runs_on(device.major, device.minor);
        };
        const auto& devices = driver.settings.devices;
        if (image.problem == CUDA_SUCCESS && std::none_of(devices.begin(), devices.end(), runs))
            image.problem = CUDA_ERROR_NO_BINARY_FOR_GPU;
        if (driver.settings.eager)
            require(image.problem == CUDA_SUCCESS, image.problem);
        *out = reinterpret_cast<CUlibrary>(&add_library(driver, std::move(image), nullptr));
    });
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary handle) {
    return call(__func__, [&](Driver& driver) {
        auto& library = library_of(driver, handle);
        require(library.context == nullptr, CUDA_ERROR_INVALID_HANDLE);
        driver.refuse_during_capture();
        driver.unload(library);
    });
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr);
        *out = nullptr;
        *out = reinterpret_cast<CUkernel>(&kernel_named(library_of(driver, handle), name));
    });
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
    return call(__func__, [&](Driver& driver) {
        require(count != nullptr);
        *count = static_cast<unsigned>(library_of(driver, handle).kernels.size());
    });
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* out, unsigned int count, CUlibrary handle) {
    return call(__func__, [&](Driver& driver) {
        const auto& library = library_of(driver, handle);
        require(out != nullptr || count == 0);
        for (std::size_t i = 0; i < std::min<std::size_t>(count, library.kernels.size()); ++i)
            out[i] = reinterpret_cast<CUkernel>(library.kernels[i]);
    });
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr);
        const auto& library = library_of(driver, handle);
        const auto& device = *driver.current_context().device;
        require(library.problem == CUDA_SUCCESS, library.problem);
        check_arch(library.cubin, device);
        *out = reinterpret_cast<CUmodule>(handle);
    });
}

CUresult CUDAAPI cuModuleLoadData(CUmodule* out, const void* image) {
    return load_module(__func__, out, image);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned int, CUjit_option*,
                                    void**) {
    return load_module(__func__, out, image);
}

CUresult CUDAAPI cuModuleUnload(CUmodule handle) {
    return call(__func__, [&](Driver& driver) {
        auto& library = library_of(driver, handle);
        require(library.context != nullptr, CUDA_ERROR_NOT_PERMITTED);
        driver.refuse_during_capture();
        driver.unload(library);
    });
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr);
        *out = nullptr;
        auto& kernel = kernel_named(library_of(driver, handle), name);
        auto& context = driver.current_context();
        check_arch(kernel.library->cubin, *context.device);
        *out = reinterpret_cast<CUfunction>(driver.function_of(kernel, context));
    });
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction* out, CUkernel handle) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr);
        auto* kernel = driver.kernels.find(handle);
        require(kernel != nullptr, CUDA_ERROR_INVALID_HANDLE);
        auto& context = driver.current_context();
        check_arch(kernel->library->cubin, *context.device);
        *out = reinterpret_cast<CUfunction>(driver.function_of(*kernel, context));
    });
}

#if CUDA_VERSION >= 12050
CUresult CUDAAPI cuKernelGetLibrary(CUlibrary* out, CUkernel handle) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr);
        auto* kernel = driver.kernels.find(handle);
        require(kernel != nullptr, CUDA_ERROR_INVALID_HANDLE);
        *out = reinterpret_cast<CUlibrary>(kernel->library);
    });
}
#endif
