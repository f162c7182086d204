"""Memory of other libraries, on the Host backend."""

import array
import ctypes
import gc
import weakref

import numpy as np
import pytest

ADD = """
extern "C" __global__ void add(float* output, const float* input, int count) {
    for (int i = 0; i < count; ++i)
        output[i] += input[i];
}
"""


@pytest.fixture(scope="module")
def add(jit):
    kernel = jit.compile("add", ADD)

    def launch(output, source, count):
        kernel[1, 1](output, source, count)
        jit.synchronize()

    return launch


class Subclass(np.ndarray):
    pass


class Dlpack:
    """Has DLPack's Python methods and nothing else."""

    def __init__(self, owner, device=None, versioned=True):
        self.owner, self.device, self.versioned = owner, device, versioned

    def __dlpack_device__(self):
        return self.device or self.owner.__dlpack_device__()

    def __dlpack__(self, **options):
        if "max_version" in options and not self.versioned:
            raise TypeError("an old producer")
        return self.owner.__dlpack__(**options)


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_index", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


VIEW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
STREAM = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class ExchangeApi(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("unused", ctypes.c_void_p * 3),
        ("view", VIEW),
        ("current_stream", STREAM),
    ]


def exchange_type(view, current_stream=lambda kind, index, out: 0, major=1):
    """A type with DLPack's C functions."""
    api = ExchangeApi(
        major, 3, None, (ctypes.c_void_p * 3)(), VIEW(view), STREAM(current_stream)
    )
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    name = ctypes.create_string_buffer(b"dlpack_exchange_api")
    capsule = new(ctypes.addressof(api), ctypes.cast(name, ctypes.c_char_p), None)

    class Exchange:
        __dlpack_c_exchange_api__ = capsule
        keep = (api, name)

        def __init__(self, **fields):
            self.__dict__.update(fields)

    return Exchange


def view_numpy(exchange, out):
    one = exchange.array
    exchange.extents = (ctypes.c_int64 * one.ndim)(*one.shape)
    exchange.steps = (ctypes.c_int64 * one.ndim)(
        *(step // one.itemsize for step in one.strides)
    )
    tensor = out.contents
    tensor.data = one.ctypes.data - 64
    tensor.byte_offset = 64
    tensor.device_type, tensor.device_index = exchange.device
    tensor.ndim = one.ndim
    tensor.shape = exchange.extents
    tensor.strides = exchange.steps
    return 0


def test_numpy(add):
    x, y = np.arange(12, dtype=np.float32), np.ones(12, np.float32)
    add(y, x, 12)
    assert (y == np.arange(12) + 1).all()
    # Any shape, any element type: the kernel sees the memory.
    add(y.reshape(3, 4), x.view(np.uint8), 12)
    assert (y == 2 * np.arange(12) + 1).all()
    add(y[6:], x[:3], 3)
    assert y[6:9].tolist() == [13, 16, 19]


def test_arrays_that_have_no_order(add):
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(12, np.float32)
    for bad in (x.T, x[:, ::2], x[::-1], np.broadcast_to(np.float32(1), (4,))):
        with pytest.raises(ValueError, match="argument 1 'input' .*not contiguous"):
            add(y, bad, 1)
    for good in (
        x[1:2],
        x[:1].T,
        x[:0],
        x.T[:, :1].T,
        np.zeros((0, 3), np.float32)[:, ::2],
    ):
        add(y, good, 0)
    assert not y.any()


def test_read_only_memory(add):
    x, y = np.ones(4, np.float32), np.ones(4, np.float32)
    x.flags.writeable = False
    add(y, x, 4)
    assert y.tolist() == [2] * 4
    with pytest.raises(ValueError, match="argument 0 'output' .*read-only.*float\\*"):
        add(x, y, 4)
    with pytest.raises(ValueError, match="argument 0 'output' .*read-only"):
        add(memoryview(bytes(16)), y, 4)


@pytest.mark.parametrize(
    "make",
    [
        lambda values: array.array("f", values),
        lambda values: bytearray(np.asarray(values, np.float32)),
        lambda values: memoryview(bytearray(np.asarray(values, np.float32))),
        lambda values: (ctypes.c_float * len(values))(*values),
        lambda values: np.asarray(values, np.float32),
        lambda values: np.asarray(values, np.float32).view(Subclass),
    ],
    ids=["array", "bytearray", "memoryview", "ctypes", "numpy", "subclass"],
)
def test_buffers(add, make):
    out, source = make([1, 2, 3, 4]), make([10, 20, 30, 40])
    add(out, source, 4)
    assert np.frombuffer(memoryview(out).cast("B"), np.float32).tolist() == [
        11,
        22,
        33,
        44,
    ]


def test_bytes_are_not_memory(add):
    with pytest.raises(
        ValueError, match="argument 1 'input' .*memory is passed as an array"
    ):
        add(np.zeros(4, np.float32), bytes(16), 4)


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack(add, versioned):
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    add(Dlpack(y, versioned=versioned), Dlpack(x, versioned=versioned), 4)
    assert y.tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="argument 1 'input' .*not contiguous"):
        add(y, Dlpack(x[::2], versioned=versioned), 2)


