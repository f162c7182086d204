#!/usr/bin/env bash
# Installs what is missing, and nothing else. Debian 12, Ubuntu 22.04 and 24.04.
# usage: setup.sh PART ...
#   compiler  a C++20 compiler
#   build     CMake, Ninja, GoogleTest, Google Benchmark, GCC 11, Clang and its sanitizers
#   lint      clang-tidy
#   python    .venv with the Python tools (scripts/requirements.txt)
#   cuda      nvcc: an installed one, else NVIDIA's wheels in .venv (scripts/requirements-cuda.txt)
set -eu
cd "$(dirname "$0")/.."
has() { command -v "$1" >/dev/null 2>&1; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# quietly WHAT COMMAND...: shows the output only when the command fails.
quietly() {
    echo "setup: $1"
    shift
    "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        echo "setup: failed: $*" >&2
        exit 1
    }
}

packages=()
optional=() # installed where the distribution has them
need_compiler() { has c++ || has g++ || has clang++ || [ -n "${CXX:-}" ] || packages+=(g++); }
need_build() {
    has g++ || packages+=(g++)
    has cmake || packages+=(cmake)
    has ninja || packages+=(ninja-build)
    has clang++ || packages+=(clang)
    has git || packages+=(git)
    has g++-11 || optional+=(g++-11)
    [ -e /usr/include/gtest/gtest.h ] || [ -n "${DEEP_JIT_GTEST_SOURCE:-}" ] ||
        packages+=(libgtest-dev)
    [ -e /usr/include/benchmark/benchmark.h ] || packages+=(libbenchmark-dev)
    [ -e /usr/share/i18n/locales/de_DE ] || optional+=(locales)
    # The sanitizers' run-time library is a package of its own in some releases.
    has clang++ && compgen -G "$(clang++ -print-resource-dir)/lib/*/libclang_rt.fuzzer*" >/dev/null ||
        optional+=(libclang-rt-dev)
}
need_lint() { has clang-tidy || packages+=(clang-tidy); }
find_python() { has python3 && python3 -c 'import venv, ensurepip' 2>/dev/null; }
need_python() {
    [ -x .venv/bin/python ] || find_python || packages+=(python3 python3-venv)
    if has python3; then
        python3 -c 'import os, sysconfig as s
raise SystemExit(not os.path.exists(s.get_path("include") + "/Python.h"))' || packages+=(python3-dev)
    else
        packages+=(python3-dev)
    fi
}
need_cuda() { scripts/cuda_home.sh >/dev/null || need_python; }

install_packages() {
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if has sudo && sudo -n true 2>/dev/null; then
            as_root=(sudo -n)
        elif [ ${#packages[@]} -eq 0 ]; then
            echo "setup: not installed, and not needed: ${optional[*]}"
            return
        else
            echo "setup: missing packages, install them as root: ${packages[*]}" >&2
            exit 1
        fi
    fi
    has apt-get || {
        echo "setup: missing (named as in Debian): ${packages[*]-} ${optional[*]-}" >&2
        [ ${#packages[@]} -eq 0 ]
        return
    }
    # An optional package that no list knows yet is not worth a network access each time.
    if [ ${#packages[@]} -gt 0 ] || ! compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null; then
        quietly "updating the package lists" "${as_root[@]}" apt-get update -qq
    fi
    for package in "${optional[@]}"; do
        if [ -n "$(apt-cache madison "$package" 2>/dev/null)" ]; then packages+=("$package"); fi
    done
    [ ${#packages[@]} -eq 0 ] || quietly "installing ${packages[*]}" "${as_root[@]}" \
        env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${packages[@]}"
}

# pip_install REQUIREMENTS: into .venv, once for each content of the file.
pip_install() {
    local stamp
    stamp=.venv/installed-$(sha256sum "$1" | cut -c 1-16)
    [ -e "$stamp" ] && return
    [ -x .venv/bin/python ] || quietly "making .venv" python3 -m venv .venv
    quietly "installing $1 into .venv" .venv/bin/python -m pip install --quiet \
        --disable-pip-version-check --requirement "$1"
    touch "$stamp"
}

for part in "$@"; do "need_$part"; done
if [ $((${#packages[@]} + ${#optional[@]})) -gt 0 ]; then install_packages; fi
for part in "$@"; do
    case $part in
    python) pip_install scripts/requirements.txt ;;
    cuda) scripts/cuda_home.sh >/dev/null || pip_install scripts/requirements-cuda.txt ;;
    esac
done
