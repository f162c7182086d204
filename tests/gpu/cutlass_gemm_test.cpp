// Kernels out of CUTLASS's headers, as kernel libraries instantiate them: a template kernel, named
// by a function that nobody calls. D = A * B of bf16 matrices, with sums in float.
//
// The headers are in .deps/cutlass/include (scripts/vendor_deps.sh), or where DEEP_JIT_CUTLASS_DIR
// says.
#include "gpu/support.hpp"

namespace {

using namespace deep_jit_gpu_test;

constexpr int kM = 512, kN = 512, kK = 256;

/// CUTLASS 3's universal kernel with an Ampere main loop, whose parameters are plain pointers and
/// strides: they are put together on the device.
constexpr const char* kUniversal = R"(
#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/bfloat16.h>
#include <cutlass/epilogue/collective/default_epilogue.hpp>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/collective/collective_mma.hpp>
#include <cutlass/gemm/dispatch_policy.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

using namespace cute;
using Element = cutlass::bfloat16_t;

template <int kTileM, int kTileN, int kTileK, int kStages>
struct Configuration {
    using Tile = Shape<Int<kTileM>, Int<kTileN>, Int<kTileK>>;
    // A is (m, k), B is (n, k), both with k running fastest; D is (m, n) with n running fastest.
    using StrideAB = Stride<int64_t, _1, int64_t>;
    using StrideD = Stride<int64_t, _1, int64_t>;
    using Mma = TiledMMA<MMA_Atom<SM80_16x8x16_F32BF16BF16F32_TN>, Layout<Shape<_2, _2, _1>>,
                         cute::Tile<_32, _32, _16>>;
    using SmemLayout =
        decltype(composition(Swizzle<3, 3, 3>{}, Layout<Shape<_8, _64>, Stride<_64, _1>>{}));
    using SmemCopy = Copy_Atom<SM75_U32x4_LDSM_N, Element>;
    using GlobalCopy = decltype(make_tiled_copy(
        Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<cute::uint128_t>, Element>{},
        Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{}));
    using MainLoop = cutlass::gemm::collective::CollectiveMma<
        cutlass::gemm::MainloopSm80CpAsync<kStages>, Tile, Element, StrideAB, Element, StrideAB,
        Mma, GlobalCopy, SmemLayout, SmemCopy, cute::identity, GlobalCopy, SmemLayout, SmemCopy,
        cute::identity>;
    using Epilogue = cutlass::epilogue::collective::DefaultEpilogue<
        float, StrideD, StrideD,
        cutlass::epilogue::thread::LinearCombination<float, 1, float, float>,
        cutlass::gemm::EpilogueDefault>;
    using Kernel =
        cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, MainLoop, Epilogue>;
};

template <typename Kernel>
__global__ void __launch_bounds__(Kernel::MaxThreadsPerBlock)
gemm(const Element* a, const Element* b, float* d, int m, int n, int k) {
    static_assert(Kernel::SharedStorageSize == SMEM_BYTES);
    static_assert(Kernel::MaxThreadsPerBlock == 128);
    extern __shared__ __align__(128) char smem[];
    typename Kernel::Params params{};
    params.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    params.problem_shape = make_shape(m, n, k, 1);
    params.mainloop.ptr_A = a;
    params.mainloop.dA = make_stride(int64_t(k), _1{}, int64_t(0));
    params.mainloop.ptr_B = b;
    params.mainloop.dB = make_stride(int64_t(k), _1{}, int64_t(0));
    params.epilogue.ptr_D = d;
    params.epilogue.dD = make_stride(int64_t(n), _1{}, int64_t(0));
    Kernel{}(params, smem);
}

static void __instantiate_kernel() {
    auto ptr = reinterpret_cast<void*>(&gemm<Configuration<128, 128, 64, 3>::Kernel>);
}
)";

/// Hopper's own way: the copy engine fills swizzled tiles, warp groups multiply them from shared
/// memory.
constexpr const char* kHopper = R"(
#include <cuda.h>
#include <cute/tensor.hpp>
#include <cute/arch/copy_sm90_tma.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/bfloat16.h>

