"""Waiting for a program to import torch, without importing it."""

import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any


def after_torch(then: Callable[[], None]) -> None:
    """Call once torch is imported; a process that never imports it is left alone."""
    if "torch" in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _TorchFinder(then))


class _TorchFinder(MetaPathFinder):
    """Lets the other finders find torch, and has something done when it is loaded."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:  # noqa: ANN401, ARG002  (as importlib has it)
        """Nothing but for torch, and for that only once."""
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        loader, load = spec.loader, spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            load(module)
            self._then()

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
