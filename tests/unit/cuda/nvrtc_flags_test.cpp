// NVCC's flags in NVRTC's words. NVRTC itself is not needed.
#include <deep_jit/backend/cuda/backend.hpp>

#include "unit/support.hpp"

namespace {

using namespace deep_jit;
using namespace deep_jit_test;
using Flags = std::vector<std::string>;

Flags translate(const Flags& flags) { return cuda::translate_flags(flags); }
std::string refusal(const Flags& flags) {
    return message_of<ConfigError>([&] { cuda::translate_flags(flags); });
}

TEST(CudaNvrtcFlags, TheDefaultOnes) {
    auto options = cuda::CompilerOptions::default_options(Env("CUDATEST"), cuda::Device());
    options.arch = "90a";
    EXPECT_EQ(translate(options.get_flags()),
              (Flags{"--gpu-architecture=sm_90a", "--ptxas-options=--register-usage-level=10",
                     "--std=c++20"}));
}

TEST(CudaNvrtcFlags, EveryOption) {
    const cuda::CompilerOptions options{
        .optimize_level = "2",
        .fast_math = true,
        .ptxas_verbose = true,
        .ptxas_register_usage_level = 5,
        .check_no_spills = true,
        .check_no_local_memory = true,
        .with_line_info = true,
        .arch = "100f",
        .nvcc_flags = Flags{"-std=c++17"},
        .extra_nvcc_flags = {"-DA=1"},
    };
    EXPECT_EQ(translate(options.get_flags()),
              (Flags{"--gpu-architecture=sm_100f", "--use_fast_math", "--ptxas-options=--verbose",
                     "--ptxas-options=--register-usage-level=5", "--ptxas-options=--warn-on-spills",
                     "--ptxas-options=--warn-on-local-memory-usage", "--generate-line-info",
                     "--std=c++17", "--define-macro=A=1"}));
}

TEST(CudaNvrtcFlags, EverySpellingOfAValue) {
    EXPECT_EQ(
        translate({"-DA", "-DB=x y", "-D", "C=$1", "--define-macro=D", "--define-macro", "E"}),
        (Flags{"--define-macro=A", "--define-macro=B=x y", "--define-macro=C=$1",
               "--define-macro=D", "--define-macro=E"}));
    EXPECT_EQ(translate({"-I/a b", "-I=/c", "-I", "/d,/e", "--include-path=/f", "-isystem=/g",
                         "-isystem", "/h", "-U", "X", "-include", "y.h"}),
              (Flags{"--include-path=/a b", "--include-path=/c", "--include-path=/d",
                     "--include-path=/e", "--include-path=/f", "--include-path=/g",
                     "--include-path=/h", "--undefine-macro=X", "--pre-include=y.h"}));
    for (const Flags& spelling :
         {Flags{"-arch=sm_90"}, {"-arch", "sm_90"}, {"--gpu-architecture", "sm_90"}})
        EXPECT_EQ(translate(spelling), Flags{"--gpu-architecture=sm_90"});
    EXPECT_EQ(translate({"-std", "c++17"}), Flags{"--std=c++17"});
    EXPECT_EQ(translate({"-Xptxas", "-v,-O2", "--ptxas-options=-dlcm=cg"}),
              (Flags{"--ptxas-options=-v", "--ptxas-options=-O2", "--ptxas-options=-dlcm=cg"}));
    EXPECT_EQ(translate({"-ftz", "-fmad=false", "--prec-div", "true", "-prec-sqrt", "-DA"}),
              (Flags{"--ftz=true", "--fmad=false", "--prec-div=true", "--prec-sqrt=true",
                     "--define-macro=A"}));
}

TEST(CudaNvrtcFlags, OthersThatNvrtcHasToo) {
    EXPECT_EQ(translate({"-maxrregcount=64", "-lineinfo", "-G", "-w", "-restrict", "-rdc=true",
                         "--diag-suppress=177,550", "-Xcudafe", "--diag_suppress=186",
                         "--resource-usage", "--minimal", "-Ofc=max", "--split-compile=0"}),
              (Flags{"--maxrregcount=64", "--generate-line-info", "--device-debug",
                     "--disable-warnings", "--restrict", "--relocatable-device-code=true",
                     "--diag-suppress=177,550", "--diag-suppress=186", "--ptxas-options=--verbose",
                     "--minimal", "--Ofast-compile=max", "--split-compile=0"}));
}

TEST(CudaNvrtcFlags, OfSingleValuesTheLastCounts) {
    EXPECT_EQ(
        translate({"-arch=sm_90a", "-std=c++20", "-DA=1", "-Xptxas=-v", "-ftz=true", "-arch=sm_80",
                   "-DA=2", "--std=c++17", "-Xptxas=-O1", "-diag-suppress=1", "-diag-suppress=2",
                   "-ftz=false", "-w", "-w"}),
        (Flags{"--define-macro=A=1", "--ptxas-options=-v", "--gpu-architecture=sm_80",
               "--define-macro=A=2", "--std=c++17", "--ptxas-options=-O1", "--diag-suppress=1",
               "--diag-suppress=2", "--ftz=false", "--disable-warnings", "--disable-warnings"}));
}

TEST(CudaNvrtcFlags, WhatConcernsTheHostCompilerOnlyIsLeftOut) {
    EXPECT_EQ(
        translate({"-O3", "-O", "2", "--optimize=1", "-ccbin", "g++-12", "-t=4", "--threads", "2",
                   "--expt-relaxed-constexpr", "-extended-lambda", "-m64", "-Xcompiler=-fPIC,-O2",
                   "-Xcompiler", "-Wall", "-Wno-deprecated", "--Wext-lambda-captures-this"}),
        Flags());
}

TEST(CudaNvrtcFlags, WhatCannotBeSaidIsRefusedByName) {
    for (const char* flag : {"--dryrun", "--keep", "-gencode=arch=compute_90,code=sm_90",
                             "--gpu-code=sm_90", "-Werror=all-warnings", "--Werror", "-lcudart",
                             "-L/x", "-dc", "--pch", "--nonsense", "-x", "file.cu", ""})
        EXPECT_CONTAINS(refusal({"-DA", flag}), std::string("'") + flag + "' cannot be translated");
    EXPECT_CONTAINS(refusal({"-arch=native"}), "'--gpu-architecture=native'");
    EXPECT_CONTAINS(refusal({"-Xcompiler=-O2,-DX"}), "'--compiler-options=-DX'");
    EXPECT_CONTAINS(refusal({"-Xcompiler", "-march=native"}), "'--compiler-options=-march=native'");
    EXPECT_CONTAINS(refusal({"-Xcompiler=-Wp,-DX"}), "'--compiler-options=-Wp'");
    EXPECT_CONTAINS(refusal({"-Xcudafe", "--inline"}), "'-Xcudafe --inline'");
    EXPECT_CONTAINS(refusal({"-DA", "-I"}), "its value is missing");
    EXPECT_CONTAINS(refusal({"--dryrun"}), "JIT_COMPILER");
}

}  // namespace
