"""Makes a Python process record itself once it imports torch, then hands on to the usual one.

Runs at the start of every Python process of a program, so it imports next to nothing until torch
comes, and leaves `sys.path` as the program would have had it.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  (pathlib is slower)
_PACKAGE = "_trace_replay_recording"
"""A private name: `replay` may be a module of the program."""


def _load(part: str) -> ModuleType:
    """A module of the folder above, by its path."""
    if _PACKAGE not in sys.modules:
        folder = os.path.dirname(_HERE)  # noqa: PTH120
        spec = importlib.util.spec_from_file_location(
            _PACKAGE,
            os.path.join(folder, "__init__.py"),  # noqa: PTH118
            submodule_search_locations=[folder],
        )
        if spec is None or spec.loader is None:
            raise ImportError(f"no package in {folder}")
        package = importlib.util.module_from_spec(spec)
        sys.modules[_PACKAGE] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{_PACKAGE}.{part}")


def _attempt(action: Callable[[], None]) -> None:
    """Errors are told: a program must start, whatever its Python or its torch lacks."""
    try:
        action()
    except Exception as error:
        sys.stderr.write(f"replay capture: not recording: {type(error).__name__}: {error}\n")


def _record() -> None:
    settings = _load("settings")
    asked = settings.from_json(os.environ[settings.VARIABLE])
    _load("hooks").count_steps(asked)


def _wait_for_torch() -> None:
    if _load("settings").VARIABLE in os.environ:
        _load("waiting").after_torch(lambda: _attempt(_record))


def _hand_on() -> None:
    """Run the `sitecustomize` that would have been found without this one."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _HERE]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_attempt(_wait_for_torch)
_hand_on()
