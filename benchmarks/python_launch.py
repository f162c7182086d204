"""What a launch costs from Python: this library as a package and through a PyTorch extension,
cuda.core, CuPy, Triton and PyTorch's own kernels, beside a bare launch from C++. All in one run, in
turns. The package `deep_jit` must be importable to take part.

usage: python_launch.py [--json=FILE] [ROUNDS]
"""

import json
import pathlib
import statistics
import sys
import time
import typing

import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "gpu" / "extension"))
import build_extension

BATCH = 256
NUMBER = 3  # no value that a compiler would specialize a kernel for
SOURCE = """
extern "C" __global__ void nothing(float* output, const float* input, int count, float factor) {
    if (count < 0)
        output[0] = input[0] * factor;
}
"""
Launch = typing.Callable[[], typing.Any]


def with_extension(module, out, inp, stream) -> dict[str, Launch]:
    a, b = out.data_ptr(), inp.data_ptr()

    return {
        "deep_jit extension, addresses": lambda: module.launch(a, b, NUMBER, 2.0),
        "deep_jit extension, compile and launch": lambda: module.compile_and_launch(
            a, b, NUMBER, 2.0
        ),
        "deep_jit extension, tensors": lambda: module.scale_into(out, inp, 2.0),
    }


def with_package(out, inp, stream) -> dict[str, Launch]:
    import cupy
    import deep_jit

    kernel = deep_jit.Runtime("cuda").compile("nothing", SOURCE)
    prepared = kernel[1, 32]
    a, b = out.data_ptr(), inp.data_ptr()
    # Made here, so that launches with them are on PyTorch's current stream as well.
    cupy.cuda.ExternalStream(stream.cuda_stream).use()
    c, d = cupy.asarray(out), cupy.asarray(inp)
    return {
        "deep_jit package, kernel[grid, block](tensors)": lambda: kernel[1, 32](
            out, inp, NUMBER, 2.0
        ),
        "deep_jit package, launch(tensors, grid=, block=)": lambda: kernel.launch(
            out, inp, NUMBER, 2.0, grid=1, block=32
        ),
        "deep_jit package, prepared(tensors)": lambda: prepared(out, inp, NUMBER, 2.0),
        "deep_jit package, prepared(addresses)": lambda: prepared(a, b, NUMBER, 2.0),
        "deep_jit package, kernel[grid, block](CuPy arrays)": lambda: kernel[1, 32](
            c, d, NUMBER, 2.0
        ),
    }


def with_cuda_core(out, inp, stream) -> dict[str, Launch]:
    import ctypes

    try:
        from cuda.core import (
            Device,
            LaunchConfig,
            Program,
            ProgramOptions,
            Stream,
            launch,
        )
    except ImportError:
        from cuda.core.experimental import (
            Device,
            LaunchConfig,
            Program,
            ProgramOptions,
            Stream,
            launch,
        )

    device = Device(torch.cuda.current_device())
    device.set_current()
    major, minor = torch.cuda.get_device_capability()
    options = ProgramOptions(std="c++17", arch=f"sm_{major}{minor}")
    kernel = Program(SOURCE, "c++", options).compile("cubin").get_kernel("nothing")
    config = LaunchConfig(grid=1, block=32)
    queue = Stream.from_handle(stream.cuda_stream)
    arguments = (
        out.data_ptr(),
        inp.data_ptr(),
        ctypes.c_int(NUMBER),
        ctypes.c_float(2.0),
    )
    return {"cuda.core": lambda: launch(queue, config, kernel, *arguments)}


def with_cupy(out, inp, stream) -> dict[str, Launch]:
    import cupy
    import numpy

    kernel = cupy.RawKernel(SOURCE, "nothing")
    arguments = (
        cupy.asarray(out),
        cupy.asarray(inp),
        numpy.int32(NUMBER),
        numpy.float32(2.0),
    )
    cupy.cuda.ExternalStream(stream.cuda_stream).use()
    return {"CuPy": lambda: kernel((1,), (32,), arguments)}


