#!/usr/bin/env bash
# Copies GoogleTest's source and Google Benchmark into .deps/ (ignored by git), for a machine
# without a network.
set -eu
cd "$(dirname "$0")/.."
rm -rf .deps && mkdir -p .deps/benchmark/include .deps/benchmark/lib
cp -r "${DEEP_JIT_GTEST_SOURCE:-/usr/src/googletest}" .deps/googletest
cp -r /usr/include/benchmark .deps/benchmark/include
# One plain file, under the name that programs will look for: no links.
library=$(echo /usr/lib/*/libbenchmark.so)
name=$(objdump -p "$library" | sed -n 's/.*SONAME *//p')
cp -L "$library" ".deps/benchmark/lib/$name"
cat >.deps/benchmark/benchmarkConfig.cmake <<'END'
add_library(benchmark::benchmark SHARED IMPORTED)
file(GLOB library ${CMAKE_CURRENT_LIST_DIR}/lib/libbenchmark.so*)
set_target_properties(benchmark::benchmark PROPERTIES IMPORTED_LOCATION ${library}
                      INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_CURRENT_LIST_DIR}/include)
END
du -sh .deps
