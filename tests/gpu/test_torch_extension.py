"""A PyTorch extension that compiles and launches kernels, built as consumers build theirs."""

import os
import pathlib
import stat
import subprocess
import sys
import textwrap
import threading

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "extension"))
import build_extension as build


@pytest.fixture(scope="session")
def extensions(tmp_path_factory):
    """Both modules. Their runtimes read the environment when they are first used."""
    caches = {}
    for name in build.NAMES:
        caches[name] = tmp_path_factory.mktemp("cache")
        os.environ[build.prefix(name) + "_JIT_CACHE_DIR"] = str(caches[name])
    return [build.load(name) for name in build.NAMES], [
        caches[name] for name in build.NAMES
    ]


@pytest.fixture
def gpu():
    if not torch.cuda.is_available():
        assert os.environ.get("DEEP_JIT_REQUIRE_GPU") != "1", "PyTorch sees no GPU"
        pytest.skip("PyTorch sees no GPU")
    return torch.device("cuda")


@pytest.fixture
def extension(extensions, gpu):
    return extensions[0][0]


def numbers(count: int, device) -> "torch.Tensor":
    generator = torch.Generator().manual_seed(count)
    return torch.randn(count, generator=generator).to(device)


def test_scales(extension, gpu):
    x = numbers(1_000_003, gpu)
    assert torch.equal(extension.scale(x, 2.5).cpu(), x.cpu() * 2.5)


def test_wrong_arguments_raise(extension, gpu):
    x = numbers(10, gpu)
    with pytest.raises(RuntimeError, match=r"argument 3 \(4 bytes\) is missing"):
        extension.scale_wrongly(x, x)
    assert torch.equal(extension.scale(x, 3.0).cpu(), x.cpu() * 3.0)


def test_current_stream_is_pytorchs(extension, gpu):
    def agrees():
        return extension.current_stream() == torch.cuda.current_stream().cuda_stream

    assert agrees()
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(first):
        assert agrees() and extension.current_stream() == first.cuda_stream != 0
        with torch.cuda.stream(second):
            assert agrees() and extension.current_stream() == second.cuda_stream
        assert agrees()
        seen = []
        # The current stream belongs to the thread: another one has the default stream.
        thread = threading.Thread(
            target=lambda: seen.append(extension.current_stream())
        )
        thread.start()
        thread.join()
        assert seen == [0]
    assert agrees()


def launches_follow_the_stream(extension, gpu) -> bool:
    """A launch within a stream waits for what that stream is busy with."""
    x, out = numbers(1000, gpu), torch.zeros(1000, device=gpu)
    stream, other = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        extension.scale_into(
            torch.empty_like(x), x, 1.0
        )  # loaded before anything has to wait
    with torch.cuda.stream(other):
        torch.empty(1000, device=gpu).copy_(out)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(500_000_000)  # a quarter of a second
        extension.scale_into(out, x, 4.0)
    with torch.cuda.stream(other):
        early = out.clone()
    other.synchronize()
    waited = not early.any().item()
    stream.synchronize()
    return waited and torch.equal(out.cpu(), x.cpu() * 4.0)


def test_launches_follow_the_stream(extension, gpu):
    assert launches_follow_the_stream(extension, gpu)


def test_launches_follow_the_stream_of_another_thread(extension, gpu):
    results = []
    thread = threading.Thread(
        target=lambda: results.append(launches_follow_the_stream(extension, gpu))
    )
    thread.start()
    thread.join()
    assert results == [True]


def test_two_threads_on_two_streams(extension, gpu):
    x = numbers(100_000, gpu)
    torch.cuda.synchronize()
    results = [None, None]

    def work(which):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            y = x.clone()
            for _ in range(50):
                extension.scale_into(y, y, 2.0 if which else -1.0)
            results[which] = y
        stream.synchronize()

    threads = [threading.Thread(target=work, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.equal(results[0].cpu(), x.cpu())
    assert torch.equal(results[1].cpu(), x.cpu() * 2.0**50)


def test_launches_are_captured(extension, gpu):
    x = numbers(5000, gpu)
    y, z = torch.empty_like(x), torch.zeros_like(x)
    extension.scale_into(y, x, 1.0)  # compiled and loaded before the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        extension.scale_into(y, x, 2.0)
        extension.scale_into(z, y, 3.0)
    torch.cuda.synchronize()
    assert not z.any()
    for seed in range(3):
        new = numbers(5000 + seed, gpu)[:5000]
        x.copy_(new)
        graph.replay()
        assert torch.equal(z.cpu(), new.cpu() * 2.0 * 3.0)


def test_two_extensions_have_runtimes_of_their_own(extensions, gpu):
    (a, b), caches = extensions
    x = numbers(1000, gpu)
    y = b.scale(a.scale(x, 2.0), 8.0)
    assert torch.equal(y.cpu(), x.cpu() * 16.0)
    for module, cache in zip((a, b), caches):
        entry = pathlib.Path(module.cache_entry())
        assert entry.is_relative_to(cache) and (entry / "kernel.cubin").is_file()
    # Both find PyTorch's stream.
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        assert a.current_stream() == b.current_stream() == stream.cuda_stream


def test_the_gil_is_free_while_compiling(extensions, tmp_path, monkeypatch):
    """The compiler waits for a file that only another Python thread can make."""
    (module, _), _ = extensions
    nvcc = pathlib.Path(build.cuda_include()).parent / "bin" / "nvcc"
    started, go = tmp_path / "started", tmp_path / "go"
    wrapper = tmp_path / "bin" / "nvcc"
    wrapper.parent.mkdir()
    wrapper.write_text(
        textwrap.dedent(f"""\
            #!/bin/sh
            case "$*" in *--cubin*)
                touch '{started}'
                for i in $(seq 300); do [ -e '{go}' ] && break; sleep 0.1; done
                [ -e '{go}' ] || exit 3
            esac
            exec '{nvcc}' "$@"
            """)
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("EXTENSION_A_JIT_NVCC_COMPILER", str(wrapper))
    monkeypatch.setenv("EXTENSION_A_JIT_CACHE_DIR", str(tmp_path / "cache"))
    if not torch.cuda.is_available():
        monkeypatch.setenv("EXTENSION_A_JIT_ARCH", "90a")
    results = []

    def compile_it():
        try:
            results.append(
                module.compile_only("__global__ void one(int* p) { *p = 1; }\n")
            )
        except RuntimeError as error:
            results.append(error)

    thread = threading.Thread(target=compile_it)
    thread.start()
    while thread.is_alive() and not started.exists():
        thread.join(0.02)
    go.touch()
    thread.join()
    assert isinstance(results[0], str), results[0]
    assert (pathlib.Path(results[0]) / "kernel.cubin").is_file()


def test_a_process_ends_quietly(extension, tmp_path):
    """With kernels loaded, work under way, and nothing cleaned up."""
    program = textwrap.dedent(f"""\
        import importlib.util, torch
        spec = importlib.util.spec_from_file_location({extension.__name__!r}, {extension.__file__!r})
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        x = torch.ones(1000, device="cuda")
        assert module.scale(x, 2.0).sum().item() == 2000
        torch.cuda._sleep(100_000_000)
        y = module.scale(x, 3.0)
        print("done")
        """)
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr
    assert result.stderr == ""
