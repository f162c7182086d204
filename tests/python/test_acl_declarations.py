"""The library declares what it uses of ACL itself. Here this is compared with the vendor's headers,
as far as those come with the wheel of torch_npu."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASCEND = ROOT / "include/deep_jit/backend/ascend"
WHEEL = "torch-npu==2.14.0"
INSIDE = "torch_npu/include/third_party/acl/inc/"


def download_headers(target):
    """Unpacks ACL's headers of the wheel. Any platform's do."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            WHEEL,
        ]
        command += ["--only-binary=:all:", "--platform=manylinux_2_28_x86_64"]
        command += ["--python-version=3.11", "--retries=1", f"--dest={scratch}"]
        command += ["--disable-pip-version-check"]
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, timeout=180
            )
            problem = "".join(done.stderr.strip().splitlines()[-1:])
        except subprocess.TimeoutExpired:
            problem = "no answer"
        wheels = list(pathlib.Path(scratch).glob("*.whl"))
        if not wheels:
            pytest.skip(f"the wheel {WHEEL} cannot be had: {problem}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            names = [
                name for name in wheel.namelist() if name.startswith(INSIDE + "acl/")
            ]
            wheel.extractall(scratch, names)
        shutil.rmtree(target, ignore_errors=True)
        (pathlib.Path(scratch) / INSIDE).rename(target)


@pytest.fixture(scope="module")
def headers():
    """Folder with acl/acl_rt.h. DEEP_JIT_ACL_INCLUDE names one, say that of a real CANN."""
    if given := os.environ.get("DEEP_JIT_ACL_INCLUDE"):
        return pathlib.Path(given)
    target = ROOT / "build/acl_headers"
    if not (target / "acl/acl_rt.h").exists():
        target.parent.mkdir(exist_ok=True)
        download_headers(target)
    return target


def error_codes():
    text = (ASCEND / "acl.hpp").read_text()
    return re.findall(r'\{\d+, "(ACL_\w+)"\}', text)


def compile_and_run(headers, folder, include=ROOT / "include"):
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    names = "".join(f"CHECK_NAME({name});\n" for name in error_codes())
    (folder / "error_names.inc").write_text(names)
    program = folder / "declarations"
    command = [
        compiler,
        "-std=c++20",
        "-O0",
        f"-I{include}",
        f"-isystem{headers}",
        f"-I{folder}",
    ]
    command += [
        str(ROOT / "tests/python/acl_declarations.cpp"),
        "-o",
        str(program),
        "-ldl",
    ]
    built = subprocess.run(command, check=False, capture_output=True, text=True)
    if built.returncode:
        return built.stderr
    run = subprocess.run([program], check=False, capture_output=True, text=True)
    return run.stdout if run.returncode else ""


def test_declarations_are_those_of_the_vendor(headers, tmp_path):
    assert compile_and_run(headers, tmp_path) == ""


def test_every_function_is_compared():
    used = set(
        re.findall(
            r"^DJ_ACL\([\w* ]+, (\w+),",
            (ASCEND / "driver.hpp").read_text(),
            re.MULTILINE,
        )
    )
    source = (ROOT / "tests/python/acl_declarations.cpp").read_text()
    compared = set(re.findall(r"^CHECK_FUNCTION\((\w+)\);", source, re.MULTILINE))
    assert len(used) > 20
    assert used == compared
    assert len(error_codes()) > 40


@pytest.mark.parametrize(
    "header, right, wrong, complaint",
    [
        (
            "driver.hpp",
            "aclrtGetDeviceCount, std::uint32_t*",
            "aclrtGetDeviceCount, int",
            "Count",
        ),
        (
            "driver.hpp",
            "void*, std::size_t, acl::PlaceHolderInfo*",
            "void*, int, void*",
            "HostArgs",
        ),
        ("acl.hpp", "kTimeoutSeconds = 7", "kTimeoutSeconds = 8", "ATTR_TIMEOUT"),
        (
            "acl.hpp",
            "std::uint16_t timeout_seconds",
            "std::uint32_t timeout_seconds",
            "timeout",
        ),
        (
            "acl.hpp",
            '{107002, "ACL',
            '{107102, "ACL',
            "ACL_ERROR_RT_CONTEXT_NULL is 107002",
        ),
    ],
)
def test_a_wrong_declaration_is_found(
    headers, tmp_path, header, right, wrong, complaint
):
    include = tmp_path / "include"
    shutil.copytree(ROOT / "include", include)
    path = include / "deep_jit/backend/ascend" / header
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))
    assert complaint in compile_and_run(headers, tmp_path, include)
