"""The stand-in for the CUDA driver (tests/stand_in/cuda), put into this process."""

import ctypes
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Record(ctypes.Structure):
    """dj_stand_in_cuda_launch_t"""

    _fields_ = [
        ("kernel", ctypes.c_char_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("cluster", ctypes.c_uint * 3),
        ("smem", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("device", ctypes.c_int),
        ("cooperative", ctypes.c_int),
        ("pdl", ctypes.c_int),
        ("nonportable", ctypes.c_int),
        ("max_dynamic_smem", ctypes.c_int),
        ("captured", ctypes.c_int),
        ("replayed", ctypes.c_int),
        ("through_kernel", ctypes.c_int),
        ("num_arguments", ctypes.c_size_t),
    ]


def library() -> pathlib.Path:
    directory = os.environ.get(
        "DEEP_JIT_STAND_IN_CUDA", ROOT / "build/dev/stand_in/cuda"
    )
    return pathlib.Path(directory) / "libcuda.so.1"


class Driver:
    def __init__(self):
        # From now on dlopen("libcuda.so.1") finds this one.
        self.library = ctypes.CDLL(str(library()), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        self.count = self.library.dj_stand_in_cuda_launch_count
        self.count.restype = ctypes.c_size_t
        self.argument = self.library.dj_stand_in_cuda_argument
        self.argument.restype = ctypes.c_size_t

    def call(self, name, *args):
        assert getattr(self.library, name)(*args) == 0, name

    def restart(self, devices="9.0"):
        os.environ["DJ_STAND_IN_CUDA_DEVICES"] = devices
        self.library.dj_stand_in_cuda_restart()

    def use_device(self, index):
        """Makes the primary context of a device current."""
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), index)
        self.call("cuCtxSetCurrent", context)

    def make_stream(self):
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream.value

    def last(self):
        """The last launch and the bytes of its arguments."""
        record, number = Record(), self.count() - 1
        self.call(
            "dj_stand_in_cuda_launch", ctypes.c_size_t(number), ctypes.byref(record)
        )
        arguments = []
        for index in range(record.num_arguments):
            where = (ctypes.c_size_t(number), ctypes.c_size_t(index))
            size = self.argument(*where, None, ctypes.c_size_t(0))
            bytes_ = ctypes.create_string_buffer(size)
            self.argument(*where, bytes_, ctypes.c_size_t(size))
            arguments.append(bytes_.raw)
        return record, arguments