using namespace cute;
using Element = cutlass::bfloat16_t;
using Barrier = cutlass::arch::ClusterTransactionBarrier;

template <int kTileM, int kTileN, int kTileK, int kStages>
struct Tiles {
    using LayoutA = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<Element>{},
                                           Shape<Int<kTileM>, Int<kTileK>, Int<kStages>>{}));
    using LayoutB = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<Element>{},
                                           Shape<Int<kTileN>, Int<kTileK>, Int<kStages>>{}));
    alignas(1024) Element a[cosize_v<LayoutA>];
    alignas(1024) Element b[cosize_v<LayoutB>];
    alignas(8) uint64_t full[kStages];
    static constexpr int kBytes = (kTileM + kTileN) * kTileK * int(sizeof(Element));
};

template <int kTileM, int kTileN, int kTileK, int kStages>
__global__ void __launch_bounds__(128, 1)
gemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
     float* d, int m, int n, int k) {
    using Shared = Tiles<kTileM, kTileN, kTileK, kStages>;
    static_assert(sizeof(Shared) <= SMEM_BYTES);
    extern __shared__ __align__(1024) char smem[];
    auto& shared = *reinterpret_cast<Shared*>(smem);
    const Tensor a = make_tensor(make_smem_ptr(shared.a), typename Shared::LayoutA{});
    const Tensor b = make_tensor(make_smem_ptr(shared.b), typename Shared::LayoutB{});

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < kStages; ++stage) Barrier::init(&shared.full[stage], 1);
        cutlass::arch::fence_barrier_init();
    }
    __syncthreads();
    const int tiles = k / kTileK;
    const auto fetch = [&](int tile) {
        const int stage = tile % kStages;
        Barrier::arrive_and_expect_tx(&shared.full[stage], Shared::kBytes);
        const auto hint = static_cast<uint64_t>(TMA::CacheHintSm90::EVICT_NORMAL);
        SM90_TMA_LOAD_2D::copy(&a_map, &shared.full[stage], hint, &a(0, 0, stage), tile * kTileK,
                               int(blockIdx.x) * kTileM);
        SM90_TMA_LOAD_2D::copy(&b_map, &shared.full[stage], hint, &b(0, 0, stage), tile * kTileK,
                               int(blockIdx.y) * kTileN);
    };
    if (threadIdx.x == 0)
        for (int tile = 0; tile < kStages && tile < tiles; ++tile) fetch(tile);

    const auto mma = make_tiled_mma(
        SM90_64x128x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::K>{});
    static_assert(size(decltype(mma){}) == 128);
    const auto thread_mma = mma.get_thread_slice(threadIdx.x);
    const auto fragment_a = thread_mma.make_fragment_A(thread_mma.partition_A(a));
    const auto fragment_b = thread_mma.make_fragment_B(thread_mma.partition_B(b));
    const Tensor global = make_tensor(make_gmem_ptr(d), make_shape(m, n), make_stride(n, _1{}));
    const Tensor tile_d = local_tile(global, Shape<Int<kTileM>, Int<kTileN>>{},
                                     make_coord(int(blockIdx.x), int(blockIdx.y)));
    auto out = thread_mma.partition_C(tile_d);
    auto sums = thread_mma.make_fragment_C(out);
    clear(sums);

    for (int tile = 0; tile < tiles; ++tile) {
        const int stage = tile % kStages;
        Barrier::wait(&shared.full[stage], tile / kStages % 2);
        warpgroup_arrive();
        gemm(mma, fragment_a(_, _, _, stage), fragment_b(_, _, _, stage), sums);
        warpgroup_commit_batch();
        warpgroup_wait<0>();
        __syncthreads();
        if (threadIdx.x == 0 && tile + kStages < tiles)
            fetch(tile + kStages);
    }
    copy(sums, out);
}

static void __instantiate_kernel() {
    auto ptr = reinterpret_cast<void*>(&gemm<128, 128, 64, 2>);
}
)";

std::uint16_t bf16(int value) {
    const auto number = static_cast<float>(value);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof(bits));
    return static_cast<std::uint16_t>(bits >> 16);
}