def with_triton(out, inp, stream) -> dict[str, Launch]:
    import triton
    import triton.language as tl

    @triton.jit
    def nothing(output, input, count, factor):
        if count < 0:
            tl.store(output, tl.load(input) * factor)

    return {"Triton": lambda: nothing[(1,)](out, inp, NUMBER, 2.0, num_warps=1)}


def with_torch(out, inp, stream) -> dict[str, Launch]:
    kernel = torch.cuda._compile_kernel(SOURCE, "nothing")
    arguments = (out, inp, NUMBER, 2.0)
    return {
        "torch.cuda._compile_kernel": lambda: kernel((1, 1, 1), (32, 1, 1), arguments),
    }


def python_call() -> Launch:
    def nothing(output, input, count, factor):
        return None

    return lambda: nothing(1, 2, NUMBER, 2.0)


def time_each(launch: Launch) -> float:
    """Nanoseconds for each of a batch of launches."""
    batch = range(BATCH)
    start = time.perf_counter_ns()
    for _ in batch:
        launch()
    return (time.perf_counter_ns() - start) / BATCH


def collect(stream) -> tuple[dict[str, typing.Callable[[], float]], dict[str, str]]:
    """Functions that take a sample, in nanoseconds; and what cannot take part, with the reason."""
    out, inp = torch.zeros(8, device="cuda"), torch.zeros(8, device="cuda")
    torch.cuda.synchronize()
    module = build_extension.load(build_extension.NAMES[0])
    a, b, handle = out.data_ptr(), inp.data_ptr(), stream.cuda_stream
    samples = {
        "bare launch from C++": lambda: module.bare_launches(BATCH, a, b, handle),
        "deep_jit launch from C++": lambda: module.launches(BATCH, a, b),
    }
    launches = {"(a Python call of four arguments)": python_call()}
    missing = {}
    launches.update(with_extension(module, out, inp, stream))
    for contender in (with_package, with_cuda_core, with_cupy, with_triton, with_torch):
        try:
            new = contender(out, inp, stream)
            for launch in new.values():
                launch()
            torch.cuda.synchronize()
            launches.update(new)
        except Exception as error:  # noqa: BLE001 (whatever another library does is its affair)
            missing[contender.__name__.removeprefix("with_")] = (
                f"{type(error).__name__}: {error}"
            )
    for name, launch in launches.items():
        samples[name] = lambda launch=launch: time_each(launch)
    return samples, missing


def measure(samples, rounds: int) -> dict[str, list[float]]:
    """Samples of each, taken in turns; another one begins each round."""
    names = list(samples)
    taken = {name: [] for name in names}
    warm_up = rounds // 10 + 1
    for turn in range(warm_up + rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            sample = samples[name]()
            torch.cuda.synchronize()
            if turn >= warm_up:
                taken[name].append(sample)
    return taken


def main() -> None:
    path, rounds = None, 100
    for argument in sys.argv[1:]:
        if argument.startswith("--json="):
            path = pathlib.Path(argument.removeprefix("--json="))
        else:
            rounds = int(argument)
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        return
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        samples, missing = collect(stream)
        taken = measure(samples, rounds)
    reference = taken["bare launch from C++"]
    rows = {}
    print(f"\n{'launch':50} {'median ns':>12} {'over ns':>12}")
    for name, values in taken.items():
        over = statistics.median(value - bare for value, bare in zip(values, reference))
        rows[name] = {
            "median_ns": statistics.median(values),
            "over_ns": over,
            "rounds": rounds,
        }
        print(f"{name:50} {rows[name]['median_ns']:12.1f} {over:+12.1f}")
    for name, reason in missing.items():
        print(f"{name}: not measured, {reason}")
    if path is not None:
        path.write_text(json.dumps({**rows, "missing": missing}, indent=2) + "\n")


if __name__ == "__main__":
    main()
