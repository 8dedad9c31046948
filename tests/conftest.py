"""What holds for all tests: those that run side by side have compiled functions of their own."""

import os
import shutil
import tempfile
from functools import partial

import pytest

CACHES = "NUMBA_CACHES_OF_TESTS"
"""Variable with the folder that workers keep theirs in; it goes when all have ended."""


def pytest_configure(config: pytest.Config) -> None:
    """Give each worker of pytest-xdist its own cache of numba.

    Two processes that compile one function for different types at the same time may give both
    files the same name; one would then load what was compiled for the other.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        os.environ["NUMBA_CACHE_DIR"] = f"{os.environ[CACHES]}/{worker}"
    elif config.getoption("numprocesses", default=None):
        os.environ[CACHES] = tempfile.mkdtemp(prefix="numba-")
        config.add_cleanup(partial(shutil.rmtree, os.environ[CACHES], ignore_errors=True))
