"""Compile kernels from strings at run time, cache the binaries, launch them.

import deep_jit

jit = deep_jit.Runtime("host")  # or "cuda", "ascend"
kernel = jit.compile("scale", source)
kernel[grid, block](output, input, count)
jit.synchronize()
"""

from pathlib import Path

from ._core import (
    CacheError,
    CompileError,
    ConfigError,
    Error,
    Kernel,
    Launcher,
    LaunchError,
    LoadError,
    Parameter,
    Runtime,
    Stream,
    ToolchainError,
    __version__,
    backends,
)

__all__ = [
    "CacheError",
    "CompileError",
    "ConfigError",
    "Error",
    "Kernel",
    "LaunchError",
    "Launcher",
    "LoadError",
    "Parameter",
    "Runtime",
    "Stream",
    "ToolchainError",
    "__version__",
    "backends",
    "cmake_dir",
    "get_include",
]


def get_include() -> str:
    """Directory of the C++ headers: put it into the include path of an extension."""
    return str(Path(__file__).parent / "include")


def cmake_dir() -> str:
    """Directory of the CMake package: pass it as ``-DDeepJIT_DIR=``."""
    return str(Path(__file__).parent / "share" / "cmake" / "DeepJIT")
