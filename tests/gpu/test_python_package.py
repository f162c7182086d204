"""The Python package on a GPU: arrays of PyTorch, CuPy and JAX, streams, graphs, threads."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

torch = pytest.importorskip("torch")
if os.environ.get("DEEP_JIT_REQUIRE_GPU") == "1":
    import deep_jit
else:
    deep_jit = pytest.importorskip("deep_jit")

SCALE = """
extern "C" __global__ void scale(float* output, const float* input, int count, float factor) {
    const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < count)
        output[index] = input[index] * factor;
}
"""


@pytest.fixture(scope="module")
def jit(tmp_path_factory):
    if not torch.cuda.is_available():
        assert os.environ.get("DEEP_JIT_REQUIRE_GPU") != "1", "PyTorch sees no GPU"
        pytest.skip("PyTorch sees no GPU")
    if "cuda" not in deep_jit.backends:
        pytest.skip("the package was built without the CUDA backend")
    os.environ["PYGPU_JIT_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    return deep_jit.Runtime("cuda", env_prefix="PYGPU")


@pytest.fixture(scope="module")
def scale(jit):
    return jit.compile("scale", SCALE)


def numbers(count):
    return torch.randn(count, generator=torch.Generator().manual_seed(count)).cuda()


def test_scales_a_million_torch_numbers(scale):
    x = numbers(1_000_003)
    y = torch.empty_like(x)
    scale[(x.numel() + 255) // 256, 256](y, x, x.numel(), 2.5)
    assert torch.equal(y.cpu(), x.cpu() * 2.5)


def test_tensors_with_gradients_and_parameters(scale):
    x = torch.nn.Parameter(numbers(1000))
    y = torch.empty(1000, device="cuda", requires_grad=True)
    scale[4, 256](y, x, 1000, 3.0)
    assert torch.equal(y.detach().cpu(), x.detach().cpu() * 3.0)


def test_offsets_and_the_errors_of_tensors(scale):
    x, y = numbers(2000), torch.zeros(2000, device="cuda")
    scale[4, 256](y[1000:], x[500:1500], 1000, 2.0)
    assert not y[:1000].any()
    assert torch.equal(y[1000:].cpu(), x[500:1500].cpu() * 2.0)
    with pytest.raises(ValueError, match="argument 1 'input'.*not contiguous"):
        scale[4, 256](y, x[::2], 1000, 2.0)
    with pytest.raises(ValueError, match="argument 0 'output'.*the CPU"):
        scale[4, 256](y.cpu(), x, 1000, 2.0)
    with pytest.raises(TypeError, match="argument 2 'count'"):
        scale[4, 256](y, x, 1000.0, 2.0)
    scale[4, 256](y.data_ptr(), x.data_ptr(), 1000, 4.0)
    assert torch.equal(y[:1000].cpu(), x[:1000].cpu() * 4.0)


def test_pinned_memory(scale):
    x = torch.arange(1000, dtype=torch.float32).pin_memory()
    y = torch.empty(1000, device="cuda")
    # PyTorch says that pinned memory is the CPU's; its address goes to the device.
    scale[4, 256](y, x.data_ptr(), 1000, 2.0)
    assert torch.equal(y.cpu(), x * 2.0)


def test_cupy_arrays(scale):
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(10_000, dtype=cupy.float32)
    y = cupy.zeros_like(x)
    scale[40, 256](y, x, x.size, 3.0)
    assert (y == x * 3.0).all()
    with pytest.raises(ValueError, match="argument 1 'input'.*not contiguous"):
        scale[40, 256](y, x[::2], 100, 3.0)


def test_jax_arrays(scale):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    try:
        x = jax.block_until_ready(jax.numpy.arange(1000, dtype=jax.numpy.float32))
    except RuntimeError as error:
        pytest.skip(f"JAX does not start: {error}")
    if x.devices().pop().platform == "cpu":
        pytest.skip("JAX has no GPU")
    y = torch.empty(1000, device="cuda")
    scale[4, 256](y, x, 1000, 2.0)
    assert y.cpu().tolist() == [2.0 * i for i in range(1000)]


def is_behind_the_stream(launch, out, stream):
    """Whether a launch waits for what its stream is busy with."""
    other = torch.cuda.Stream()
    with torch.cuda.stream(other):
        out.clone()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(400_000_000)  # a fifth of a second
    launch()
    with torch.cuda.stream(other):
        early = out.clone()
    other.synchronize()
    waited = not early.any().item()
    torch.cuda.synchronize()
    return waited and bool(out.any())


def test_launches_go_to_pytorchs_current_stream(scale):
    x, y = numbers(1000), torch.zeros(1000, device="cuda")
    stream = torch.cuda.Stream()

    def launch():
        with torch.cuda.stream(stream):
            scale[4, 256](y, x, 1000, 2.0)

    assert is_behind_the_stream(launch, y, stream)


def test_launches_go_to_a_given_stream(scale):
    cupy = pytest.importorskip("cupy")
    x = numbers(1000)
    stream = torch.cuda.Stream()
    for given in (
        stream,
        stream.cuda_stream,
        cupy.cuda.ExternalStream(stream.cuda_stream),
    ):
        y = torch.zeros(1000, device="cuda")
        prepared = scale.prepare(grid=4, block=256, stream=given)
        assert is_behind_the_stream(
            lambda y=y, go=prepared: go(y, x, 1000, 2.0), y, stream
        )


def test_cupy_arrays_go_to_cupys_current_stream(scale):
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(1, 1001, dtype=cupy.float32)
    y = torch.zeros(1000, device="cuda")
    out = cupy.asarray(y)
    stream = torch.cuda.Stream()

    def launch():
        with cupy.cuda.ExternalStream(stream.cuda_stream):
            scale[4, 256](out, x, 1000, 2.0)

    assert is_behind_the_stream(launch, y, stream)


def test_captured_into_a_graph(scale):
    x = numbers(5000)
    y, z = torch.empty_like(x), torch.zeros_like(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scale[20, 256](y, x, 5000, 2.0)
        scale[20, 256](z, y, 5000, 3.0)
    torch.cuda.synchronize()
    assert not z.any()
    for seed in range(3):
        new = numbers(5000 + seed)[:5000]
        x.copy_(new)
        graph.replay()
        assert torch.equal(z.cpu(), new.cpu() * 2.0 * 3.0)


def test_eight_threads(jit):
    source = SCALE.replace("scale(", "scale8(")
    x = numbers(100_000)
    torch.cuda.synchronize()
    results, errors = [None] * 8, []

    def work(which):
        try:
            kernel = jit.compile("scale8", source)
            with torch.cuda.stream(torch.cuda.Stream()):
                y = x.clone()
                for _ in range(100):
                    kernel[400, 256](y, y, 100_000, 1.0 if which % 2 else -1.0)
                kernel[400, 256](y, y, 100_000, float(which))
                torch.cuda.current_stream().synchronize()
            results[which] = y
        except Exception as error:  # noqa: BLE001 (any is a failure)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for which in range(8):
        assert torch.equal(results[which].cpu(), x.cpu() * float(which))


def test_shared_memory_clusters_and_structures(jit):
    kernel = jit.compile(
        "blocks",
        """
        struct Pair { int first; float second; };
        extern "C" __global__ void blocks(float* output, Pair pair) {
            extern __shared__ float shared[];
            unsigned in_cluster;
            asm("mov.u32 %0, %cluster_nctaid.x;" : "=r"(in_cluster));
            shared[threadIdx.x * 400] = pair.second;
            __syncthreads();
            if (threadIdx.x == 0)
                output[blockIdx.x] = pair.first * shared[31 * 400] + in_cluster;
        }
        """,
    )
    import struct

    y = torch.zeros(4, device="cuda")
    kernel.launch(
        y, struct.pack("if", 3, 2.0), grid=4, block=32, smem=32 * 400 * 4, cluster=2
    )
    assert y.tolist() == [8.0] * 4


def test_device_facts_and_synchronize(jit, scale):
    facts = jit.device
    properties = torch.cuda.get_device_properties(0)
    assert facts.name == properties.name
    assert facts.num_sms == properties.multi_processor_count
    assert tuple(facts.compute_capability) == (properties.major, properties.minor)
    x, y = numbers(10), torch.empty(10, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        scale.launch(y, x, 10, 2.0, grid=1, block=32)
        assert not stream.query()
        jit.synchronize()
        assert stream.query()
    jit.synchronize(stream)


def test_without_torch_in_the_process(tmp_path):
    """CuPy alone, and a process that ends with work under way."""
    pytest.importorskip("cupy")
    program = textwrap.dedent(
        f"""
        import sys
        import cupy, deep_jit
        jit = deep_jit.Runtime("cuda")
        scale = jit.compile("scale", {SCALE!r})
        x = cupy.arange(1000, dtype=cupy.float32)
        y = cupy.zeros_like(x)
        with cupy.cuda.Stream(non_blocking=True) as stream:
            scale[4, 256](y, x, 1000, 2.0)
            stream.synchronize()
        assert (y == 2 * x).all()
        assert "torch" not in sys.modules
        scale[4, 256](y, x, 1000, 3.0)
        print("done")
        """
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "DJ_JIT_CACHE_DIR": str(tmp_path)},
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