/// Small whole numbers, exact in bf16, without a pattern that a wrong index could keep.
std::vector<int> matrix(std::size_t count, std::uint32_t seed) {
    std::vector<int> out(count);
    for (auto& value : out) {
        seed = seed * 1664525 + 1013904223;
        value = static_cast<int>(seed >> 24) % 9 - 4;
    }
    return out;
}

class GpuCutlass : public GpuTest {
protected:
    void SetUp() override {
        GpuTest::SetUp();
        if (IsSkipped())
            return;
        include = get_env<std::string>("DEEP_JIT_CUTLASS_DIR",
                                       std::string(DEEP_JIT_REPO_ROOT "/.deps/cutlass/include"));
        if (!fs::exists(include / "cutlass/cutlass.h"))
            GTEST_SKIP() << "there are no CUTLASS headers in " << include
                         << ": run scripts/vendor_deps.sh, or set DEEP_JIT_CUTLASS_DIR";
        if (jit->device.get_arch_pair() != std::pair(9, 0))
            GTEST_SKIP() << "the device is not of compute capability 9.0";
        jit = make({include});
    }

    /// Both with k running fastest: A is (m, k), B is (n, k).
    std::vector<int> a = matrix(std::size_t{kM} * kK, 1), b = matrix(std::size_t{kN} * kK, 2);

    static std::vector<std::uint16_t> to_bf16(const std::vector<int>& values) {
        std::vector<std::uint16_t> out;
        for (const int value : values) out.push_back(bf16(value));
        return out;
    }

    /// Sums of products of such numbers are exact in float too.
    std::vector<float> expected() const {
        std::vector<float> out;
        for (int m = 0; m < kM; ++m)
            for (int n = 0; n < kN; ++n) {
                int sum = 0;
                for (int k = 0; k < kK; ++k) sum += a[m * kK + k] * b[n * kK + k];
                out.push_back(static_cast<float>(sum));
            }
        return out;
    }

    static CUtensorMap tensor_map(std::uint16_t* address, int rows) {
        CUtensorMap out{};
        const cuuint64_t sizes[] = {kK, static_cast<cuuint64_t>(rows)};
        const cuuint64_t strides[] = {kK * 2};
        const cuuint32_t box[] = {64, 128};
        const cuuint32_t steps[] = {1, 1};
        if (kernels_run())
            DJ_CUDA_DRIVER_CHECK(driver::lazy_cuTensorMapEncodeTiled(
                &out, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, address, sizes, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
        return out;
    }

    fs::path include;
};

TEST_F(GpuCutlass, TheUniversalKernel) {
    constexpr int kSmemBytes = 3 * (128 + 128) * 64 * 2;
    const auto kernel =
        jit->compile("cutlass_universal", kUniversal,
                     {.extra_nvcc_flags = {"-DSMEM_BYTES=" + std::to_string(kSmemBytes)}});
    const DeviceArray<std::uint16_t> da(to_bf16(a)), db(to_bf16(b));
    const DeviceArray<float> d(std::size_t{kM} * kN);
    jit->launch(kernel,
                {.num_smem_bytes = kSmemBytes,
                 .grid_dim = dim3(kM / 128, kN / 128),
                 .block_dim = dim3(128)},
                da.get(), db.get(), d.get(), kM, kN, kK);
    EXPECT_TRUE(same(d.download(), expected()));
}

TEST_F(GpuCutlass, AHopperKernel) {
    constexpr int kSmemBytes = 2 * (128 + 128) * 64 * 2 + 1024;
    const auto kernel =
        jit->compile("cutlass_hopper", kHopper,
                     {.extra_nvcc_flags = {"-DSMEM_BYTES=" + std::to_string(kSmemBytes)}});
    const DeviceArray<std::uint16_t> da(to_bf16(a)), db(to_bf16(b));
    const DeviceArray<float> d(std::size_t{kM} * kN);
    jit->launch(kernel,
                {.num_smem_bytes = kSmemBytes,
                 .grid_dim = dim3(kM / 128, kN / 128),
                 .block_dim = dim3(128)},
                tensor_map(da.get(), kM), tensor_map(db.get(), kN), d.get(), kM, kN, kK);
    EXPECT_TRUE(same(d.download(), expected()));
}

}  // namespace
