"""The installed package: its files, its types, its version."""

import pathlib
import re
import subprocess
import sys
import textwrap

import deep_jit
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_version():
    header = (ROOT / "include/deep_jit/version.hpp").read_text()
    assert re.search(r'VERSION_STRING "(.*)"', header)[1] == deep_jit.__version__


def test_everything_public_is_there_and_documented():
    for name in deep_jit.__all__:
        assert getattr(deep_jit, name) is not None
    for kind in (deep_jit.Runtime, deep_jit.Kernel, deep_jit.Stream, deep_jit.Launcher):
        assert kind.__doc__ and kind.__module__ == "deep_jit"
        for name, member in vars(kind).items():
            if not name.startswith("_"):
                assert member.__doc__, f"{kind.__name__}.{name}"


def test_get_include(tmp_path):
    include = pathlib.Path(deep_jit.get_include())
    assert (include / "deep_jit/backend/host/backend.hpp").is_file()
    for header in (ROOT / "include/deep_jit").rglob("*.hpp"):
        assert (include / header.relative_to(ROOT / "include")).is_file()


def test_cmake_dir(tmp_path):
    directory = pathlib.Path(deep_jit.cmake_dir())
    if not directory.is_dir():
        pytest.skip("the package was built in place, not installed")
    (tmp_path / "CMakeLists.txt").write_text(
        textwrap.dedent("""\
            cmake_minimum_required(VERSION 3.20)
            project(consumer LANGUAGES CXX)
            find_package(DeepJIT CONFIG REQUIRED)
            get_target_property(include DeepJIT::headers INTERFACE_INCLUDE_DIRECTORIES)
            message(STATUS "include: ${include}")
            """)
    )
    result = subprocess.run(
        [
            "cmake",
            "-S",
            tmp_path,
            "-B",
            tmp_path / "build",
            f"-DDeepJIT_DIR={directory}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert f"include: {deep_jit.get_include()}" in result.stdout


def test_stubs_agree_with_the_module():
    pytest.importorskip("mypy")
    result = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "deep_jit"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_types_of_a_program(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""\
            import deep_jit
            jit = deep_jit.Runtime("host", include_dirs=["/tmp"], optimize_level="2")
            kernel: deep_jit.Kernel = jit.compile("a", "source")
            kernel[1, (2, 3)](1, 2.0, None)
            kernel[4](1)
            kernel.launch(1, grid=1, block=[1, 2], stream=jit.stream())
            sizes: list[int] = [one.size for one in kernel.parameters]
            try:
                jit.synchronize()
            except deep_jit.CompileError as error:
                text: str = error.log
            deep_jit.Runtime("gpu")  # error: arg-type
            kernel["a", 1]()  # error: index
            kernel.launch(gird=1)  # error: call-arg
            """)
    )
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", program],
        capture_output=True,
        text=True,
        check=False,
    )
    found = dict(
        re.findall(r"program\.py:(\d+): error: .*\[([a-z-]+)\]", result.stdout)
    )
    wanted = {
        str(number): line.split("# error: ")[1]
        for number, line in enumerate(program.read_text().splitlines(), 1)
        if "# error: " in line
    }
    assert found == wanted, result.stdout
