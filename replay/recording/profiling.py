"""torch's profiler with the options that the analyzer needs, whatever torch's version."""

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import profiler

from .settings import Settings

_OPTIONS_BY_AGE: tuple[tuple[str, ...], ...] = (
    ("enable_cuda_sync_events", "trace_only"),
    ("enable_cuda_sync_events",),
    (),
)
"""Experimental options, from the newest torch to the oldest.

Sync events (torch 2.1) say what a stream or the host waits for; `trace_only` (2.13) leaves out the
events for Python, which nobody here asks for.
"""


def make_profiler(
    settings: Settings, *, ready: Callable[[Any], None], file_only: bool = True
) -> profiler.profile:
    """A `torch.profiler.profile` that records once, by its `step()`; enter it, or `start()` it.

    Args:
        settings: skip, warm-up and recorded steps, and what is recorded.
        ready: is called with the profiler when the last step is recorded.
        file_only: nobody asks the profiler for its events in Python, which takes time to make.
    """
    return profiler.profile(
        schedule=profiler.schedule(
            skip_first=settings.skip,
            wait=0,
            warmup=settings.warmup,
            active=settings.steps,
            repeat=1,
        ),
        on_trace_ready=ready,
        record_shapes=settings.shapes,
        profile_memory=settings.memory,
        with_stack=settings.stacks,
        experimental_config=_experimental(file_only=file_only and not settings.stacks),
    )


def _experimental(*, file_only: bool) -> Any:  # noqa: ANN401  (a type that torch keeps private)
    """The options that this torch knows; stacks need the events for Python, too."""
    config = getattr(torch._C._profiler, "_ExperimentalConfig", None)
    if config is None:
        return None
    for names in _OPTIONS_BY_AGE:
        try:
            return config(**{name: name != "trace_only" or file_only for name in names})
        except TypeError:
            continue
    return None


def wait_for_devices() -> None:
    """Until all work handed to accelerators is done; no device is woken for it.

    Never while a graph is captured: there, waiting spoils the capture.
    """
    for name in ("cuda", "xpu"):
        device = getattr(torch, name, None)
        if device is not None and _is_in_use(device) and not _is_capturing():
            device.synchronize()


def another_is_on() -> bool:
    """Any profiler of torch records on this thread."""
    return bool(torch.autograd._profiler_enabled())


def before_any_starts(call: Callable[[object], None]) -> None:
    """Call with each profiler of torch right before it starts."""
    for kind in (profiler._KinetoProfile, profiler.profile):
        start = vars(kind)["start"]

        def announced(self: object, _start: Callable[[object], None] = start) -> None:
            call(self)
            _start(self)

        kind.start = functools.wraps(start)(announced)


def may_not_step() -> str:
    """Why this moment is no end of a step; empty where it may be one."""
    if torch.compiler.is_compiling():
        return "the optimizer's step is compiled, so it cannot be seen"
    if _is_capturing():
        return "the optimizer's step is inside a CUDA graph, so it cannot be seen"
    if threading.current_thread().name.startswith("Dummy-"):
        return "the optimizer steps in threads of the backward pass"
    return ""


def _is_capturing() -> bool:
    return _is_in_use(torch.cuda) and bool(torch.cuda.is_current_stream_capturing())


def _is_in_use(device: Any) -> bool:  # noqa: ANN401  (a module of torch)
    return bool(device.is_available() and device.is_initialized())
