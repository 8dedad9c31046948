"""Links between rows: device work and its launching call, op, module, annotation, phase."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.normalise.classify import classify_kernels, runtime_kinds
from ingest.normalise.gather import Gathered
from ingest.vocab import KernelClass, Phase, RuntimeKind

Int64 = NDArray[np.int64]
Int8 = NDArray[np.int8]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Columns over all slices; -1 where there is none."""

    is_runtime: Bool
    runtime_kind: Int8
    kernel_class: Int8
    """Of device rows; OTHER for the rest."""
    call: Int64
    """Of device rows: the launching call."""
    linked_by: NDArray[np.object_]
    """Of device rows: `correlation`, `order` or None."""
    op: Int64
    """Innermost cpu_op at or around a host row; for device rows that of the call."""
    module: Int64
    annotation: Int64
    phase: Int8
    step_row: Int64
    """Innermost ProfilerStep annotation around a host row; for device rows of the call."""
    n_device: Int64
    """Of runtime rows: device rows with its correlation."""
    zero_correlation: Int64
    """Per file."""
    unlinked: Int64
    """Per file."""


def link(gathered: Gathered) -> Links:
    """Find every link; nothing is dropped, what has no link keeps -1."""
    slices = gathered.slices
    cat, name = slices["cat"], slices["name"]
    is_runtime = cat.str.contains(r"_(?:runtime|driver)$").to_numpy()
    kernel_class = _kernel_classes(gathered)
    call, linked_by = _calls(gathered, is_runtime)
    runtime_kind = _runtime_kinds(name, is_runtime)
    found = np.flatnonzero(call >= 0)
    launches = call[found[(runtime_kind[call[found]] == RuntimeKind.OTHER)]]
    runtime_kind[launches] = RuntimeKind.LAUNCH
    is_op = (cat == "cpu_op").to_numpy()
    is_annotation = (cat == "user_annotation").to_numpy()
    is_step = is_annotation & name.str.starts_with("ProfilerStep#").to_numpy()
    is_module = (cat == "python_function").to_numpy()
    is_module &= name.str.starts_with("nn.Module: ").to_numpy()
    op = _innermost(gathered.parent, is_op)
    annotation = _innermost(gathered.parent, is_annotation & ~is_step)
    module = _innermost(gathered.parent, is_module)
    module = np.where(module >= 0, module, annotation)
    step_row = _innermost(gathered.parent, is_step)
    phase = _phases(gathered, op)
    for column in (op, annotation, module, step_row):
        column[gathered.on_device] = -1
        column[found] = column[call[found]]
    phase[gathered.on_device] = Phase.UNKNOWN
    phase[found] = phase[call[found]]
    n_files = len(gathered.files)
    zero = gathered.on_device & (slices["correlation"].fill_null(0) == 0).to_numpy()
    lone = gathered.on_device & (call < 0)
    return Links(
        is_runtime=is_runtime,
        runtime_kind=runtime_kind,
        kernel_class=kernel_class,
        call=call,
        linked_by=linked_by,
        op=op,
        module=module,
        annotation=annotation,
        phase=phase,
        step_row=step_row,
        n_device=np.bincount(call[found], minlength=len(cat)).astype(np.int64),
        zero_correlation=np.bincount(gathered.trace[zero], minlength=n_files),
        unlinked=np.bincount(gathered.trace[lone], minlength=n_files),
    )


def _kernel_classes(gathered: Gathered) -> Int8:
    cat = gathered.slices["cat"].to_numpy()
    names = gathered.slices["name"].filter(pl.Series(cat == "kernel"))
    unique = names.unique(maintain_order=True)
    table = dict(zip(unique.to_list(), classify_kernels(unique.to_list()).tolist(), strict=True))
    classes = np.zeros(len(cat), np.int8)
    classes[cat == "kernel"] = [table[name] for name in names.to_list()]
    with_metadata = gathered.slices["args"].str.contains('"Collective name"', literal=True)
    classes[(cat == "kernel") & with_metadata.fill_null(value=False).to_numpy()] = (
        KernelClass.COLLECTIVE
    )
    classes[cat == "gpu_memcpy"] = KernelClass.MEMCPY
    classes[cat == "gpu_memset"] = KernelClass.MEMSET
    return classes


def _runtime_kinds(name: pl.Series, is_runtime: Bool) -> Int8:
    names = name.filter(pl.Series(is_runtime))
    unique = names.unique(maintain_order=True)
    table = dict(zip(unique.to_list(), runtime_kinds(unique.to_list()).tolist(), strict=True))
    kinds = np.zeros(len(name), np.int8)
    kinds[is_runtime] = [table[one] for one in names.to_list()]
    return kinds


def _calls(gathered: Gathered, is_runtime: Bool) -> tuple[Int64, NDArray[np.object_]]:
    """Launching call of each device row by (file, correlation); 0 is no id."""
    n = len(gathered.slices)
    ids = pl.DataFrame(
        {
            "id": np.arange(n),
            "trace_id": gathered.trace,
            "correlation": gathered.slices["correlation"].fill_null(0),
        }
    ).filter(pl.col("correlation") != 0)
    calls = ids.filter(pl.Series(is_runtime[ids["id"].to_numpy()]))
    calls = calls.unique(["trace_id", "correlation"], keep="first", maintain_order=True)
    device = ids.filter(pl.Series(gathered.on_device[ids["id"].to_numpy()]))
    joined = device.join(calls, on=["trace_id", "correlation"], how="inner", suffix="_call")
    call = np.full(n, -1, np.int64)
    call[joined["id"].to_numpy()] = joined["id_call"].to_numpy()
    linked_by = np.full(n, None, object)
    linked_by[call >= 0] = "correlation"
    return call, linked_by


def _innermost(parent: Int64, wanted: Bool) -> Int64:
    """Per row: itself when wanted, else the nearest wanted row around it; -1."""
    found = np.where(wanted, np.arange(len(parent)), -1)
    at = np.where(found >= 0, -1, parent)
    while (moving := np.flatnonzero(at >= 0)).size:
        above = at[moving]
        found[moving] = np.where(wanted[above], above, found[moving])
        at[moving] = np.where(found[moving] >= 0, -1, parent[above])
    return found


def _phases(gathered: Gathered, op: Int64) -> Int8:
    """Phase of every host row.

    What is under the autograd engine is backward, what is under an optimizer's annotation is
    optimizer, and the rest forward where there is a backward.
    """
    name = gathered.slices["name"]
    backward = name.str.contains(r"^autograd::engine::|Backward\d*$").to_numpy()
    optimizer = name.str.contains(r"^Optimizer\.(?:step|zero_grad)#").to_numpy()
    under_optimizer = _innermost(gathered.parent, optimizer) >= 0
    under_backward = _innermost(gathered.parent, backward) >= 0
    utid = gathered.slices["utid"].to_numpy()
    n_threads = int(utid.max()) + 1 if len(utid) else 0
    engine = np.bincount(utid[backward], minlength=n_threads) > 0
    carries_step = np.zeros(n_threads, bool)
    carries_step[utid[name.str.starts_with("ProfilerStep#").to_numpy()]] = True
    autograd_thread = (engine & ~carries_step)[utid] if n_threads else backward
    has_backward = np.bincount(gathered.trace[backward], minlength=len(gathered.files)) > 0
    phase = np.zeros(len(name), np.int8)
    phase[has_backward[gathered.trace] & (op >= 0)] = Phase.FORWARD
    phase[under_backward | autograd_thread] = Phase.BACKWARD
    phase[under_optimizer] = Phase.OPTIMIZER
    return phase
