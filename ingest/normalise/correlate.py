"""Links between rows: device work and its launching call, op, module, annotation, phase."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.classify import classify_kernels, runtime_kinds
from ingest.normalise.gather import Gathered, OfRows
from ingest.normalise.modules import modules
from ingest.normalise.phases import phases
from ingest.normalise.scans import innermost
from ingest.vocab import KernelClass, Phase, RuntimeKind

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Int8 = NDArray[np.int8]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Columns over all slices; -1 where there is none."""

    is_runtime: Bool
    runtime_kind: Int8
    kernel_class: Int8
    """Of device rows; OTHER for the rest."""
    call: Int32
    """Of device rows: the launching call."""
    op: OfRows
    """Of operators and device rows: innermost cpu_op at or around the row, or around the call."""
    module: OfRows
    """Of the same: innermost nn.Module, or that of the forward of a row of backward; else the
    annotation."""
    annotation: OfRows
    """Of the same."""
    phase: Int8
    step_row: Int32
    """Innermost ProfilerStep annotation around a host row; for device rows of the call."""
    n_device: Int32
    """Of runtime rows: device rows with its correlation."""
    zero_correlation: Int64
    """Per file."""
    unlinked: Int64
    """Per file."""


def link(gathered: Gathered) -> Links:
    """Find every link; nothing is dropped, what has no link keeps -1."""
    is_runtime = gathered.category_matches(r"_(?:runtime|driver)$")
    kernel_class = _kernel_classes(gathered)
    call = _calls(gathered, is_runtime)
    runtime_kind = _runtime_kinds(gathered, is_runtime)
    found = np.flatnonzero(call >= 0)
    launches = call[found[(runtime_kind[call[found]] == RuntimeKind.OTHER)]]
    runtime_kind[launches] = RuntimeKind.LAUNCH
    is_op = gathered.is_category("cpu_op")
    is_annotation = gathered.is_category("user_annotation")
    is_step = is_annotation & gathered.name_matches(r"^ProfilerStep#")
    op = innermost(gathered.parent, is_op)
    annotation = innermost(gathered.parent, is_annotation & ~is_step)
    module = modules(gathered)
    np.copyto(module, annotation, where=module < 0)
    step_row = innermost(gathered.parent, is_step)
    phase = phases(gathered, op)
    for column in (op, annotation, module, step_row):
        column[gathered.on_device] = -1
        column[found] = column[call[found]]
    kept = np.flatnonzero(gathered.on_device | is_op)
    phase[gathered.on_device] = Phase.UNKNOWN
    phase[found] = phase[call[found]]
    n_files = len(gathered.files)
    zero = gathered.on_device.copy()
    zero[_non_zero(gathered)[0]] = False
    lone = gathered.on_device & (call < 0)
    return Links(
        is_runtime=is_runtime,
        runtime_kind=runtime_kind,
        kernel_class=kernel_class,
        call=call,
        op=OfRows(kept, op[kept]),
        module=OfRows(kept, module[kept]),
        annotation=OfRows(kept, annotation[kept]),
        phase=phase,
        step_row=step_row,
        n_device=np.bincount(call[found], minlength=len(call)).astype(np.int32),
        zero_correlation=np.bincount(gathered.trace[zero], minlength=n_files),
        unlinked=np.bincount(gathered.trace[lone], minlength=n_files),
    )


def _kernel_classes(gathered: Gathered) -> Int8:
    is_kernel = gathered.on_device & gathered.is_category("kernel", "mtia_ccp_events")
    classes = np.zeros(len(gathered), np.int8)
    classes[is_kernel] = _by_name(gathered, is_kernel, classify_kernels)
    described = np.zeros(len(gathered), np.bool_)
    for file, id_of in zip(gathered.files, gathered.id_of, strict=True):
        messages = file.parsed.messages
        names_one = gathered.words.names_collective(messages.shape)
        described[id_of[messages.row[names_one]]] = True
    classes[is_kernel & described] = KernelClass.COLLECTIVE
    classes[gathered.is_category("gpu_memcpy")] = KernelClass.MEMCPY
    classes[gathered.is_category("gpu_memset")] = KernelClass.MEMSET
    return classes


def _runtime_kinds(gathered: Gathered, is_runtime: Bool) -> Int8:
    kinds = np.zeros(len(gathered), np.int8)
    kinds[is_runtime] = _by_name(gathered, is_runtime, runtime_kinds)
    return kinds


def _by_name(gathered: Gathered, rows: Bool, judge: Callable[[Sequence[str]], Int8]) -> Int8:
    """What is told by the name alone, asked once per name."""
    texts = gathered.words.names.texts
    names = gathered.name[rows]
    used = np.zeros(len(texts), np.bool_)
    used[names] = True
    numbers = np.flatnonzero(used)
    table = np.zeros(len(texts), np.int8)
    table[numbers] = judge([texts[number] for number in numbers.tolist()])
    judged: Int8 = table[names]
    return judged


def _non_zero(gathered: Gathered) -> tuple[Int32, NDArray[np.uint64]]:
    """Rows with a correlation; 0 is none."""
    rows, values = gathered.correlation
    return rows[values != 0], values[values != 0]


def _calls(gathered: Gathered, is_runtime: Bool) -> Int32:
    """Launching call of each device row by (file, correlation): the first call that has it."""
    rows, values = _non_zero(gathered)
    call = np.full(len(gathered), -1, np.int32)
    borders = np.searchsorted(gathered.trace[rows], np.arange(len(gathered.files) + 1))
    for first, last in pairwise(borders.tolist()):
        ids, correlation = rows[first:last], values[first:last]
        calls = np.flatnonzero(is_runtime[ids])
        device = np.flatnonzero(gathered.on_device[ids])
        if not len(calls) or not len(device):
            continue
        calls = calls[np.argsort(correlation[calls], kind="stable")]
        place = np.searchsorted(correlation[calls], correlation[device])
        found = calls[np.minimum(place, len(calls) - 1)]
        linked = correlation[found] == correlation[device]
        call[ids[device[linked]]] = ids[found[linked]]
    return call
