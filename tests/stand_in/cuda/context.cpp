// Contexts: the primary ones, those a client creates, and the stack of each thread.
#include "driver.hpp"

using namespace stand_in;

namespace {

CUcontext handle_of(Context* context) { return reinterpret_cast<CUcontext>(context); }

Context& primary(Driver& driver, CUdevice device) {
    return driver.primary_contexts[static_cast<std::size_t>(driver.device(device).ordinal)];
}

/// Null, or a context that exists; anything else is no context.
Context* checked(Driver& driver, CUcontext handle) {
    if (handle == nullptr)
        return nullptr;
    auto* context = driver.context_of(handle);
    require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    require(context->alive, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return context;
}

void push(Driver& driver, Context* context) {
    auto& state = driver.thread();
    require(state.depth < static_cast<int>(state.stack.size()), CUDA_ERROR_OUT_OF_MEMORY);
    state.stack[static_cast<std::size_t>(state.depth++)] = context;
}

CUresult create(const char* name, CUcontext* out, unsigned flags, CUdevice device) {
    return call(name, [&](Driver& driver) {
        require(out != nullptr);
        const auto& where = driver.device(device);
        auto* context = driver.contexts.add();
        context->device = &where;
        context->primary = false;
        context->flags = flags;
        driver.activate(*context);
        push(driver, context);
        *out = handle_of(context);
    });
}

}  // namespace

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr);
        auto& context = primary(driver, device);
        driver.activate(context);
        ++context.retains;
        *out = handle_of(&context);
    });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
    return call(__func__, [&](Driver& driver) {
        auto& context = primary(driver, device);
        require(context.retains > 0, CUDA_ERROR_INVALID_CONTEXT);
        if (--context.retains == 0)
            driver.destroy(context);
    });
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
    return call(__func__, [&](Driver& driver) {
        auto& context = primary(driver, device);
        if (context.alive)
            driver.destroy(context);
    });
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
    return call(__func__, [&](Driver& driver) {
        require(flags != nullptr && active != nullptr);
        const auto& context = primary(driver, device);
        *flags = context.flags;
        *active = context.alive ? 1 : 0;
    });
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
    return call(__func__, [&](Driver& driver) { primary(driver, device).flags = flags; });
}

STAND_IN_EXPORT CUresult cuCtxCreate_v2(CUcontext* out, unsigned int flags, CUdevice device) {
    return create(__func__, out, flags, device);
}

#if CUDA_VERSION >= 12050
STAND_IN_EXPORT CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams*, unsigned int flags,
                                        CUdevice device) {
    return create(__func__, out, flags, device);
}
#endif

CUresult CUDAAPI cuCtxDestroy(CUcontext handle) {
    return call(__func__, [&](Driver& driver) {
        auto* context = driver.contexts.find(handle);
        require(context != nullptr && context->alive, CUDA_ERROR_INVALID_CONTEXT);
        driver.destroy(*context);
        auto& state = driver.thread();
        if (state.depth > 0 && state.stack[static_cast<std::size_t>(state.depth - 1)] == context)
            --state.depth;
    });
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* out) {
    return call(__func__, [&](Driver& driver) {
        require(out != nullptr);
        const auto& state = driver.thread();
        *out = state.depth > 0 ? handle_of(state.stack[static_cast<std::size_t>(state.depth - 1)])
                               : nullptr;
    });
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext handle) {
    return call(__func__, [&](Driver& driver) {
        auto* context = checked(driver, handle);
        auto& state = driver.thread();
        if (state.depth > 0)
            --state.depth;
        if (context != nullptr)
            push(driver, context);
    });
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext handle) {
    return call(__func__, [&](Driver& driver) {
        auto* context = checked(driver, handle);
        require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
        push(driver, context);
    });
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext* out) {
    return call(__func__, [&](Driver& driver) {
        auto& state = driver.thread();
        require(state.depth > 0, CUDA_ERROR_INVALID_CONTEXT);
        auto* context = state.stack[static_cast<std::size_t>(--state.depth)];
        if (out != nullptr)
            *out = handle_of(context);
    });
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
    return call(__func__, [&](Driver& driver) {
        require(device != nullptr);
        *device = driver.current_context().device->ordinal;
    });
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int* flags) {
    return call(__func__, [&](Driver& driver) {
        require(flags != nullptr);
        *flags = driver.current_context().flags;
    });
}

CUresult CUDAAPI cuCtxSynchronize() {
    return call(__func__, [&](Driver& driver) {
        driver.current_context();
        driver.refuse_during_capture();
    });
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return call(__func__, [&](Driver& driver) {
        driver.current_context();
        if (least != nullptr)
            *least = 0;
        if (greatest != nullptr)
            *greatest = -5;
    });
}
