#!/usr/bin/env bash
# Build, tests and benchmarks on a machine with an NVIDIA GPU; no network is needed.
# usage: gpu_check.sh [--bench]
# Uses .deps/ (scripts/vendor_deps.sh) where GoogleTest or Google Benchmark are not installed.
# Results go to $OUT, else to benchmarks/results/. All steps run; fails when one failed.
set -u
cd "$(dirname "$0")/.." || exit 1
out=${OUT:-benchmarks/results}
mkdir -p "$out"
out=$(cd "$out" && pwd)
build=build/gpu
failures=()
python=python3
[ ! -x .venv/bin/python ] || python=.venv/bin/python

# step NAME SECONDS COMMAND...: runs it, keeps its output, goes on when it fails.
step() {
    local name=$1 limit=$2 start=$SECONDS
    shift 2
    echo "== $name"
    if ! timeout --kill-after=10 "$limit" "$@" >"$out/$name.log" 2>&1; then
        failures+=("$name")
        tail -n 60 "$out/$name.log"
    fi
    grep -aE '^\[  (PASSED|FAILED)  \] [0-9]+ tests?|[0-9]+ (passed|failed).* in [0-9.]+s' "$out/$name.log"
    echo "== $name: $((SECONDS - start)) s"
}

generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
gtest=()
if [ -d .deps/googletest ]; then gtest=("-DDEEP_JIT_GTEST_SOURCE=$PWD/.deps/googletest"); fi
step configure 60 cmake -S . -B "$build" "${generator[@]}" "${gtest[@]}" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_PREFIX_PATH=$PWD/.deps/benchmark"
step build 300 cmake --build "$build" -j "$(nproc)"

# The real driver, not the stand-in: no LD_LIBRARY_PATH here.
for tests in unit_tests cuda_unit_tests gpu_tests; do
    if [ -x "$build/tests/$tests" ]; then
        step "$tests" 180 "$build/tests/$tests" "--gtest_output=xml:$out/$tests.xml"
    fi
done
if compgen -G 'tests/gpu/*.py' >/dev/null; then
    step gpu_python 240 "$python" -m pytest -q tests/gpu --junitxml "$out/gpu_python.xml"
fi

if [ "${1:-}" = --bench ]; then
    shopt -s nullglob
    for program in "$build"/benchmarks/bench_*; do
        name=${program##*/}
        arguments=()
        # Those made with Google Benchmark write JSON themselves.
        if grep -q '#include <benchmark/' "benchmarks/${name#bench_}.cpp"; then
            arguments=(--benchmark_repetitions=5 --benchmark_report_aggregates_only=true
                --benchmark_min_time=0.1 "--benchmark_out=$out/$name.json" --benchmark_out_format=json)
        fi
        step "$name" 120 "$program" "${arguments[@]}"
    done
fi

"$python" scripts/gpu_report.py "$out" "${failures[@]}"
[ ${#failures[@]} -eq 0 ]