def test_dlpack_says_what_is_read_only(add):
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    x.flags.writeable = False
    try:
        x.__dlpack__(max_version=(1, 0))
    except (BufferError, TypeError):
        pytest.skip("this NumPy does not export read-only arrays")
    add(y, Dlpack(x), 4)
    with pytest.raises(ValueError, match="argument 0 'output' .*read-only"):
        add(Dlpack(x), y, 4)


def test_dlpack_of_a_device(add):
    y = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="argument 1 'input' .*a CUDA device"):
        add(y, Dlpack(y, device=(2, 0)), 4)


def test_exchange_api(add):
    exchange = exchange_type(view_numpy)
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    add(exchange(array=y, device=(1, 0)), exchange(array=x, device=(1, 0)), 4)
    assert y.tolist() == [1, 2, 3, 4]
    # Pinned and managed memory are the CPU's too.
    for kind in (3, 13):
        add(exchange(array=y, device=(kind, 0)), x, 4)
    assert y.tolist() == [1, 4, 7, 10]
    with pytest.raises(
        ValueError, match="argument 0 'output' .*a CUDA device.*runs on the CPU"
    ):
        add(exchange(array=y, device=(2, 0)), x, 4)
    with pytest.raises(ValueError, match="argument 1 'input' .*not contiguous"):
        add(y, exchange(array=x[::2], device=(1, 0)), 2)
    with pytest.raises(ValueError, match="another kind of device"):
        add(y, exchange(array=x, device=(10, 0)), 2)


def test_exchange_api_that_fails(add):
    # Without an error set, as only C code could set one.
    def refuse(exchange, out):
        return -1

    exchange = exchange_type(refuse)
    with pytest.raises(SystemError):
        add(np.zeros(1, np.float32), exchange(), 1)


def test_exchange_api_of_another_version_is_not_used(add):
    def never(exchange, out):
        raise AssertionError

    exchange = exchange_type(never, major=2)
    with pytest.raises(TypeError, match="argument 1 'input'"):
        add(np.zeros(1, np.float32), exchange(), 1)


def test_cuda_arrays_are_refused(add):
    class Cuda:
        @property
        def __cuda_array_interface__(self):
            return {
                "data": (4096, False),
                "shape": (4,),
                "typestr": "<f4",
                "version": 3,
            }

    with pytest.raises(ValueError, match="argument 1 'input' .*a CUDA device"):
        add(np.zeros(4, np.float32), Cuda(), 4)


def test_memory_lives_until_the_kernel_has_ended(jit):
    slow = jit.compile(
        "slow",
        """
        #include <chrono>
        #include <thread>
        extern "C" __global__ void slow(int* output, const int* input) {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            *output = *input;
        }
        """,
    )
    out = np.zeros(1, np.int32)
    stream = jit.stream()
    source = np.full(100_000, 7, np.int32)
    gone = weakref.ref(source)
    slow.launch(out, source, grid=1, block=1, stream=stream)
    del source
    gc.collect()
    assert gone() is not None and not stream.idle
    stream.synchronize()
    assert (out[0], gone(), stream.idle) == (7, None, True)

    # A resizable buffer cannot move meanwhile.
    data = bytearray(np.full(1, 9, np.int32))
    slow.launch(out, data, grid=1, block=1, stream=stream)
    with pytest.raises(BufferError):
        data.extend(bytes(1 << 20))
    del stream  # waits
    data.extend(b"x")
    assert out[0] == 9
