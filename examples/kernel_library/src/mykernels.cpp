#include "mykernels.hpp"

#include <filesystem>
#include <numeric>
#include <stdexcept>

#include <deep_jit/backend/host/backend.hpp>

namespace mykernels {

namespace {

// Empty until init() knows where the library is installed; the runtime is made at first use.
deep_jit::LazyInit<deep_jit::Runtime<deep_jit::Host>> jit(nullptr);

/// A source that instantiates one kernel. Everything else is in tracked headers.
std::string instantiate(const std::string& header, const std::string& kernel) {
    return "#include <mykernels/" + header +
           ">\n"
           "static void __instantiate_kernel() {\n"
           "    auto ptr = reinterpret_cast<void*>(&mykernels::" +
           kernel +
           ");\n"
           "}\n";
}

dim3 blocks_for(std::size_t count, unsigned threads) {
    return dim3(static_cast<unsigned>((count + threads - 1) / threads), 1, 1);
}

void wait() { deep_jit::host::Stream::default_stream().synchronize(); }

}  // namespace

void init(const std::string& library_root) {
    const auto root = std::filesystem::absolute(library_root);
    const auto include_dir = root / "include";
    jit = deep_jit::create_lazy_jit<deep_jit::Host>(deep_jit::Config(
        root, "MYKERNELS", "mykernels-" MYKERNELS_VERSION, {include_dir}, {"mykernels/"}));
}

void saxpy(std::vector<float>& y, const std::vector<float>& x, float a) {
    constexpr int kPack = 4;
    if (x.size() != y.size() || x.size() % kPack != 0)
        throw std::invalid_argument("saxpy needs two vectors of one size, a multiple of 4");
    static const std::string source = instantiate("saxpy.cuh", "saxpy<float, 4>");
    const auto kernel = jit->compile("saxpy", source);
    jit->launch(kernel, {.grid_dim = blocks_for(x.size() / kPack, 128), .block_dim = dim3(128)},
                y.data(), x.data(), a, static_cast<int>(x.size()));
    wait();
}

float sum(const std::vector<float>& values) {
    constexpr unsigned kThreads = 256;
    static const std::string source = instantiate("block_sum.cuh", "block_sum<float, 256>");
    const auto kernel = jit->compile("block_sum", source);
    const dim3 grid = blocks_for(values.size(), kThreads);
    std::vector<float> sums(grid.x);
    jit->launch(kernel, {.grid_dim = grid, .block_dim = dim3(kThreads)}, sums.data(), values.data(),
                static_cast<int>(values.size()));
    wait();
    return std::accumulate(sums.begin(), sums.end(), 0.0f);
}

}  // namespace mykernels
