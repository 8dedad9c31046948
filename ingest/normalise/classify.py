"""Names -> classes of device tasks and kinds of runtime calls; the rules are data."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from ingest.vocab import KernelClass, RuntimeKind

RULES = Path(__file__).with_name("classify.yaml")

_RUNTIME_RULES: tuple[tuple[RuntimeKind, str], ...] = (
    (RuntimeKind.EVENT_QUERY, r"(EventQuery|StreamQuery)"),
    (RuntimeKind.GRAPH_LAUNCH, r"GraphLaunch"),
    (RuntimeKind.EVENT_RECORD, r"EventRecord"),
    (RuntimeKind.EVENT_WAIT, r"StreamWaitEvent"),
    (RuntimeKind.EVENT_SYNC, r"EventSynchronize|zeEventHostSynchronize"),
    (RuntimeKind.STREAM_SYNC, r"StreamSynchronize|zeCommandQueueSynchronize"),
    (RuntimeKind.DEVICE_SYNC, r"DeviceSynchronize|CtxSynchronize|ThreadSynchronize"),
    (RuntimeKind.MEMSET, r"Memset|zeCommandListAppendMemoryFill"),
    (RuntimeKind.MEMCPY, r"Memcpy|zeCommandListAppendMemoryCopy"),
    (
        RuntimeKind.LAUNCH,
        r"(Launch|ModuleLaunch).*Kernel|LaunchKernel|AppendLaunch|enqueue_?kernel",
    ),
    (
        RuntimeKind.MALLOC,
        r"^(cuda|hip)(Malloc|HostAlloc|MallocHost|HostMalloc)(?!Async)|^cuMem.*Alloc|^cuMemCreate",
    ),
    (RuntimeKind.FREE, r"^(cuda|hip)(Free|FreeHost|HostFree)(?!Async)$|^cuMemFree|^cuMemUnmap"),
)


def classify_kernels(names: Sequence[str]) -> NDArray[np.int8]:
    """Class of each kernel name; OTHER where no rule matches.

    Reductions of ATen carry `reduce` in their names and are compute: the rules for communication
    ask for a library or a known custom kernel, never for the word alone.
    """
    return np.array([_class_of(name) for name in names], np.int8)


def runtime_kinds(names: Sequence[str]) -> NDArray[np.int8]:
    """Kind of each runtime or driver call; OTHER where no rule matches."""
    return np.array([_kind_of(name) for name in names], np.int8)


@cache
def _rules() -> tuple[tuple[KernelClass, re.Pattern[str]], ...]:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    return tuple(
        (KernelClass[rule["class"].upper()], re.compile(rule["match"], re.IGNORECASE))
        for rule in rules
    )


def _class_of(name: str) -> KernelClass:
    return next((kind for kind, rule in _rules() if rule.search(name)), KernelClass.OTHER)


@cache
def _kind_of(name: str) -> RuntimeKind:
    return next(
        (kind for kind, pattern in _RUNTIME_RULES if re.search(pattern, name)), RuntimeKind.OTHER
    )
