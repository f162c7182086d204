#!/usr/bin/env bash
# Formats the C++ sources.   usage: format.sh [--check]
# The version of clang-format is pinned: another one formats differently.
set -eu
cd "$(dirname "$0")/.."
arguments=(-i)
[ "${1:-}" != --check ] || arguments=(--dry-run -Werror)
clang_format=.venv/bin/clang-format
[ -x "$clang_format" ] || clang_format=clang-format
find include src tests benchmarks examples fuzz -path '*/build*' -prune -o \
    \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu' \) -print0 2>/dev/null |
    xargs -0 -r "$clang_format" "${arguments[@]}"
