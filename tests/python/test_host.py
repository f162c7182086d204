"""Compiling and launching with the Host backend."""

import os
import pathlib
import pickle
import subprocess
import sys
import textwrap
import threading

import deep_jit
import numpy as np
import pytest

SCALE = """
extern "C" __global__ void scale(float* output, const float* input, int count, float factor) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * factor;
}
"""
DIMS = """
extern "C" __global__ void dims(unsigned* output) {
    if (threadIdx.x + threadIdx.y + threadIdx.z + blockIdx.x + blockIdx.y + blockIdx.z == 0) {
        const unsigned values[] = {gridDim.x,  gridDim.y,  gridDim.z,
                                   blockDim.x, blockDim.y, blockDim.z};
        for (int i = 0; i < 6; ++i)
            output[i] = values[i];
    }
}
"""


@pytest.fixture(scope="module")
def scale(jit):
    return jit.compile("scale", SCALE)


@pytest.fixture(scope="module")
def dims(jit):
    kernel = jit.compile("dims", DIMS)

    def read(launch):
        out = np.zeros(6, np.uint32)
        launch(kernel, out)
        jit.synchronize()
        return out.tolist()

    return read


def test_scales(jit, scale):
    x, y = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    scale[4, 256](y, x, 1000, 2.0)
    jit.synchronize()
    assert (y == 2 * x).all()
    scale.launch(y, x, 1000, 3, grid=(4,), block=[256])
    jit.synchronize()
    assert (y == 3 * x).all()
    prepared = scale.prepare(grid=4, block=256, stream=jit.stream(), num_threads=1)
    for factor in range(5):
        prepared(y, x, 1000, factor)
    prepared(y, y, 1000, -1)


def test_dimensions(dims):
    assert dims(lambda k, out: k[2, 3](out)) == [2, 1, 1, 3, 1, 1]
    assert dims(lambda k, out: k[(2, 3), (4, 5, 6)](out)) == [2, 3, 1, 4, 5, 6]
    assert dims(lambda k, out: k[[2, 1, 3], np.int16(2)](out)) == [2, 1, 3, 2, 1, 1]
    assert dims(lambda k, out: k.launch(out, block=(1, 2), grid=(3, 4, 5))) == [
        3,
        4,
        5,
        1,
        2,
        1,
    ]
    for bad in ((1, 2, 3, 4), (), [1, 2, 3, 4]):
        with pytest.raises(ValueError, match="grid has one to three dimensions"):
            dims(lambda k, out, bad=bad: k[bad, 1](out))
    for bad in (-1, 2**32, 2**70, (1, -1)):
        with pytest.raises(ValueError, match="block is out of range"):
            dims(lambda k, out, bad=bad: k[1, bad](out))
    for bad in ("1", 1.0, (1, "2")):
        with pytest.raises(TypeError, match="grid must be"):
            dims(lambda k, out, bad=bad: k[bad, 1](out))
    for bad in (1, (1,), (1, 2, 3)):
        with pytest.raises(TypeError, match=r"kernel\[grid, block\]"):
            dims(lambda k, out, bad=bad: k[bad](out))


def test_launch_errors(jit, scale):
    x = np.zeros(4, np.float32)
    with pytest.raises(deep_jit.LaunchError, match="block dimension must be specified"):
        scale.launch(x, x, 4, 1.0, grid=1)
    with pytest.raises(deep_jit.LaunchError, match="grid dimension must be positive"):
        scale[0, 1](x, x, 4, 1.0)
    with pytest.raises(TypeError, match="host backend have no 'cluster'"):
        scale.launch(x, x, 4, 1.0, grid=1, block=1, cluster=2)
    with pytest.raises(TypeError, match="no keyword 'gird'"):
        scale.launch(x, x, 4, 1.0, gird=1)
    with pytest.raises(TypeError, match="positional"):
        scale[1, 1](x, x, 4, factor=1.0)
    with pytest.raises(TypeError, match="stream must be"):
        scale.launch(x, x, 4, 1.0, grid=1, block=1, stream=3)
    with pytest.raises(
        TypeError, match="argument 3 'factor' is missing: 3 given.*4.*float factor"
    ):
        scale[1, 1](x, x, 4)
    with pytest.raises(TypeError, match="argument 4 is one too many: 5 given"):
        scale[1, 1](x, x, 4, 1.0, 2)
    with pytest.raises(TypeError, match="keywords only"):
        scale.prepare(1, 2)
    with pytest.raises(TypeError):
        deep_jit.Kernel()
    scale.launch(x, x, 4, 1.0, grid=1, block=1, stream=None, cluster=None)


