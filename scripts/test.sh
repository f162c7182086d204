#!/usr/bin/env bash
# Everything that CI checks, step by step; a failed step does not stop the next one.
# usage: test.sh [STEP ...]     (default: all)       DEEP_JIT_FUZZ_SECONDS: for each fuzz target
set -u
cd "$(dirname "$0")/.." || exit 1
all_steps=(headers build tests demo asan tsan fuzz consumers format tidy ruff python)
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=("${all_steps[@]}")
jobs=$(nproc)
out=$PWD/build/test
rm -rf "$out" && mkdir -p "$out/home" "$out/locale"

# Nothing of the user's is read or changed.
export HOME=$out/home
for name in "${!DJ_@}"; do unset "$name"; done
# A locale with a decimal comma, for tests that numbers do not depend on it.
if localedef --no-archive -i de_DE -f UTF-8 "$out/locale/de_DE.UTF-8" 2>/dev/null; then
    export LOCPATH=$out/locale
fi
# Wheels lie where no other program would look.
if cuda=$(scripts/cuda_home.sh) && [[ $cuda == "$PWD/.venv/"* ]]; then export CUDA_HOME=$cuda; fi
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

# Most of a test's compile time is the headers, so eight tests are compiled as one.
build() {
    cmake --preset "$1" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=8 &&
        cmake --build --preset "$1" -j "$jobs"
}
run_tests() { ctest --preset "$1" -j "$jobs" --output-junit "$out/$1.xml"; }
# ThreadSanitizer of older Clangs cannot live with much address-space randomisation.
without_aslr() { if setarch -R true 2>/dev/null; then setarch -R "$@"; else "$@"; fi; }

step_headers() { scripts/check_headers.sh; }
step_build() { build dev; }
step_tests() { run_tests dev; }
step_demo() {
    scripts/demo.sh && scripts/demo.sh >"$out/second.txt" && cat "$out/second.txt" &&
        grep -q '^Host: .*compiled nothing' "$out/second.txt"
}
step_asan() { build asan && run_tests asan; }
step_tsan() { build tsan && without_aslr ctest --preset tsan -j "$jobs" --output-junit "$out/tsan.xml"; }
step_fuzz() {
    compgen -G 'fuzz/*_fuzz.cpp' >/dev/null || { skip "there are no fuzz targets" && return; }
    build fuzz && scripts/fuzz.sh "${DEEP_JIT_FUZZ_SECONDS:-10}"
}
step_consumers() { tests/consumer/run.sh; }
step_format() { scripts/format.sh --check; }
step_tidy() { scripts/tidy.sh; }
step_ruff() {
    [ -n "$(git ls-files '*.py' --cached --others --exclude-standard)" ] ||
        { skip "there are no Python files" && return; }
    .venv/bin/ruff check . && .venv/bin/ruff format --check .
}
step_python() {
    [ -d tests/python ] || { skip "there is no tests/python" && return; }
    .venv/bin/python -m pip install --quiet --no-build-isolation --no-deps . &&
        .venv/bin/python -m pytest -q tests/python --junitxml "$out/python.xml"
}

skip() { echo "skipped: $1" | tee "$out/skipped"; }

# count STEP STATUS: sets passed, failed, skipped, from what the step's runner wrote.
count() {
    passed=0 failed=0 skipped=0
    local xml=$out/$1.xml counts
    [ "$1" != tests ] || xml=$out/dev.xml
    if [ -e "$out/skipped" ]; then
        skipped=1
        rm "$out/skipped"
    elif [ -e "$xml" ]; then
        counts=$(tr '\n\t' '  ' <"$xml" | grep -o '<testsuite [^>]*>' | head -n 1)
        attribute() { sed -n "s/.* $1=\"\([0-9]*\)\".*/\1/p" <<<"$counts"; }
        failed=$((10#0$(attribute failures) + 10#0$(attribute errors)))
        skipped=$((10#0$(attribute skipped) + 10#0$(attribute disabled)))
        passed=$((10#0$(attribute tests) - failed - skipped))
    elif counts=$(grep -oE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?' "$out/$1.log" | tail -n 1) &&
        [ -n "$counts" ]; then
        read -r passed _ failed _ skipped _ <<<"${counts//,/} 0"
    elif [ "$2" -eq 0 ]; then
        passed=1
    fi
    if [ "$2" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
}

total_passed=0 total_failed=0 total_skipped=0 number=0
table=()
for step in "${steps[@]}"; do
    number=$((number + 1))
    printf '[%d/%d] %s ... ' "$number" "${#steps[@]}" "$step"
    start=$SECONDS
    "step_$step" >"$out/$step.log" 2>&1
    status=$?
    count "$step" "$status"
    result=passed
    if [ "$status" -ne 0 ]; then result=FAILED; elif [ "$passed" -eq 0 ]; then result=skipped; fi
    echo "$result ($((SECONDS - start)) s)"
    if [ "$status" -ne 0 ]; then
        echo "--- the end of ${out#"$PWD/"}/$step.log"
        tail -n 80 "$out/$step.log"
        echo "---"
    fi
    # The runner's own summary.
    grep -E 'tests passed, [0-9]+ tests failed|[0-9]+ passed.* in [0-9.]+s|^skipped: ' "$out/$step.log"
    table+=("$(printf '%-10s %-8s %6d passed %4d failed %4d skipped %6d s' "$step" "$result" \
        "$passed" "$failed" "$skipped" "$((SECONDS - start))")")
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    total_skipped=$((total_skipped + skipped))
done

printf '\n'
printf '%s\n' "${table[@]}"
printf '\n%d passed, %d failed, %d skipped\n' "$total_passed" "$total_failed" "$total_skipped"
[ "$total_failed" -eq 0 ]
