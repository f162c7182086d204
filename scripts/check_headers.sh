#!/usr/bin/env bash
# Compiles every public header alone, with warnings as errors, by each given compiler.
# usage: check_headers.sh [COMPILER ...]     (default: g++-11, g++ and clang++, those that exist)
set -u
cd "$(dirname "$0")/.."
compilers=("$@")
if [ ${#compilers[@]} -eq 0 ]; then
    for name in g++-11 g++ clang++; do command -v "$name" >/dev/null && compilers+=("$name"); done
fi
passed=0 failed=0
while read -r header; do
    for compiler in "${compilers[@]}"; do
        if "$compiler" -std=c++20 -Wall -Wextra -Werror -Iinclude ${DJ_CHECK_FLAGS:-} -fsyntax-only \
            -include "$header" -x c++ /dev/null; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED: $compiler $header"
        fi
    done
done < <(find include -name '*.hpp' | sort)
echo "headers alone (${compilers[*]}): $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
