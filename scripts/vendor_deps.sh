#!/usr/bin/env bash
# Copies GoogleTest's source, Google Benchmark and CUTLASS's headers into .deps/ (ignored by git),
# for a machine without a network.
set -eu
cd "$(dirname "$0")/.."
rm -rf .deps && mkdir -p .deps/benchmark/include .deps/benchmark/lib
cp -r "${DEEP_JIT_GTEST_SOURCE:-/usr/src/googletest}" .deps/googletest
cp -r /usr/include/benchmark .deps/benchmark/include
# One plain file, under the name that programs will look for: no links.
library=$(echo /usr/lib/*/libbenchmark.so)
name=$(objdump -p "$library" | sed -n 's/.*SONAME *//p')
cp -L "$library" ".deps/benchmark/lib/$name"
cat >.deps/benchmark/benchmarkConfig.cmake <<'END_OF_CONFIG'
add_library(benchmark::benchmark SHARED IMPORTED)
file(GLOB library ${CMAKE_CURRENT_LIST_DIR}/lib/libbenchmark.so*)
set_target_properties(benchmark::benchmark PROPERTIES IMPORTED_LOCATION ${library}
                      INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_CURRENT_LIST_DIR}/include)
END_OF_CONFIG

# What of CUTLASS a kernel includes, from the package that NVIDIA publishes.
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
python=python3
[ ! -x .venv/bin/python ] || python=.venv/bin/python
"$python" -m pip download --quiet --no-deps --only-binary=:all: --dest "$temporary" \
    nvidia-cutlass==4.2.0.0
"$python" -m zipfile -e "$temporary"/nvidia_cutlass-*.whl "$temporary/cutlass"
mkdir -p .deps/cutlass/include
cp -r "$temporary"/cutlass/cutlass_library/source/include/{cutlass,cute} .deps/cutlass/include
cp "$temporary"/cutlass/nvidia_cutlass-*.dist-info/licenses/LICENSE.txt .deps/cutlass
du -sh .deps
