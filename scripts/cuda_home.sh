#!/usr/bin/env bash
# Prints the directory of a CUDA toolkit with headers and NVCC 12.9 or newer: a named one, an
# installed one, or the one that setup.sh put into .venv. Prints nothing and fails when there is
# none.
cd "$(dirname "$0")/.." || exit 1
on_path=$(command -v nvcc) && on_path=$(dirname "$(dirname "$(readlink -f "$on_path")")")
shopt -s nullglob
for home in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "$on_path" /usr/local/cuda \
    "$PWD"/.venv/lib/python3*/site-packages/nvidia/cu13; do
    [ -n "$home" ] && [ -e "$home/include/cuda.h" ] || continue
    version=$("$home/bin/nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\),.*/\1 \2/p')
    read -r major minor <<<"$version"
    if [ -n "$version" ] && [ $((major * 100 + minor)) -ge 1209 ]; then
        echo "$home"
        exit 0
    fi
done
exit 1