def test_kernels_without_parameters_and_with_many(jit):
    empty = jit.compile("empty", "__global__ void empty() {}")
    assert empty.parameters == ()
    empty[3, 4]()
    with pytest.raises(TypeError, match="argument 0 is one too many"):
        empty[1, 1](1)
    names = [f"a{i}" for i in range(70)]
    many = jit.compile(
        "many",
        f'extern "C" __global__ void many(long* out, {", ".join("int " + n for n in names)}) {{\n'
        f"    *out = {' + '.join(f'{i + 1}L * {n}' for i, n in enumerate(names))};\n}}",
    )
    out = np.zeros(1, np.int64)
    many[1, 1](out, *range(70))
    jit.synchronize()
    assert out[0] == sum((i + 1) * i for i in range(70))


def test_templates_are_packed_by_size(jit):
    kernel = jit.compile(
        "fill",
        "template <typename T> __global__ void fill(T* out, T value) { *out = value; }\n"
        "static void __instantiate_kernel() { auto p = reinterpret_cast<void*>(&fill<double>); }",
    )
    assert [(one.name, one.kind, one.size) for one in kernel.parameters] == [
        ("out", "pointer", 8),
        ("value", "unknown", 8),
    ]
    out = np.zeros(1)
    kernel[1, 1](out, 2.5)
    jit.synchronize()
    assert out[0] == 2.5


def test_compiling_again_gives_the_same_object(jit, scale):
    assert jit.compile("scale", SCALE) is scale
    assert jit.compile("scale", SCALE, optimize_level="1") is not scale
    assert (scale.name, scale.backend, scale.handle) == ("scale", "host", 0)
    assert repr(scale) == "<deep_jit.Kernel scale (host)>"


def test_compiler_options(jit, cache):
    source = 'extern "C" __global__ void value(int* out) { *out = VALUE; }'
    for value in (3, 5):
        kernel = jit.compile("value", source, extra_compiler_flags=[f"-DVALUE={value}"])
        out = np.zeros(1, np.int32)
        kernel[1, 1](out)
        jit.synchronize()
        assert out[0] == value
    with pytest.raises(
        TypeError, match="no compiler option 'nvcc_flags'.*extra_compiler_flags"
    ):
        jit.compile("value", source, nvcc_flags=[])
    for name, value in [
        ("fast_math", 1),
        ("extra_compiler_flags", "-O2"),
        ("arch", b"x"),
        ("optimize_level", True),
        ("compiler_flags", [1]),
    ]:
        with pytest.raises(TypeError, match=name):
            jit.compile("value", source, **{name: value})
    other = deep_jit.Runtime(
        "host", optimize_level=1, extra_compiler_flags=["-DVALUE=7"]
    )
    assert other.default_options["optimize_level"] == "1"
    assert other.default_options["fast_math"] is False
    other.set_default_options(fast_math=True, optimize_level=None)
    assert other.default_options["fast_math"] is True
    assert other.default_options["optimize_level"] == "1"
    path = pathlib.Path(other.compile_without_load("value", source))
    assert path == cache / "cache" / f"value.{other.cache_key(source)}"
    assert other.cache_key(source) != other.cache_key(source, optimize_level="2")
    assert "-ffast-math" in (path / "meta.json").read_text()


def test_runtime_attributes(jit, cache):
    assert jit.backend == "host" and "host" in deep_jit.backends
    assert jit.cache_dirs == [str(cache)]
    assert jit.config["env_prefix"] == "DJPY"
    assert jit.device.num_sms >= 1 and jit.device.arch == os.uname().machine
    assert pathlib.Path(jit.compiler.path).is_file() and jit.compiler.version
    assert isinstance(jit.statistics(), dict)
    assert repr(jit) == "<deep_jit.Runtime host>"
    with pytest.raises(deep_jit.ConfigError, match="no backend 'gpu'"):
        deep_jit.Runtime("gpu")
    with pytest.raises(deep_jit.ConfigError, match="reserved for global"):
        deep_jit.Runtime("host", env_prefix="DJ")
    with pytest.raises(deep_jit.ConfigError, match="must be absolute"):
        deep_jit.Runtime("host", root="relative")
    with pytest.raises(TypeError, match="no compiler option 'colour'"):
        deep_jit.Runtime("host", colour=1)
    with pytest.raises(TypeError):
        deep_jit.Runtime()


