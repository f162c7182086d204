// Memory: host memory behind device pointers, with every range checked.
#include <cstdlib>
#include <cstring>

#include "driver.hpp"

using namespace stand_in;

namespace {

/// Fails unless [address, address + bytes) lies in one device allocation.
void check_range(Driver& driver, CUdeviceptr address, std::size_t bytes) {
    if (bytes == 0)
        return;
    auto next = driver.memory.upper_bound(address);
    require(next != driver.memory.begin());
    const auto& [base, allocation] = *--next;
    require(address - base <= allocation.bytes && bytes <= allocation.bytes - (address - base));
}

bool is_device_range(Driver& driver, CUdeviceptr address) {
    auto next = driver.memory.upper_bound(address);
    return next != driver.memory.begin() &&
           address - std::prev(next)->first < std::prev(next)->second.bytes;
}

void allocate(Driver& driver, CUdeviceptr* out, std::size_t bytes) {
    require(out != nullptr && bytes > 0);
    auto& context = driver.current_context();
    void* memory = nullptr;
    require(bytes <= context.device->memory_bytes && ::posix_memalign(&memory, 512, bytes) == 0,
            CUDA_ERROR_OUT_OF_MEMORY);
    *out = reinterpret_cast<CUdeviceptr>(memory);
    driver.memory[*out] = Allocation{bytes, &context};
}

void release(Driver& driver, CUdeviceptr address) {
    if (address == 0)
        return;
    const auto found = driver.memory.find(address);
    require(found != driver.memory.end() && found->second.context != nullptr);
    driver.memory.erase(found);
    std::free(reinterpret_cast<void*>(address));
}

/// Copies now, or when the graph runs that `stream` captures.
void copy(Driver& driver, Stream& stream, void* to, const void* from, std::size_t bytes) {
    driver.check_implicit_dependency(stream);
    const auto work = [=] { std::memmove(to, from, bytes); };
    if (!driver.add_to_capture(stream, GraphNode{CU_GRAPH_NODE_TYPE_MEMCPY, {}, work}) && bytes > 0)
        work();
}

template <typename T>
void fill(Driver& driver, Stream& stream, CUdeviceptr to, T value, std::size_t count) {
    require(to % sizeof(T) == 0 && count <= SIZE_MAX / sizeof(T));
    check_range(driver, to, count * sizeof(T));
    driver.check_implicit_dependency(stream);
    const auto work = [=] { std::fill_n(reinterpret_cast<T*>(to), count, value); };
    if (!driver.add_to_capture(stream, GraphNode{CU_GRAPH_NODE_TYPE_MEMSET, {}, work}))
        work();
}

/// Synchronous copies and memsets run in the legacy stream.
Stream& synchronous(Driver& driver) { return *driver.current_context().legacy_stream; }

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace

CUresult CUDAAPI cuMemAlloc(CUdeviceptr* out, std::size_t bytes) {
    return call(__func__, [&](Driver& driver) {
        driver.current_context();
        driver.refuse_during_capture();
        allocate(driver, out, bytes);
    });
}

CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
    return call(__func__, [&](Driver& driver) {
        driver.current_context();
        driver.refuse_during_capture();
        release(driver, address);
    });
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* out, std::size_t bytes, CUstream stream) {
    return call(__func__, [&](Driver& driver) {
        require(driver.stream(stream).capture == nullptr, CUDA_ERROR_NOT_SUPPORTED);
        allocate(driver, out, bytes);
    });
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    return call(__func__, [&](Driver& driver) {
        require(driver.stream(stream).capture == nullptr, CUDA_ERROR_NOT_SUPPORTED);
        release(driver, address);
    });
}

CUresult CUDAAPI cuMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
    return call(__func__, [&](Driver& driver) {
        const auto& context = driver.current_context();
        std::size_t used = 0;
        for (const auto& [address, allocation] : driver.memory)
            if (allocation.context != nullptr && allocation.context->device == context.device)
                used += allocation.bytes;
        require(free_bytes != nullptr && total != nullptr);
        *total = context.device->memory_bytes;
        *free_bytes = *total - std::min(used, *total);
    });
}

