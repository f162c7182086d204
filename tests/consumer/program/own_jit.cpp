// Gives the program a runtime of its own, beside the plugin's.
#include <all_headers.hpp>

static auto jit = deep_jit::create_lazy_jit<deep_jit::Host>(deep_jit::Config("/", "PROGRAM"));

int answer() {
    const auto kernel = jit->compile("answer", R"(
extern "C" __global__ void answer(int* output) { *output = 42; }
)");
    int output = 0;
    const deep_jit::host::Stream stream;
    jit->launch(kernel, {.stream = stream, .grid_dim = dim3(1), .block_dim = dim3(1)}, &output);
    stream.synchronize();
    return output;
}
