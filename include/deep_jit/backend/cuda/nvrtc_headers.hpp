// Headers that NVRTC gets from memory: the standard ones that device code includes, for which it
// has none, and what NVCC has without any include.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <deep_jit/utils/filesystem.hpp>
#include <deep_jit/utils/hash.hpp>

namespace deep_jit::cuda::nvrtc {

/// A header by the name in its #include.
struct Header {
    std::string name;
    std::string text;
};

/// Included before every source.
inline constexpr const char* kPreludeName = "deep_jit/nvrtc_prelude.h";

namespace detail {

// Types as CCCL has them under NVRTC, since both may be seen: a 64-bit integer is a long long.
// The two functions are templates so that those of cuda_device_runtime_api.h, where a source
// includes it, are another overload, and the better one.
inline constexpr const char* kPrelude = R"(
#ifndef DEEP_JIT_NVRTC_PRELUDE
#define DEEP_JIT_NVRTC_PRELUDE
typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
namespace std {
using ::int8_t;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::uint8_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::intptr_t;
using ::uintptr_t;
using ::size_t;
using ::ptrdiff_t;
typedef decltype(nullptr) nullptr_t;
}
template <int kUnused = 0>
static __device__ __forceinline__ void cudaGridDependencySynchronize() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
template <int kUnused = 0>
static __device__ __forceinline__ void cudaTriggerProgrammaticLaunchCompletion() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
#endif
)";

/// `before`, then cuda::std's header if it is there, with its names in std; else `without`.
inline std::string onto_cuda_std(const std::string& name, const std::string& before,
                                 const std::string& without) {
    const std::string guard = "DEEP_JIT_STD_" + name;
    return "#ifndef " + guard + "\n#define " + guard + "\n" + before +
           "#if __has_include(<cuda/std/" + name + ">)\n#include <cuda/std/" + name +
           ">\nnamespace std { using namespace ::cuda::std; }\n#else\n" + without +
           "#endif\n#endif\n";
}

inline std::string needs_cccl(const std::string& name) {
    return "#error \"<" + name + "> stands for <cuda/std/" + name +
           "> here, which the CCCL headers that were found do not have; or none were found. They "
           "come with the CUDA toolkit and with the Python package nvidia-cuda-cccl\"\n";
}

/// <algorithm> has no header in cuda/std before CCCL 3.1; its parts have.
inline std::string algorithm_text() {
    std::string parts;
    for (const char* part :
         {"all_of",      "any_of",      "clamp",        "copy",    "copy_n",      "count",
          "count_if",    "equal",       "fill",         "fill_n",  "find",        "find_if",
          "for_each",    "iter_swap",   "lower_bound",  "max",     "max_element", "min",
          "min_element", "minmax",      "none_of",      "reverse", "rotate",      "swap_ranges",
          "transform",   "upper_bound", "binary_search"}) {
        const std::string name = "cuda/std/__algorithm/" + std::string(part) + ".h";
        parts += "#if __has_include(<" + name + ">)\n#include <" + name + ">\n#endif\n";
    }
    return parts +
           "#if __has_include(<cuda/std/__algorithm/min.h>)\n"
           "namespace std { using namespace ::cuda::std; }\n#else\n" +
           needs_cccl("algorithm") + "#endif\n";
}

inline constexpr const char* kFloatMacros = R"(
#ifndef FLT_MAX
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define DBL_MANT_DIG 53
#define FLT_DIG 6
#define DBL_DIG 15
#define FLT_MIN 1.17549435082228750797e-38F
#define DBL_MIN 2.22507385850720138309e-308
#define FLT_MAX 3.40282346638528859812e+38F
#define DBL_MAX 1.79769313486231570815e+308
#define FLT_EPSILON 1.1920928955078125e-7F
#define DBL_EPSILON 2.22044604925031308085e-16
#define FLT_MIN_EXP (-125)
#define DBL_MIN_EXP (-1021)
#define FLT_MAX_EXP 128
#define DBL_MAX_EXP 1024
#endif
)";

