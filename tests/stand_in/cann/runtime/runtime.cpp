#include "runtime.hpp"

#include <unistd.h>

namespace dj_stand_in {

namespace {

thread_local ThreadState* this_thread = nullptr;

}  // namespace

Runtime& Runtime::get() {
    // Never destroyed: its threads may outlive the program's static objects.
    static auto* runtime = new Runtime();
    return *runtime;
}

Runtime::Runtime() : process(::getpid()) {
    for (int i = 0; i < settings.devices; ++i) devices.emplace_back(i, settings.soc, gate);
}

ThreadState& Runtime::thread() {
    if (this_thread == nullptr)
        this_thread = threads_.emplace_back(std::make_unique<ThreadState>()).get();
    if (this_thread->epoch != epoch) {
        this_thread->epoch = epoch;
        this_thread->device = -1;
        this_thread->has_message = false;
    }
    return *this_thread;
}

int Runtime::current_device() {
    const int device = thread().device;
    require(device >= 0, ACL_ERROR_RT_CONTEXT_NULL, "No device was set in this thread.");
    return device;
}

std::shared_ptr<Stream> Runtime::stream(aclrtStream handle) {
    const int device = current_device();
    if (handle == nullptr)
        return devices[static_cast<std::size_t>(device)].default_stream;
    auto found = streams.find(handle);
    require(found != nullptr, ACL_ERROR_RT_INVALID_HANDLE, "The stream does not exist.");
    require(found->device == device, ACL_ERROR_RT_STREAM_CONTEXT,
            "The stream belongs to another device.");
    return found;
}

std::vector<std::shared_ptr<Stream>> Runtime::streams_of(int device) {
    std::vector<std::shared_ptr<Stream>> out = {
        devices[static_cast<std::size_t>(device)].default_stream};
    for (auto& stream : streams.all())
        if (stream->device == device)
            out.push_back(std::move(stream));
    return out;
}

void Runtime::check_device(int device) const {
    require(device >= 0 && device < settings.devices, ACL_ERROR_RT_INVALID_DEVICEID,
            "There is no device of that number.");
}

void Runtime::restart() {
    gate.hold(false);
    for (const auto& stream : streams.all()) stream->finish();
    for (auto& device : devices) device.default_stream->finish();
    const std::lock_guard lock(mutex);
    streams.clear();
    events.clear();
    functions.clear();
    for (const auto& binary : binaries.all()) binary->library.reset();
    binaries.clear();
    memory.clear();
    for (const auto& [start, bytes] : host_memory) ::free(start);
    host_memory.clear();
    devices.clear();
    settings = Settings::from_environment();
    for (int i = 0; i < settings.devices; ++i) devices.emplace_back(i, settings.soc, gate);
    initialised = finalised = false;
    ++epoch;
    records.clear();
    binary_loads = 0;
    calls.clear();
    failures.clear();
}

int Runtime::note_call(const char* function) {
    if (process != ::getpid())
        fail(ACL_ERROR_RT_INTERNAL_ERROR, "ACL was used before fork().");
    ++calls[function];
    const auto found = failures.find(function);
    if (found == failures.end() || found->second.empty())
        return 0;
    auto& first = found->second.front();
    if (first.skip > 0) {
        --first.skip;
        return 0;
    }
    const int code = first.code;
    found->second.pop_front();
    return code;
}

void Runtime::set_message(int code, const std::string& text) {
    auto& state = thread();
    const char* kind = code < 200000 ? "EE1001" : "EE9999";
    state.message = std::string(kind) + ": [PID: " + std::to_string(process) + "] " + text +
                    " (error code " + std::to_string(code) + ")";
    state.has_message = true;
}

}  // namespace dj_stand_in
