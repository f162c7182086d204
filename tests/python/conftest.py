"""What the tests of the Python package share: a cache of their own and one runtime."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_configure():
    # Nothing of the user's is read or changed.
    for name in [name for name in os.environ if name.startswith(("DJ_", "DJPY_"))]:
        del os.environ[name]


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    path = tmp_path_factory.mktemp("cache with 'odd' $name")
    os.environ["DJ_JIT_CACHE_DIR"] = str(path)
    return path


@pytest.fixture(scope="session")
def jit(cache):
    import deep_jit

    return deep_jit.Runtime("host")
