#!/usr/bin/env bash
# Builds the benchmarks and runs them.   usage: bench.sh [FILTER]    (part of a program's name)
# A run of all of them is kept as benchmarks/results/cpu-<date>.json, with the machine's CPU and
# compiler. (A GPU's numbers come from gpu_check.sh --bench.)
set -eu
cd "$(dirname "$0")/.."
build=build/bench
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDEEP_JIT_BUILD_TESTS=OFF \
    -DDEEP_JIT_BUILD_EXAMPLES=OFF >/dev/null
cmake --build "$build" -j "$(nproc)"

parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
status=0
shopt -s nullglob
for program in "$build"/benchmarks/bench_*"${1:-}"*; do
    name=${program##*/bench_}
    arguments=()
    if grep -q '"report.hpp"' "benchmarks/$name.cpp"; then arguments=("--json=$parts/$name"); fi
    echo "== $name"
    "$program" "${arguments[@]}" || status=1
done
if [ $# -gt 0 ] || [ "$status" -ne 0 ]; then exit "$status"; fi

# member NAME TEXT: one line of a JSON object.
member() { printf '    "%s": "%s"' "$1" "${2//[\\\"]/}"; }
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
out=benchmarks/results/cpu-$(date -u +%Y-%m-%d).json
mkdir -p benchmarks/results
{
    printf '{\n  "machine": {\n'
    member cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" && printf ',\n'
    member cpus "$(nproc)" && printf ',\n'
    member compiler "$("$compiler" --version | head -n 1)" && printf ',\n'
    member system "$(uname -sr | sed "s/-.*//")" && printf ',\n'
    member date "$(date -u +%Y-%m-%d)"
    printf '\n  }'
    for part in "$parts"/*; do
        printf ',\n  "%s": ' "${part##*/}"
        sed '2,$s/^/  /' "$part" | head -c -1
    done
    printf '\n}\n'
} >"$out"
echo "== $out"
