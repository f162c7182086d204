// State of the driver: start, fork, exit, contexts.
#include "driver.hpp"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stand_in {

std::atomic<bool> Driver::exiting{false};

namespace {

bool flag(const char* name) {
    const char* text = std::getenv(name);
    return text != nullptr && *text != '\0' && std::strcmp(text, "0") != 0;
}

thread_local ThreadState this_thread{};

}  // namespace

Settings Settings::from_environment() {
    Settings out;
    out.devices = devices_from_environment();
    if (const char* text = std::getenv("DJ_STAND_IN_CUDA_DRIVER_VERSION"))
        out.driver_version = std::atoi(text);
    out.eager = flag("DJ_STAND_IN_CUDA_EAGER");
    out.strict_capture = flag("DJ_STAND_IN_CUDA_STRICT_CAPTURE");
    if (const char* text = std::getenv("DJ_STAND_IN_CUDA_EXIT_LOG"))
        out.exit_log = text;
    return out;
}

Driver::Driver() {
    // The lock is held across a fork, so that the child finds the state whole. A child of a
    // process that had called cuInit cannot use the driver, as with the real one.
    ::pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                     [] {
                         get().forked = get().initialised;
                         get().mutex.unlock();
                     });
}

Driver& Driver::get() {
    static Driver& driver = *new Driver;  // never destroyed: calls may come at any time
    return driver;
}

ThreadState& Driver::thread() {
    if (this_thread.epoch != epoch)
        this_thread = ThreadState{{}, 0, epoch, CU_STREAM_CAPTURE_MODE_GLOBAL};
    return this_thread;
}

const Device& Driver::device(CUdevice ordinal) const {
    require(ordinal >= 0 && static_cast<std::size_t>(ordinal) < settings.devices.size(),
            CUDA_ERROR_INVALID_DEVICE);
    return settings.devices[static_cast<std::size_t>(ordinal)];
}

Context* Driver::context_of(CUcontext handle) {
    const void* address = handle;
    for (auto& context : primary_contexts)
        if (&context == address)
            return &context;
    return contexts.find(address);
}

Context& Driver::current_context() {
    auto& state = thread();
    Context* context =
        state.depth > 0 ? state.stack[static_cast<std::size_t>(state.depth - 1)] : nullptr;
    require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    require(context->alive, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return *context;
}

Stream& Driver::stream(CUstream handle) {
    if (handle == nullptr || handle == CU_STREAM_LEGACY)
        return *current_context().legacy_stream;
    if (handle == CU_STREAM_PER_THREAD)
        return *current_context().thread_stream;
    Stream* stream = streams.find(handle);
    require(stream != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return *stream;
}

void Driver::activate(Context& context) {
    if (context.alive)
        return;
    context.alive = true;
    context.legacy_stream = streams.add();
    context.legacy_stream->context = &context;
    context.legacy_stream->legacy = true;
    context.thread_stream = streams.add();
    context.thread_stream->context = &context;
}

void Driver::destroy(Context& context) {
    context.alive = false;
    std::erase_if(captures, [&](const auto& c) { return c->origin->context == &context; });
    streams.remove_if([&](const Stream& s) { return s.context == &context; });
    events.remove_if([&](const Event& e) { return e.context == &context; });
    functions.remove_if([&](const Function& f) { return f.context == &context; });
    std::vector<Library*> modules;
    libraries.any_of([&](Library& library) {
        if (library.context == &context)
            modules.push_back(&library);
        for (auto* kernel : library.kernels) kernel->functions.erase(&context);
        return false;
    });
    for (auto* module : modules) unload(*module);
    for (auto it = memory.begin(); it != memory.end();) {
        if (it->second.context != &context) {
            ++it;
            continue;
        }
        std::free(reinterpret_cast<void*>(it->first));
        it = memory.erase(it);
    }
}

void Driver::unload(Library& library) {
    for (auto* kernel : library.kernels) {
        for (const auto& [context, function] : kernel->functions) functions.remove(function);
        kernels.remove(kernel);
    }
    libraries.remove(&library);
    ++library_unloads;
}

Function* Driver::function_of(Kernel& kernel, Context& context) {
    auto& function = kernel.functions[&context];
    if (function == nullptr)
        function = functions.add(&kernel, &context);
    return function;
}

void Driver::remember(Record record) {
    ++launches;
    if (recording)
        records.push_back(std::move(record));
}

std::optional<CUresult> Driver::queued_failure(std::string_view function) {
    const auto found = failures.find(function);
    if (found == failures.end())
        return std::nullopt;
    auto& queue = found->second;
    if (queue.front().skip > 0) {
        --queue.front().skip;
        return std::nullopt;
    }
    const auto code = queue.front().code;
    queue.pop_front();
    if (queue.empty())
        failures.erase(found);
    return code;
}

void Driver::restart() {
    for (auto& context : primary_contexts)
        if (context.alive)
            destroy(context);
    contexts.remove_if([](const Context&) { return true; });
    for (const auto& [address, allocation] : memory) std::free(reinterpret_cast<void*>(address));
    memory.clear();
    streams.remove_if([](const Stream&) { return true; });
    events.remove_if([](const Event&) { return true; });
    functions.remove_if([](const Function&) { return true; });
    kernels.remove_if([](const Kernel&) { return true; });
    libraries.remove_if([](const Library&) { return true; });
    graphs.remove_if([](const Graph&) { return true; });
    graph_execs.remove_if([](const GraphExec&) { return true; });
    graph_nodes.remove_if([](const GraphNode&) { return true; });
    captures.clear();
    initialised = forked = false;
    settings = Settings::from_environment();
    primary_contexts.clear();
    ++epoch;
}

std::string_view base_name(std::string_view function) {
    const auto at = function.rfind("_v");
    if (at == std::string_view::npos || at + 3 != function.size())
        return function;
    return function.substr(0, at);
}

int introduced_in(std::string_view function) {
    static constexpr std::pair<std::string_view, int> later[] = {
        {"cuKernelGetName", 12030},
        {"cuFuncGetName", 12030},
        {"cuKernelGetParamInfo", 12040},
        {"cuFuncGetParamInfo", 12040},
        {"cuLibraryGetKernelCount", 12040},
        {"cuLibraryEnumerateKernels", 12040},
        {"cuFuncLoad", 12040},
        {"cuFuncIsLoaded", 12040},
        {"cuKernelGetLibrary", 12050},
    };
    for (const auto& [name, version] : later)
        if (name == function)
            return version;
    return 0;
}

void log_late_call(const char* function) {
    const auto& path = Driver::get().settings.exit_log;
    if (path.empty())
        return;
    if (std::FILE* file = std::fopen(path.c_str(), "a")) {
        std::fprintf(file, "%s\n", function);
        std::fclose(file);
    }
}

}  // namespace stand_in
