// Arguments: their bytes reach the kernel, and a list that does not fit is refused by name.
#include <array>
#include <cstring>

#include "unit/cuda/fixture.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;

constexpr const char* kTensor = R"(
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
extern "C" __global__ void tensor(int before, const __grid_constant__ TensorMap map, char after) {
    if (before == 12345 && map.opaque[0] == after) __trap();
}
)";
constexpr const char* kLarge = R"(
struct Large { unsigned char bytes[4096]; };
extern "C" __global__ void large(const __grid_constant__ Large block, int last) {
    if (block.bytes[last] == 255) __trap();
}
)";
constexpr const char* kMixed = R"(
struct Pair { double x; char tag; };
extern "C" __global__ void mixed(bool flag, short number, Pair pair, const float* pointer) {
    if (flag && number == 12345 && pair.x == 1 && pointer) __trap();
}
)";

struct Pair {
    double x;
    char tag;
};
struct Large {
    std::array<unsigned char, 4096> bytes;
};

class CudaArguments : public CudaStandIn {
protected:
    void SetUp() override {
        CudaStandIn::SetUp();
        if (IsSkipped())
            return;
        use_device(0);
        jit = std::make_unique<JIT>(config());
    }
    template <typename... Args>
    stand_in::Launch launch(const char* source, const Args&... args) {
        jit->launch(load(source), {.grid_dim = dim3(1), .block_dim = dim3(32)}, args...);
        return stand_in->last_launch();
    }
    template <typename... Args>
    std::string refusal(const char* source, const Args&... args) {
        const auto kernel = load(source);
        auto text = message_of<LaunchError>(
            [&] { jit->launch(kernel, {.grid_dim = dim3(1), .block_dim = dim3(32)}, args...); });
        EXPECT_EQ(stand_in->launch_count(), 0U);
        return text;
    }

    std::unique_ptr<JIT> jit;
};

TEST_F(CudaArguments, BytesOfEachArrive) {
    const float data = 0;
    const auto record = launch(kMixed, true, static_cast<short>(-3), Pair{2.5, 'x'}, &data);
    ASSERT_EQ(record.num_arguments, 4U);
    EXPECT_TRUE(record.argument<bool>(0));
    EXPECT_EQ(record.argument<short>(1), -3);
    EXPECT_EQ(record.argument<Pair>(2).x, 2.5);
    EXPECT_EQ(record.argument<Pair>(2).tag, 'x');
    EXPECT_EQ(record.argument<const float*>(3), &data);
}

TEST_F(CudaArguments, NoneAtAll) {
    EXPECT_CONTAINS(refusal(kNothing, 1), "argument 0 (4 bytes) is one too many");
    EXPECT_EQ(launch(kNothing).num_arguments, 0U);
}

TEST_F(CudaArguments, FourKibibytesByValue) {
    Large block{};
    for (std::size_t i = 0; i < 4096; ++i) block.bytes[i] = static_cast<unsigned char>(i * 7);
    const auto record = launch(kLarge, block, 4095);
    EXPECT_EQ(record.argument<Large>(0).bytes, block.bytes);
    EXPECT_EQ(record.argument<int>(1), 4095);
}

TEST_F(CudaArguments, ATensorMapByValue) {
    static_assert(alignof(CUtensorMap) >= 64 && sizeof(CUtensorMap) == 128);
    CUtensorMap map{};
    for (std::size_t i = 0; i < 16; ++i) map.opaque[i] = 0x0101010101010101ULL * i;
    const auto record = launch(kTensor, 7, map, 'z');
    const auto arrived = record.argument<CUtensorMap>(1);
    EXPECT_EQ(std::memcmp(&arrived, &map, sizeof(map)), 0);
    EXPECT_EQ(record.argument<int>(0), 7);
    EXPECT_EQ(record.argument<char>(2), 'z');
    const auto kernel = load(kTensor);
    EXPECT_EQ(kernel->param_sizes(), (std::vector<std::uint32_t>{4, 128, 1}));
}

TEST_F(CudaArguments, NoRefPtrIsTheAddressOfTheBytes) {
    CUtensorMap map{};
    map.opaque[3] = 42;
    struct TensorHandle : NoRefPtr {
        int more = 0;  // what a library keeps beside it
    } handle;
    handle.ptr = &map;
    EXPECT_EQ(launch(kTensor, 7, NoRefPtr{&map}, 'z').argument<CUtensorMap>(1).opaque[3], 42U);
    map.opaque[3] = 43;
    EXPECT_EQ(launch(kTensor, 7, handle, 'z').argument<CUtensorMap>(1).opaque[3], 43U);
    EXPECT_EQ(cuda::kernel_arg_pointer(handle), &map);
    const int number = 3;
    EXPECT_EQ(cuda::kernel_arg_pointer(number), &number);
}

TEST_F(CudaArguments, ANoRefPtrCountsAsAnArgument) {
    int storage = 0;
    EXPECT_CONTAINS(refusal(kTensor, 7, NoRefPtr{&storage}), "argument 2 (1 bytes) is missing");
    const auto text = refusal(kTensor, NoRefPtr{&storage}, 2.0, 'z');
    EXPECT_CONTAINS(text, "argument 1 has 8 bytes, but the kernel's parameter has 128 bytes");
    EXPECT_CONTAINS(text, "(?, 8, 1) bytes");
}

TEST_F(CudaArguments, TooFewAreRefused) {
    const float* pointer = nullptr;
    const auto text = refusal(kScale, pointer, pointer);
    EXPECT_CONTAINS(text, "Kernel scale");
    EXPECT_CONTAINS(text, "argument 2 (4 bytes) is missing");
    EXPECT_CONTAINS(text, "The kernel takes 3 argument(s) of (8, 8, 4) bytes");
    EXPECT_CONTAINS(text, "given are 2 of (8, 8) bytes");
}

TEST_F(CudaArguments, TooManyAreRefused) {
    const float* pointer = nullptr;
    const auto text = refusal(kScale, pointer, pointer, 3, 4.0);
    EXPECT_CONTAINS(text, "argument 3 (8 bytes) is one too many");
    EXPECT_CONTAINS(text, "given are 4 of (8, 8, 4, 8) bytes");
}

TEST_F(CudaArguments, AWrongSizeIsRefused) {
    const float* pointer = nullptr;
    const auto text = refusal(kScale, pointer, pointer, std::size_t{3});
    EXPECT_CONTAINS(text, "Kernel scale");
    EXPECT_CONTAINS(text, "argument 2 has 8 bytes, but the kernel's parameter has 4 bytes");
    EXPECT_CONTAINS(text, "(8, 8, 4) bytes; given are 3 of (8, 8, 8) bytes");
}

TEST_F(CudaArguments, AnArgumentThatChangesLaterDoesNotChangeTheLaunch) {
    int count = 5;
    const float* pointer = nullptr;
    launch(kScale, pointer, pointer, count);
    count = 6;
    EXPECT_EQ(stand_in->last_launch().argument<int>(2), 5);
}

}  // namespace
