"""The CUDA backend without a GPU: real NVCC, and the stand-in for the driver, which records."""

import shutil
import struct
import subprocess
import sys
import types

import deep_jit
import numpy as np
import pytest
import stand_in_cuda
from test_arrays import exchange_type, view_numpy

ROOT = stand_in_cuda.ROOT
SCALE = """
extern "C" __global__ void scale(float* output, const float* input, int count, float factor) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * factor;
}
"""


def have_nvcc():
    return (
        shutil.which("nvcc")
        or subprocess.run(
            [ROOT / "scripts/cuda_home.sh"], capture_output=True, check=False
        ).returncode
        == 0
    )


pytestmark = [
    pytest.mark.skipif(
        "cuda" not in deep_jit.backends, reason="built without the CUDA backend"
    ),
    pytest.mark.skipif(
        not stand_in_cuda.library().exists(), reason="the stand-in is not built"
    ),
    pytest.mark.skipif(not have_nvcc(), reason="there is no NVCC"),
]


@pytest.fixture(scope="module")
def driver():
    driver = stand_in_cuda.Driver()
    driver.restart()
    driver.use_device(0)
    return driver


@pytest.fixture(scope="module")
def cuda(driver, cache):
    return deep_jit.Runtime("cuda")


@pytest.fixture(scope="module")
def scale(cuda):
    return cuda.compile("scale", SCALE)


class CudaArray:
    """An array as CuPy, Numba or JAX would show it."""

    def __init__(self, address, read_only=False, shape=(4,), strides=None):
        self.__cuda_array_interface__ = {
            "data": (address, read_only),
            "shape": shape,
            "typestr": "<f4",
            "strides": strides,
            "version": 3,
        }


def test_device_facts(cuda):
    facts = cuda.device
    assert (facts.arch, facts.compute_capability, facts.index) == ("90a", [9, 0], 0)
    assert facts.num_sms > 0 and facts.num_smem_bytes > 48 * 1024


def test_a_launch(scale, driver):
    assert [one.name for one in scale.parameters] == [
        "output",
        "input",
        "count",
        "factor",
    ]
    assert scale.handle != 0
    scale[(5, 2), 64](CudaArray(0x7000), CudaArray(0x9000, read_only=True), 300, 2.5)
    record, arguments = driver.last()
    assert record.kernel == b"scale"
    assert list(record.grid) == [5, 2, 1] and list(record.block) == [64, 1, 1]
    assert (record.smem, record.stream, record.cooperative, record.pdl) == (
        0,
        None,
        0,
        0,
    )
    assert arguments == [
        struct.pack("Q", 0x7000),
        struct.pack("Q", 0x9000),
        struct.pack("i", 300),
        struct.pack("f", 2.5),
    ]


def test_launch_settings(cuda, driver):
    kernel = cuda.compile(
        "shared", "extern __shared__ int s[]; __global__ void f() { s[0] = 1; }"
    )
    kernel.launch(grid=8, block=32, smem=100_000, cluster=2, pdl=True, cooperative=True)
    record, arguments = driver.last()
    assert (record.smem, list(record.cluster), record.pdl, record.cooperative) == (
        100_000, [2, 1, 1], 1, 1,
    )  # fmt: skip
    assert arguments == []
    kernel.prepare(grid=16, block=32, cluster=16, nonportable_cluster=True)()
    record, _ = driver.last()
    assert (record.cluster[0], record.nonportable) == (16, 1)
    with pytest.raises(TypeError, match="cuda backend have no 'num_threads'"):
        kernel.launch(grid=1, block=1, num_threads=1)
    with pytest.raises(TypeError, match="smem must be an int"):
        kernel.launch(grid=1, block=1, smem="1")
    with pytest.raises(TypeError, match="pdl must be a bool"):
        kernel.launch(grid=1, block=1, pdl=1)
    with pytest.raises(deep_jit.LaunchError, match="multiple of the cluster"):
        kernel.launch(grid=3, block=1, cluster=2)
    with pytest.raises(deep_jit.LaunchError, match="cuLaunchKernelEx"):
        kernel[1, 2000]()


def test_streams(cuda, scale, driver):
    stream = driver.make_stream()

    class Protocol:
        def __cuda_stream__(self):
            return (0, stream)

    for given in (
        stream,
        types.SimpleNamespace(cuda_stream=stream),
        types.SimpleNamespace(ptr=stream),
        Protocol(),
        types.SimpleNamespace(__cuda_stream__=(0, stream)),
    ):
        scale.launch(1, 2, 3, 4.0, grid=1, block=1, stream=given)
        assert driver.last()[0].stream == stream
    scale.launch(1, 2, 3, 4.0, grid=1, block=1, stream=0)
    assert driver.last()[0].stream is None
    for bad in ("1", 1.5, object(), types.SimpleNamespace(ptr="x")):
        with pytest.raises(TypeError, match="stream"):
            scale.launch(1, 2, 3, 4.0, grid=1, block=1, stream=bad)
    with pytest.raises(ValueError, match="out of range"):
        scale.launch(1, 2, 3, 4.0, grid=1, block=1, stream=-1)
    with pytest.raises(TypeError, match="streams of other libraries"):
        cuda.stream()
    cuda.synchronize()
    cuda.synchronize(stream)


