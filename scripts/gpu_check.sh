#!/usr/bin/env bash
# Build, tests and benchmarks on a machine with an NVIDIA GPU; no network is needed.
# usage: gpu_check.sh [--bench]
# Uses .deps/ (scripts/vendor_deps.sh) where GoogleTest, Google Benchmark or CUTLASS are not
# installed. Results go to $OUT, else to build/gpu/out: gpu.json sums them up, gpu_check.log has all
# output, logs.tar.gz the logs and reports one by one. All steps run; fails when one failed.
# DEEP_JIT_GPU_SECONDS: for everything (default 460); what does not fit in is a failure.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$PWD/build/gpu
logs=$build/logs
rm -rf "$logs" "$build/cache" "$build/home" && mkdir -p "$logs" "$build/home"
out=${OUT:-$build/out}
mkdir -p "$out"
out=$(cd "$out" && pwd)
: >"$out/gpu_check.log"
failures=()
python=python3
[ ! -x .venv/bin/python ] || python=.venv/bin/python
seconds=${DEEP_JIT_GPU_SECONDS:-460}

# Nothing of the user's is read or changed; the stand-in driver is not in the way.
export HOME=$build/home PYTHONUNBUFFERED=1
for name in "${!DJ_@}"; do unset "$name"; done
unset LD_PRELOAD
# Tests fail rather than skip when there is no GPU.
export DEEP_JIT_REQUIRE_GPU=1 DEEP_JIT_GPU_TEST_CACHE=$build/cache
export DEEP_JIT_EXTENSION_DIR=$build/extensions

# sums up what is there so far: a run that is cut short leaves that.
report() {
    "$python" scripts/gpu_report.py "$logs" "$out/gpu.json" "${failures[@]}" >"$logs/report.txt" 2>&1
    tar -C "$logs" -czf "$out/logs.tar.gz" .
}

# finish NAME STATUS SECONDS: keeps a step's output, goes on when it failed.
finish() {
    local name=$1 status=$2
    {
        echo "== $name (status $status, $3 s)"
        cat "$logs/$name.log"
    } >>"$out/gpu_check.log"
    if [ "$status" -ne 0 ]; then
        failures+=("$name")
        tail -n 40 "$logs/$name.log" | cut -c 1-300
    fi
    grep -aE '^\[  (PASSED|FAILED|SKIPPED) \] |[0-9]+ (passed|failed).* in [0-9.]+s|tests passed, |ERROR SUMMARY' \
        "$logs/$name.log" | cut -c 1-200 | head -n 40
    echo "$name $3" >>"$logs/seconds.txt"
    echo "== $name: status $status, $3 s"
    report
}

# limited SECONDS COMMAND...: at most so long, and no longer than what is left for everything.
limited() {
    local limit=$1 left=$((seconds - SECONDS))
    shift
    [ "$left" -gt "$limit" ] || limit=$left
    if [ "$limit" -lt 5 ]; then
        echo "no time is left for: $*"
        return 125
    fi
    timeout --kill-after=5 "$limit" "$@"
}

# step NAME SECONDS COMMAND...
step() {
    local name=$1 start=$SECONDS
    shift
    echo "== $name"
    limited "$@" >"$logs/$name.log" 2>&1
    finish "$name" $? $((SECONDS - start))
}

# The PyTorch extensions are built beside everything else.
start=$SECONDS
limited 240 "$python" tests/gpu/extension/build_extension.py >"$logs/extensions.log" 2>&1 &
extensions=$!

generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
gtest=()
if [ -d .deps/googletest ]; then gtest=("-DDEEP_JIT_GTEST_SOURCE=$PWD/.deps/googletest"); fi
step configure 60 cmake -S . -B "$build" "${generator[@]}" "${gtest[@]}" \
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$PWD/.deps/benchmark" \
    -DDEEP_JIT_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$("$python" -c 'import sys; print(sys.executable)')"
export PYTHONPATH=$build/python
# Goes on after an error: what can be built is run.
keep_going=(-- -k)
if [ ${#generator[@]} -gt 0 ]; then keep_going=(-- -k 0); fi
step build 240 cmake --build "$build" -j "$(nproc)" "${keep_going[@]}"
wait "$extensions"
finish extensions $? $((SECONDS - start))

step gpu_tests 150 "$build/tests/gpu_tests" "--gtest_output=xml:$logs/gpu_tests.xml"
step gpu_python 120 "$python" -m pytest -q -p no:cacheprovider tests/gpu \
    --junitxml "$logs/gpu_python.xml"

# One launch of each kind. (Not the tests that hold a stream back: the tool may wait for each
# launch. Driver calls that fail as they should are not looked for.)
kinds=GpuScale.ScalesAMillionNumbers:GpuScale.ATemplateIs*:GpuSharedMemory.AboveTheDefaultLimit
kinds+=:GpuCluster.OneDimension:GpuCluster.ThreeDimensions:GpuCooperative.TheGridSynchronizes
kinds+=:GpuDependentLaunch.AChainIsInOrder:GpuGraph.LaunchesAreCapturedAndReplayed
kinds+=:GpuArgument.*:GpuTensorMap.TheCopyEngineFetchesABox:GpuThread.TwoThreadsOnTwoStreams
kinds+=:GpuCutlass.*
sanitizer() {
    limited 100 compute-sanitizer --tool memcheck --target-processes application-only \
        --report-api-errors no --error-exitcode 9 \
        "$build/tests/gpu_tests" "--gtest_filter=$kinds" "--gtest_output=xml:$logs/sanitizer.xml" &&
        grep -q 'ERROR SUMMARY: 0 errors' "$logs/sanitizer.log"
}
start=$SECONDS
echo "== sanitizer"
sanitizer >"$logs/sanitizer.log" 2>&1
finish sanitizer $? $((SECONDS - start))

if [ "${1:-}" = --bench ]; then
    for source in benchmarks/*.cpp; do
        name=bench_$(basename "$source" .cpp)
        [ -x "$build/benchmarks/$name" ] || continue
        # Those that need no GPU are measured elsewhere.
        grep -q 'backend/cuda/\|launch_kernels.hpp' "$source" || continue
        arguments=("--json=$logs/$name.json")
        if grep -q '#include <benchmark/' "$source"; then
            arguments=(--benchmark_repetitions=5 --benchmark_report_aggregates_only=true
                --benchmark_min_time=0.1 "--benchmark_out=$logs/$name.json" --benchmark_out_format=json)
        fi
        step "$name" 100 "$build/benchmarks/$name" "${arguments[@]}"
        cat "$logs/$name.log"
    done
    step bench_python_launch 80 env "DJ_JIT_CACHE_DIR=$build/cache" \
        "$python" benchmarks/python_launch.py "--json=$logs/bench_python_launch.json"
    cat "$logs/bench_python_launch.log"
fi

# The tests that need no GPU, on this machine's compiler; the stand-in driver where they want it.
step unit_tests 120 ctest --test-dir "$build" -j "$(nproc)" --output-on-failure \
    --output-junit "$logs/unit_tests.xml"

cat "$logs/report.txt"
echo "== $SECONDS s, failed: ${failures[*]:-nothing}"
[ ${#failures[@]} -eq 0 ]
