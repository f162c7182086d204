import os
import types
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, final

from _typeshed import structseq

_Dim: TypeAlias = int | Sequence[int]
_Path: TypeAlias = str | os.PathLike[str]

__version__: str
backends: tuple[str, ...]

class Error(RuntimeError):
    """Base of every error of deep_jit. Attributes are empty where they do not apply."""

    command: str
    log: str
    source_path: str
    key: str

class ConfigError(Error): ...
class ToolchainError(Error): ...
class CompileError(Error): ...
class CacheError(Error): ...
class LoadError(Error): ...
class LaunchError(Error): ...

@final
class Parameter(structseq[str | int], tuple[str, str, str, int]):
    """A parameter of a kernel."""

    __match_args__: Final = ("name", "type", "kind", "size")
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def size(self) -> int: ...

@final
class Stream:
    """Launches in order, asynchronously; made by Runtime.stream() (Host backend)."""

    @property
    def idle(self) -> bool: ...
    def synchronize(self) -> None: ...

@final
class Launcher:
    """A kernel with its launch settings."""

    def __call__(self, *args: Any) -> None: ...

@final
class Kernel:
    """A loaded kernel: ``kernel[grid, block](*args)`` launches it."""

    @property
    def name(self) -> str: ...
    @property
    def backend(self) -> str: ...
    @property
    def handle(self) -> int: ...
    @property
    def parameters(self) -> tuple[Parameter, ...]: ...
    def __getitem__(self, key: _Dim | tuple[_Dim, _Dim], /) -> Launcher: ...
    def launch(
        self,
        *args: Any,
        grid: _Dim | None = None,
        block: _Dim | None = None,
        cluster: _Dim | None = None,
        smem: int | None = None,
        stream: Any = None,
        cooperative: bool | None = None,
        pdl: bool | None = None,
        nonportable_cluster: bool | None = None,
        num_threads: int | None = None,
        timeout: int | None = None,
    ) -> None: ...
    def prepare(
        self,
        *,
        grid: _Dim | None = None,
        block: _Dim | None = None,
        cluster: _Dim | None = None,
        smem: int | None = None,
        stream: Any = None,
        cooperative: bool | None = None,
        pdl: bool | None = None,
        nonportable_cluster: bool | None = None,
        num_threads: int | None = None,
        timeout: int | None = None,
    ) -> Launcher: ...

@final
class Runtime:
    """Compiles, caches, loads and launches kernels of one backend.

    The keywords describe the library that the kernels belong to, as the C++ Config does; all
    others are default compiler options, fields of the backend's CompilerOptions.
    """

    def __new__(
        cls,
        backend: Literal["host", "cuda", "ascend"],
        /,
        *,
        root: _Path | None = None,
        env_prefix: str = "DJPY",
        extra_signature: str = "",
        include_dirs: Sequence[_Path] = (),
        include_prefixes: Sequence[str] = (),
        **options: Any,
    ) -> Runtime: ...
    @property
    def backend(self) -> str: ...
    @property
    def config(self) -> dict[str, Any]: ...
    @property
    def default_options(self) -> dict[str, Any]: ...
    @property
    def compiler(self) -> types.SimpleNamespace: ...
    @property
    def device(self) -> types.SimpleNamespace: ...
    @property
    def cache_dirs(self) -> list[str]: ...
    def compile(self, tag: str, source: str, /, **options: Any) -> Kernel: ...
    def compile_without_load(self, tag: str, source: str, /, **options: Any) -> str: ...
    def cache_key(self, source: str, /, **options: Any) -> str: ...
    def set_default_options(self, **options: Any) -> None: ...
    def stream(self) -> Stream: ...
    def synchronize(self, stream: Any = None, /) -> None: ...
    def statistics(self) -> dict[str, Any]: ...
