#!/usr/bin/env bash
# Runs every fuzz target that was built, on its corpus and what it finds from there.
# usage: fuzz.sh [SECONDS]     (each; default 10)
set -u
cd "$(dirname "$0")/.." || exit 1
export SECONDS_EACH=${1:-10} FOUND=$PWD/build/fuzz/found
mkdir -p "$FOUND"

run() {
    local name corpus=()
    name=$(basename "$1")
    for directory in "fuzz/corpus/$name" "fuzz/corpus/${name%_fuzz}"; do
        if [ -d "$directory" ]; then corpus+=("$directory"); fi
    done
    # New inputs go to the first directory; the corpus itself stays as it is.
    mkdir -p "$FOUND/$name"
    if timeout $((SECONDS_EACH + 120)) "$1" -max_total_time="$SECONDS_EACH" -timeout=20 -max_len=8192 \
        -artifact_prefix="$FOUND/$name-" "$FOUND/$name" "${corpus[@]}" >"$FOUND/$name.log" 2>&1; then
        echo "passed: $name, $(grep -oE 'Done [0-9]+ runs' "$FOUND/$name.log")"
    else
        echo "FAILED: $name"
        tail -n 40 "$FOUND/$name.log"
    fi
}
export -f run

results=$(printf '%s\n' build/fuzz/fuzz/*_fuzz | xargs -P "$(nproc)" -L 1 bash -c 'run "$1"' _)
echo "$results"
passed=$(grep -c '^passed: ' <<<"$results")
failed=$(grep -c '^FAILED: ' <<<"$results")
echo "fuzz: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
