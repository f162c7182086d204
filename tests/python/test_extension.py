"""deep_jit::register_python_api: two extensions and the package in one process."""

import concurrent.futures
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import deep_jit
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("library_a", "library_b")
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
TWICE = """
extern "C" __global__ void twice(int* values) { values[threadIdx.x] *= 2; }
"""


def build(name, directory):
    pybind11 = pytest.importorskip("pybind11")
    path = directory / (name + SUFFIX)
    launcher = ["ccache"] if shutil.which("ccache") else []
    flags = ["-std=c++20", "-O0", "-g0", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    flags += [
        f"-DLIBRARY_NAME={name}",
        f'-DLIBRARY_PREFIX="{name.upper()}"',
        f"-I{ROOT}/include",
    ]
    for system in (sysconfig.get_path("include"), pybind11.get_include()):
        flags += ["-isystem", system]
    source = ROOT / "tests/python/extension/library.cpp"
    objects = directory / f"{name}.o"
    subprocess.run([*launcher, "c++", *flags, "-c", source, "-o", objects], check=True)
    subprocess.run(
        ["c++", "-shared", objects, "-o", path, "-pthread", "-ldl"], check=True
    )
    return path


@pytest.fixture(scope="module")
def libraries(tmp_path_factory, cache):
    directory = tmp_path_factory.mktemp("extensions")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        paths = list(pool.map(lambda name: build(name, directory), NAMES))
    modules = []
    for name, path in zip(NAMES, paths):
        spec = importlib.util.spec_from_file_location(name, path)
        modules.append(importlib.util.module_from_spec(spec))
        spec.loader.exec_module(modules[-1])
    with pytest.raises(deep_jit.ConfigError, match="must be initialized before use"):
        modules[0].get_jit()
    for module in modules:
        module.init_jit(str(directory))
    return modules


def test_get_jit_makes_the_runtime_and_returns_the_same_one(libraries):
    first, second = libraries
    assert not second.initialized()
    runtime = second.get_jit()
    assert second.initialized() and second.get_jit() is runtime
    assert second.get_jit() is not first.get_jit()
    assert first.runtime_address() != second.runtime_address()


def test_what_the_runtime_says(libraries, tmp_path_factory, cache):
    runtime = libraries[0].get_jit()
    assert runtime.backend == "host"
    assert runtime.config["extra_signature"] == "signature-1"
    assert runtime.config["env_prefix"] == "LIBRARY_A"
    assert runtime.cache_dirs == [str(cache)]
    assert runtime.device.num_sms >= 1
    assert isinstance(runtime.statistics(), dict)
    with pytest.raises(TypeError):
        type(runtime)()


def test_compile_and_launch(libraries):
    for runtime in (
        libraries[0].get_jit(),
        libraries[1].get_jit(),
        deep_jit.Runtime("host"),
    ):
        kernel = runtime.compile("twice", TWICE)
        assert [one.name for one in kernel.parameters] == ["values"]
        values = np.arange(8, dtype=np.int32)
        kernel[1, 8](values)
        runtime.synchronize()
        assert values.tolist() == list(range(0, 16, 2))
        with pytest.raises(TypeError, match="kernel twice: argument 0 'values'"):
            kernel[1, 8]("text")


def test_types_belong_to_their_module(libraries):
    runtimes = [
        libraries[0].get_jit(),
        libraries[1].get_jit(),
        deep_jit.Runtime("host"),
    ]
    assert len({type(runtime) for runtime in runtimes}) == 3
    # A stream of one is none for another.
    kernel = runtimes[0].compile("twice", TWICE)
    with pytest.raises(TypeError, match="stream must be"):
        kernel.launch(
            np.zeros(1, np.int32), grid=1, block=1, stream=runtimes[1].stream()
        )


def test_errors_are_those_of_the_package(libraries):
    for module in libraries:
        with pytest.raises(deep_jit.CompileError) as caught:
            module.get_jit().compile("broken", "__global__ void f() { nonsense }")
        assert "nonsense" in caught.value.log
        # Also of the module's own functions.
        with pytest.raises(deep_jit.CompileError) as caught:
            module.compile_from_cpp("__global__ void f() { nonsense }")
        assert "nonsense" in caught.value.log and caught.value.key.startswith(
            "from_cpp."
        )
        assert isinstance(caught.value, RuntimeError)


def test_an_extension_without_the_package(libraries, tmp_path):
    program = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("library_a", {libraries[0].__file__!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.init_jit({str(tmp_path)!r})
import sys
try:
    module.get_jit().compile("a b", "")
except RuntimeError as error:
    print(type(error).__name__, "deep_jit" in sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (
        0,
        "ConfigError False\n",
        "",
    )
