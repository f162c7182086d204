#!/usr/bin/env bash
# Builds and runs examples/scale. Needs a C++20 compiler, nothing else.
set -eu
cd "$(dirname "$0")/.."
for compiler in "${CXX:-}" g++ c++ clang++; do
    if [ -n "$compiler" ] && command -v "$compiler" >/dev/null; then break; fi
done

sources=(examples/scale/main.cpp)
flags=(-std=c++20 -O2 -Wall -Wextra -Iinclude)
if home=$(scripts/cuda_home.sh) && [ -e include/deep_jit/backend/cuda/backend.hpp ]; then
    sources+=(examples/scale/cuda.cpp)
    flags+=(-isystem "$home/include" -DDEEP_JIT_WITH_CUDA=1)
fi

program=build/demo/scale
mkdir -p build/demo
if [ ! -e "$program" ] || [ -n "$(find include examples/scale scripts/demo.sh -newer "$program" -print -quit)" ]; then
    echo "demo: building $program with $compiler"
    "$compiler" "${flags[@]}" "${sources[@]}" -o "$program" -pthread -ldl
fi

# Kernels are kept in $HOME/.dj, or here when there is no home to write to.
if [ -z "${DJ_JIT_CACHE_DIR:-}" ] && [ ! -w "${HOME:-/nonexistent}" ]; then
    export DJ_JIT_CACHE_DIR="$PWD/build/demo/cache"
fi
"$program"
