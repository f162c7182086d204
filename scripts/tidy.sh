#!/usr/bin/env bash
# clang-tidy over every public header, and over the examples, which instantiate the templates.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p build/tidy
cuda=() && home=$(scripts/cuda_home.sh) && cuda=(-isystem "$home/include")

# include_all NAME HEADER...: one source file that includes them.
include_all() {
    local name=$1
    shift
    printf '#include <%s>\n' "${@#include/}" >"build/tidy/$name.cpp"
}
mapfile -t headers < <(find include -name '*.hpp' ! -path '*/backend/cuda/*' ! -path '*/python/*' \
    ! -name python_api.hpp | sort)
include_all all "${headers[@]}"
sources=(build/tidy/all.cpp examples/scale/main.cpp examples/kernel_library/src/mykernels.cpp)
if [ ${#cuda[@]} -gt 0 ] && [ -e include/deep_jit/backend/cuda/backend.hpp ]; then
    mapfile -t headers < <(find include -path '*/backend/cuda/*.hpp' | sort)
    include_all cuda "${headers[@]}"
    sources+=(build/tidy/cuda.cpp examples/scale/cuda.cpp)
fi

# NOLINT comments are respected; warnings of system headers are not shown.
printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -I {} clang-tidy --quiet {} -- \
    -std=c++20 -Iinclude "${cuda[@]}" '-DMYKERNELS_VERSION="0"' -Wall -Wextra 2>&1 |
    grep -vE '^[0-9]+ warnings? (and [0-9]+ errors? )?generated|^Suppressed|^Use -header-filter'
exit "${PIPESTATUS[1]}"
