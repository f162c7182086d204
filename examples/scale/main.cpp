// Compiles a kernel from a string, runs it, and shows what the cache did.
#include <deep_jit/backend/host/backend.hpp>

#include "scale.hpp"

#ifdef DEEP_JIT_WITH_CUDA
bool run_on_cuda(const deep_jit::Config& config);
#else
static bool run_on_cuda(const deep_jit::Config&) {
    std::puts("CUDA: skipped, built without CUDA headers");
    return true;
}
#endif

static bool run_on_host(const deep_jit::Config& config) {
    time_compilation<deep_jit::Runtime<deep_jit::Host>>("Host", config);

    auto jit = deep_jit::create_lazy_jit<deep_jit::Host>(config);
    const auto kernel = jit->compile("scale", kScaleSource);

    const int count = kCount;
    const auto input_data = make_input();
    std::vector<float> output_data(input_data.size());
    float* const output = output_data.data();
    const float* const input = input_data.data();
    jit->launch(kernel,
                {
                    .grid_dim = dim3((count + 255) / 256, 1, 1),
                    .block_dim = dim3(256, 1, 1),
                },
                output, input, count);
    deep_jit::host::Stream::default_stream().synchronize();
    return check("Host", input_data, output_data);
}

int main() {
    try {
        const deep_jit::Config config(std::filesystem::current_path(), "SCALE");
        const bool host = run_on_host(config);
        const bool cuda = run_on_cuda(config);
        return host && cuda ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