def test_tracked_headers(tmp_path):
    (tmp_path / "mine").mkdir()
    header = tmp_path / "mine" / "value.hpp"
    keys = set()
    for value in (1, 2):
        header.write_text(f"#define VALUE {value}\n")
        jit = deep_jit.Runtime(
            "host", include_dirs=[tmp_path], include_prefixes=["mine/"]
        )
        kernel = jit.compile(
            "header",
            "#include <mine/value.hpp>\n__global__ void f(int* o) { *o = VALUE; }",
        )
        out = np.zeros(1, np.int32)
        kernel[1, 1](out)
        jit.synchronize()
        assert out[0] == value
        keys.add(jit.cache_key("#include <mine/value.hpp>\n"))
    assert len(keys) == 2


def test_compile_errors(jit):
    with pytest.raises(deep_jit.CompileError) as caught:
        jit.compile("broken", "__global__ void broken() { undeclared_name; }")
    error = caught.value
    assert isinstance(error, deep_jit.Error) and isinstance(error, RuntimeError)
    assert "undeclared_name" in error.log and "undeclared_name" in str(error)
    assert "-std=c++20" in error.command
    assert "undeclared_name" in pathlib.Path(error.source_path).read_text()
    assert error.key.startswith("broken.")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is deep_jit.CompileError
    assert (str(again), again.log, again.key) == (str(error), error.log, error.key)
    with pytest.raises(deep_jit.ConfigError, match="cache tag") as caught:
        jit.compile("a b", SCALE)
    assert (caught.value.log, caught.value.command) == ("", "")
    with pytest.raises(TypeError, match="source must be a str, not bytes"):
        jit.compile("bytes", b"source")
    with pytest.raises(TypeError):
        jit.compile("only_a_tag")


def test_what_a_kernel_throws(jit):
    kernel = jit.compile(
        "throws",
        "#include <stdexcept>\n"
        'extern "C" __global__ void throws() { throw std::runtime_error("from the kernel"); }',
    )
    stream = jit.stream()
    kernel.launch(grid=1, block=1, stream=stream)
    with pytest.raises(RuntimeError, match="from the kernel"):
        stream.synchronize()
    stream.synchronize()
    kernel[1, 1]()
    with pytest.raises(RuntimeError, match="from the kernel"):
        jit.synchronize()


def test_eight_threads(jit):
    source = SCALE.replace("scale", "scale8")
    x = np.arange(10_000, dtype=np.float32)
    kernels, results, errors = [], [None] * 8, []

    def work(which):
        try:
            kernel = jit.compile("scale8", source)
            kernels.append(kernel)
            y, stream = np.empty_like(x), jit.stream()
            for factor in range(50):
                kernel.launch(
                    y, x, x.size, factor * which, grid=40, block=256, stream=stream
                )
            stream.synchronize()
            results[which] = y
        except Exception as error:  # noqa: BLE001 (any is a failure)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(set(map(id, kernels))) == 1
    for which, result in enumerate(results):
        assert (result == x * (49 * which)).all()


def test_other_threads_run_while_compiling(tmp_path, monkeypatch):
    """The compiler waits for a file that only another Python thread can make."""
    started, go, compiler = tmp_path / "started", tmp_path / "go", tmp_path / "compiler"
    compiler.write_text(
        textwrap.dedent(f"""\
            #!/bin/sh
            case "$*" in *-shared*)
                touch '{started}'
                for i in $(seq 300); do [ -e '{go}' ] && break; sleep 0.1; done
                [ -e '{go}' ] || exit 3
            esac
            exec c++ "$@"
            """)
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("GIL_JIT_HOST_COMPILER", str(compiler))
    jit = deep_jit.Runtime("host", env_prefix="GIL")
    results = []
    thread = threading.Thread(
        target=lambda: results.append(jit.compile("gil", "__global__ void gil() {}"))
    )
    thread.start()
    while thread.is_alive() and not started.exists():
        thread.join(0.02)
    go.touch()
    thread.join()
    assert [kernel.name for kernel in results] == ["gil"]


def test_other_threads_run_while_waiting(jit):
    kernel = jit.compile(
        "wait",
        """
        #include <atomic>
        extern "C" __global__ void wait(int* flag) {
            while (std::atomic_ref<int>(*flag).load() == 0) {}
        }
        """,
    )
    flag, stream = np.zeros(1, np.int32), jit.stream()
    kernel.launch(flag, grid=1, block=1, stream=stream)
    setter = threading.Timer(0.1, lambda: flag.__setitem__(0, 1))
    setter.start()
    stream.synchronize()
    setter.join()
    assert stream.idle


def test_a_process_ends_quietly_with_work_under_way(cache):
    program = textwrap.dedent(
        f"""
        import deep_jit, numpy as np
        jit = deep_jit.Runtime("host")
        scale = jit.compile("scale", {SCALE!r})
        y = np.zeros(1 << 20, np.float32)
        for _ in range(50):
            scale[4096, 256](y, y, y.size, 1.0)
        print("done")
        """
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