inline constexpr const char* kMathMacros = R"(
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
)";

inline constexpr const char* kOffsetof = R"(
#undef offsetof
#define offsetof(type, member) ((size_t)__INTADDR__(&(((type*)0)->member)))
)";

inline constexpr const char* kIntegerMacros = R"(
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define INT8_MIN (-INT8_MAX - 1)
#define INT16_MIN (-INT16_MAX - 1)
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1)
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define SIZE_MAX UINT64_MAX
)";

inline constexpr const char* kLimitMacros = R"(
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ULL
)";

inline std::vector<Header> make_headers() {
    std::vector<Header> out = {{kPreludeName, kPrelude}};
    for (const char* name : {"array",          "atomic",     "barrier",     "bit",
                             "bitset",         "chrono",     "complex",     "concepts",
                             "expected",       "functional", "iterator",    "latch",
                             "limits",         "mdspan",     "memory",      "numbers",
                             "numeric",        "optional",   "ranges",      "ratio",
                             "semaphore",      "span",       "tuple",       "type_traits",
                             "utility",        "variant",    "string_view", "inplace_vector",
                             "source_location"})
        out.push_back({name, onto_cuda_std(name, "", needs_cccl(name))});
    out.push_back({"algorithm", algorithm_text()});

    // <cX> and <X.h>, also without CCCL. What they declare, NVRTC mostly has without them.
    const auto both = [&](const std::string& name, const std::string& before,
                          const std::string& without) {
        out.push_back({"c" + name, onto_cuda_std("c" + name, before, without)});
        out.push_back({name + ".h", "#include <c" + name + ">\n"});
    };
    both("stdint", "", kIntegerMacros);
    both("limits", "", kLimitMacros);
    both("stddef", kOffsetof, "");
    both("float", kFloatMacros, "");
    both("string", "", "namespace std { using ::memcpy; using ::memset; }\n");
    both("stdlib", "", "namespace std { using ::malloc; using ::free; using ::abs; }\n");
    both("time", "", "namespace std { using ::clock; }\n");
    out.push_back({"cmath", onto_cuda_std("cmath", kMathMacros, needs_cccl("cmath"))});
    out.push_back({"math.h", kMathMacros});
    const char* const print =
        "#ifndef DEEP_JIT_STD_cstdio\n#define DEEP_JIT_STD_cstdio\nnamespace std { using ::printf; "
        "}\n#endif\n";
    out.push_back({"cstdio", print});
    out.push_back({"stdio.h", print});
    // As in C, each time anew.
    const char* const check =
        "#ifdef NDEBUG\n#undef assert\n#define assert(condition) ((void)0)\n#endif\n";
    out.push_back({"cassert", check});
    out.push_back({"assert.h", check});
    // Declared by NVRTC itself.
    for (const char* name : {"initializer_list", "new", "version"}) out.push_back({name, ""});
    return out;
}

}  // namespace detail

/// All of them, the same for every kernel.
inline const std::vector<Header>& standard_headers() {
    static const auto& headers = *new auto(detail::make_headers());
    return headers;
}

/// Stands for them in the key of a kernel.
inline const std::string& headers_digest() {
    static const auto& digest = *new std::string([] {
        hash::FNV1a hash;
        for (const auto& header : standard_headers()) hash.update(header.name).update(header.text);
        return hash.get_hex_digest();
    }());
    return digest;
}

/// The same, and empty ones in place of runtime headers that these directories do not have: NVRTC
/// declares what device code needs of them.
inline std::vector<Header> headers_for(const std::vector<std::filesystem::path>& include_dirs) {
    auto out = standard_headers();
    for (const char* name : {"cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h",
                             "vector_types.h", "vector_functions.h"}) {
        bool found = false;
        for (const auto& directory : include_dirs) found = found || is_file(directory / name);
        if (!found)
            out.push_back({name, ""});
    }
    return out;
}

}  // namespace deep_jit::cuda::nvrtc