def test_the_stream_of_the_first_array(cuda, scale, driver):
    stream = driver.make_stream()
    asked = []

    def current_stream(kind, index, out):
        asked.append((kind, index))
        out.contents.value = stream
        return 0

    exchange = exchange_type(view_numpy, current_stream)
    x = np.zeros(4, np.float32)
    scale[1, 1](CudaArray(1), exchange(array=x, device=(2, 0)), 3, 4.0)
    # The interface of the first array names no stream: the next rule is PyTorch's or CuPy's.
    assert (driver.last()[0].stream, asked) == (None, [])
    scale[1, 1](exchange(array=x, device=(2, 0)), CudaArray(1), 3, 4.0)
    assert (driver.last()[0].stream, asked) == (stream, [(2, 0)])
    assert driver.last()[1][0] == struct.pack("Q", x.ctypes.data)
    scale.launch(exchange(array=x, device=(2, 0)), 0, 3, 4.0, grid=1, block=1, stream=0)
    assert driver.last()[0].stream is None
    # Pinned memory has no device, so no stream either.
    scale[1, 1](exchange(array=x, device=(3, 0)), 0, 3, 4.0)
    assert (driver.last()[0].stream, len(asked)) == (None, 1)


def test_cupys_current_stream(scale, driver, monkeypatch):
    """With a module that has what is used of CuPy."""
    stream = driver.make_stream()
    module = types.ModuleType("cupy.cuda")
    module.get_current_stream = lambda: types.SimpleNamespace(ptr=stream)
    monkeypatch.setitem(sys.modules, "cupy", types.ModuleType("cupy"))
    monkeypatch.setitem(sys.modules, "cupy.cuda", module)
    scale[1, 1](CudaArray(1), CudaArray(2), 3, 4.0)
    assert driver.last()[0].stream == stream
    # PyTorch, where it is imported, goes first.
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    scale[1, 1](CudaArray(1), CudaArray(2), 3, 4.0)
    assert driver.last()[0].stream is None


def test_wrong_arrays(scale):
    out = CudaArray(0x1000)
    for bad, message in [
        (
            np.zeros(4, np.float32),
            "memory is that of the CPU, and the kernel runs on a CUDA device",
        ),
        (CudaArray(1, shape=(4, 4), strides=(32, 4)), "not contiguous"),
        (CudaArray(1, shape=(2, 2), strides=(4, 8)), "not contiguous"),
    ]:
        with pytest.raises(ValueError, match=f"argument 1 'input' .*{message}"):
            scale[1, 1](out, bad, 1, 1.0)
    with pytest.raises(ValueError, match="argument 0 'output' .*read-only"):
        scale[1, 1](CudaArray(1, read_only=True), out, 1, 1.0)
    for good in (
        CudaArray(1, shape=(2, 3), strides=(12, 4)),
        CudaArray(0, shape=(0, 3), strides=(99, 4)),
        CudaArray(1, shape=(), strides=()),
        CudaArray(1, shape=(1, 3), strides=(999, 4)),
    ):
        scale[1, 1](out, good, 1, 1.0)
    for broken in (
        {},
        {"data": 3, "shape": ()},
        {"data": (1, False), "shape": 3},
        None,
    ):
        with pytest.raises(TypeError, match="__cuda_array_interface__"):
            scale[1, 1](
                out, types.SimpleNamespace(__cuda_array_interface__=broken), 1, 1.0
            )


def test_template_parameters_are_read_from_the_name(cuda, driver):
    kernel = cuda.compile(
        "fill",
        "template <typename T> __global__ void fill(T* out, T value, unsigned char small) {\n"
        "    *out = value + small;\n}\n"
        "static void __instantiate_kernel() { auto p = reinterpret_cast<void*>(&fill<float>); }",
    )
    assert [(one.kind, one.size) for one in kernel.parameters] == [
        ("pointer", 8),
        ("unknown", 4),
        ("unsigned", 1),
    ]
    kernel[1, 1](0x1000, 2.5, 255)
    assert driver.last()[1] == [
        struct.pack("Q", 0x1000),
        struct.pack("f", 2.5),
        b"\xff",
    ]
    with pytest.raises(ValueError, match="argument 2 'small' .*256 is out of range"):
        kernel[1, 1](0x1000, 2.5, 256)


def test_two_devices(cache):
    program = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests/python")!r})
import numpy as np, stand_in_cuda
from test_arrays import exchange_type, view_numpy
driver = stand_in_cuda.Driver()
driver.restart("9.0,9.0")
driver.use_device(1)
import deep_jit
scale = deep_jit.Runtime("cuda").compile("scale", {SCALE!r})
exchange = exchange_type(view_numpy)
x = np.zeros(4, np.float32)
scale[1, 1](exchange(array=x, device=(2, 1)), 0, 3, 4.0)
assert driver.last()[0].device == 1
try:
    scale[1, 1](exchange(array=x, device=(2, 0)), 0, 3, 4.0)
except ValueError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "argument 0 'output'" in result.stdout
    assert (
        "its memory is on device 0, and the kernel would run on device 1"
        in result.stdout
    )


def test_without_a_driver(cache):
    """Compiling needs an architecture; loading a driver."""
    program = f"""
import deep_jit, pathlib
jit = deep_jit.Runtime("cuda", arch="90a")
path = pathlib.Path(jit.compile_without_load("scale", {SCALE!r}))
assert (path / "kernel.cubin").is_file()
for ask in (lambda: jit.compile("scale", {SCALE!r}), lambda: jit.device,
            lambda: deep_jit.Runtime("cuda").compile("scale", "")):
    try:
        ask()
    except deep_jit.ToolchainError as error:
        print("libcuda" in str(error))
"""
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "True" not in result.stdout and result.returncode == 0:
        pytest.skip("this machine has a driver")
    assert (result.returncode, result.stdout) == (0, "True\n" * 3), result.stderr
