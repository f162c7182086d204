"""Builds the extension twice, under two names, as two kernel libraries in one process would be.

usage: build_extension.py    (into DEEP_JIT_EXTENSION_DIR, else build/extensions)
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
NAMES = ("deep_jit_extension_a", "deep_jit_extension_b")


def prefix(name: str) -> str:
    """Of the environment variables of an extension's runtime."""
    return "EXTENSION_" + name[-1].upper()


def build_directory(name: str) -> pathlib.Path:
    parent = os.environ.get("DEEP_JIT_EXTENSION_DIR", ROOT / "build" / "extensions")
    return pathlib.Path(parent).resolve() / name


def cuda_include() -> str:
    home = subprocess.run(
        [ROOT / "scripts" / "cuda_home.sh"], capture_output=True, text=True, check=True
    )
    return home.stdout.strip() + "/include"


def load(name: str):
    """The module; built first unless it is up to date."""
    from torch.utils import cpp_extension

    directory = build_directory(name)
    directory.mkdir(parents=True, exist_ok=True)
    return cpp_extension.load(
        name=name,
        sources=[str(HERE / "scale.cpp"), str(HERE / "launches.cpp")],
        # The headers need no CUDA library to link to.
        extra_include_paths=[str(ROOT / "include"), cuda_include()],
        extra_cflags=["-std=c++20", "-O2", f'-DEXTENSION_PREFIX=\\"{prefix(name)}\\"'],
        build_directory=str(directory),
        with_cuda=False,
        verbose=True,
    )


def main() -> int:
    # A process for each: building keeps state in the module.
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for future in [pool.submit(build_one, name) for name in NAMES]:
            print(future.result())
    return 0


def build_one(name: str) -> str:
    return load(name).__file__


if __name__ == "__main__":
    sys.exit(main())
