#!/usr/bin/env bash
# Builds the benchmarks and runs them.   usage: bench.sh [FILTER]    (part of a program's name)
set -eu
cd "$(dirname "$0")/.."
cmake --preset release -DDEEP_JIT_BUILD_TESTS=OFF -DDEEP_JIT_BUILD_EXAMPLES=OFF >/dev/null
cmake --build --preset release -j "$(nproc)"
shopt -s nullglob
for program in build/release/benchmarks/bench_*"${1:-}"*; do
    echo "== ${program##*/}"
    "$program"
done
