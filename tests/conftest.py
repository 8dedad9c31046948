"""What holds for all tests: those that run side by side have compiled functions of their own."""

import os
import shutil
import tempfile
from functools import partial

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Give each worker of pytest-xdist its own cache of numba.

    Two processes that compile one function for different types at the same time may give both
    files the same name; one would then load what was compiled for the other.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tempfile.mkdtemp(prefix="numba-")
        os.environ["NUMBA_CACHE_DIR"] = folder
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
