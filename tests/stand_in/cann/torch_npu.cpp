// A libtorch_npu.so with nothing but the C function that tells the current stream.
#include <atomic>
#include <cstdint>

namespace {

std::atomic<void*> current_stream = nullptr;
std::atomic<int> queries = 0;

}  // namespace

extern "C" {

int aoti_torch_get_current_npu_stream(int32_t, void** out) {
    ++queries;
    *out = current_stream;
    return 0;
}

void dj_stand_in_set_npu_stream(void* stream) { current_stream = stream; }

int dj_stand_in_npu_stream_queries() { return queries; }
}
