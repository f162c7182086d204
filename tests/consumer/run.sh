#!/usr/bin/env bash
# Builds and runs projects that use the library as its users do, from a path with blanks, and what
# the documentation shows.
set -u
cd "$(dirname "$0")" || exit 1
repo=$(cd ../.. && pwd)
work=$(mktemp -d)/'a b'
trap 'rm -rf "$(dirname "$work")"' EXIT
mkdir -p "$work"
export DJ_JIT_CACHE_DIR="$work/cache"
passed=0 failed=0 skipped=0

# expect NAME COMMAND...
expect() {
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        echo "passed: $name"
        passed=$((passed + 1))
    else
        echo "FAILED: $name: $*"
        cat "$work/log"
        failed=$((failed + 1))
        return 1
    fi
}

# project NAME CMAKE_ARGUMENT...: configures, builds, runs both programs.
project() {
    local name=$1 build="$work/build $1"
    shift
    expect "$name: builds" sh -c 'cmake -S "$1" -B "$2" "$3" && cmake --build "$2" -j "$(nproc)"' \
        _ "$name" "$build" "$@" || return
    expect "$name: two translation units" "$build/two_units"
    expect "$name: program and plugin" "$build/with_plugin"
}

expect "installs" sh -c 'cmake -S "$1" -B "$2/library" -DDEEP_JIT_BUILD_TESTS=OFF \
    -DDEEP_JIT_BUILD_BENCHMARKS=OFF -DDEEP_JIT_BUILD_EXAMPLES=OFF &&
    cmake --install "$2/library" --prefix "$2/prefix"' _ "$repo" "$work"
project package "-DCMAKE_PREFIX_PATH=$work/prefix"

# A copy, so that the source too has a path with blanks.
mkdir "$work/source"
cp -r "$repo"/{CMakeLists.txt,cmake,include,LICENSE} "$work/source"
project subdirectory "-DDEEP_JIT_SOURCE=$work/source"
expect "subdirectory: installs nothing" sh -c \
    'cmake --install "$1" --prefix "$2" && [ ! -e "$2" ]' _ "$work/build subdirectory" "$work/none"
project fetch_content "-DDEEP_JIT_SOURCE=$work/source"

for compiler in g++-11 g++ clang++; do
    if ! command -v "$compiler" >/dev/null; then
        skipped=$((skipped + 1))
        continue
    fi
    expect "$compiler -Iinclude: builds" "$compiler" -std=c++20 "-I$work/source/include" \
        "$repo/examples/scale/main.cpp" -o "$work/scale" -pthread -ldl &&
        expect "$compiler -Iinclude: runs" "$work/scale"
done

python=$repo/.venv/bin/python
[ -x "$python" ] || python=$(command -v python3)
if [ -n "$python" ]; then
    expect "documentation: what it shows compiles and runs" \
        "$python" snippets.py "$repo" "$work/snippets"
else
    skipped=$((skipped + 1))
fi

echo "consumers: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
