#!/usr/bin/env bash
# Compiles every public header alone, with warnings as errors, by each given compiler.
# usage: check_headers.sh [COMPILER ...]     (default: g++-11, g++ and clang++, those that exist)
set -u
cd "$(dirname "$0")/.." || exit 1
compilers=("$@")
if [ ${#compilers[@]} -eq 0 ]; then
    for name in g++-11 g++ clang++; do
        if command -v "$name" >/dev/null; then compilers+=("$name"); fi
    done
fi

mapfile -t headers < <(find include -name '*.hpp' ! -path '*/backend/cuda/*' ! -path '*/python/*' ! -name python_api.hpp | sort)
mapfile -t cuda_headers < <(find include -path '*/backend/cuda/*.hpp' | sort)
mapfile -t python_headers < <(find include -name python_api.hpp)
skipped=0

if cuda=$(scripts/cuda_home.sh); then
    headers+=("${cuda_headers[@]}")
elif [ ${#cuda_headers[@]} -gt 0 ]; then
    skipped=$((skipped + ${#cuda_headers[@]}))
    echo "backend/cuda: skipped, there are no CUDA headers"
fi
python_includes='import sysconfig, pybind11; print(sysconfig.get_path("include"), pybind11.get_include(), sep="\n")'
mapfile -t python < <(.venv/bin/python -c "$python_includes" 2>/dev/null)
if [ ${#python[@]} -eq 2 ]; then
    headers+=("${python_headers[@]}")
elif [ ${#python_headers[@]} -gt 0 ]; then
    skipped=$((skipped + 1))
    echo "python_api.hpp: skipped, there is no pybind11 in .venv"
fi

check() { # COMPILER HEADER
    local flags=()
    case $2 in
    */backend/cuda/*) flags=(-isystem "$CUDA_INCLUDE") ;;
    */python_api.hpp) flags=(-isystem "$PYTHON_INCLUDE" -isystem "$PYBIND11_INCLUDE") ;;
    esac
    if "$1" -std=c++20 -Wall -Wextra -Werror -Iinclude "${flags[@]}" -fsyntax-only \
        -include "$2" -x c++ /dev/null; then
        echo passed
    else
        echo "FAILED: $1 $2"
    fi
}
export -f check
export CUDA_INCLUDE=$cuda/include PYTHON_INCLUDE=${python[0]-} PYBIND11_INCLUDE=${python[1]-}

results=$(for compiler in "${compilers[@]}"; do printf "$compiler %s\n" "${headers[@]}"; done |
    xargs -P "$(nproc)" -L 1 bash -c 'check "$@"' _ 2>&1)
passed=$(grep -c '^passed$' <<<"$results")
failed=$(grep -c '^FAILED: ' <<<"$results")
grep -v '^passed$' <<<"$results"
echo "headers alone (${compilers[*]}): $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