CUresult CUDAAPI cuMemAllocHost(void** out, std::size_t bytes) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr && bytes > 0);
        driver.current_context();
        driver.refuse_during_capture();
        require(::posix_memalign(out, 512, bytes) == 0, CUDA_ERROR_OUT_OF_MEMORY);
        driver.memory[reinterpret_cast<CUdeviceptr>(*out)] = Allocation{bytes, nullptr};
    });
}

CUresult CUDAAPI cuMemFreeHost(void* memory) {
    return call(__func__, [&](Driver& driver) {
        driver.current_context();
        driver.refuse_during_capture();
        const auto found = driver.memory.find(reinterpret_cast<CUdeviceptr>(memory));
        require(found != driver.memory.end() && found->second.context == nullptr);
        driver.memory.erase(found);
        std::free(memory);
    });
}

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
    return call(__func__, [&](Driver& driver) {
        auto& stream = synchronous(driver);
        check_range(driver, to, bytes);
        require(from != nullptr || bytes == 0);
        copy(driver, stream, pointer(to), from, bytes);
    });
}

CUresult CUDAAPI cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
    return call(__func__, [&](Driver& driver) {
        auto& stream = synchronous(driver);
        check_range(driver, from, bytes);
        require(to != nullptr || bytes == 0);
        copy(driver, stream, to, pointer(from), bytes);
    });
}

CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return call(__func__, [&](Driver& driver) {
        auto& stream = synchronous(driver);
        check_range(driver, to, bytes);
        check_range(driver, from, bytes);
        copy(driver, stream, pointer(to), pointer(from), bytes);
    });
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes,
                                   CUstream stream) {
    return call(__func__, [&](Driver& driver) {
        auto& where = driver.stream(stream);
        check_range(driver, to, bytes);
        require(from != nullptr || bytes == 0);
        copy(driver, where, pointer(to), from, bytes);
    });
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return call(__func__, [&](Driver& driver) {
        auto& where = driver.stream(stream);
        check_range(driver, from, bytes);
        require(to != nullptr || bytes == 0);
        copy(driver, where, to, pointer(from), bytes);
    });
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                   CUstream stream) {
    return call(__func__, [&](Driver& driver) {
        auto& where = driver.stream(stream);
        check_range(driver, to, bytes);
        check_range(driver, from, bytes);
        copy(driver, where, pointer(to), pointer(from), bytes);
    });
}

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return call(__func__, [&](Driver& driver) {
        auto& stream = synchronous(driver);
        require(is_device_range(driver, to) || is_device_range(driver, from));
        copy(driver, stream, pointer(to), pointer(from), bytes);
    });
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                               CUstream stream) {
    return call(__func__, [&](Driver& driver) {
        auto& where = driver.stream(stream);
        require(is_device_range(driver, to) || is_device_range(driver, from));
        copy(driver, where, pointer(to), pointer(from), bytes);
    });
}

CUresult CUDAAPI cuMemsetD8(CUdeviceptr to, unsigned char value, std::size_t count) {
    return call(__func__,
                [&](Driver& driver) { fill(driver, synchronous(driver), to, value, count); });
}

CUresult CUDAAPI cuMemsetD16(CUdeviceptr to, unsigned short value, std::size_t count) {
    return call(__func__,
                [&](Driver& driver) { fill(driver, synchronous(driver), to, value, count); });
}

CUresult CUDAAPI cuMemsetD32(CUdeviceptr to, unsigned int value, std::size_t count) {
    return call(__func__,
                [&](Driver& driver) { fill(driver, synchronous(driver), to, value, count); });
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count,
                                 CUstream stream) {
    return call(__func__,
                [&](Driver& driver) { fill(driver, driver.stream(stream), to, value, count); });
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned int value, std::size_t count,
                                  CUstream stream) {
    return call(__func__,
                [&](Driver& driver) { fill(driver, driver.stream(stream), to, value, count); });
}
