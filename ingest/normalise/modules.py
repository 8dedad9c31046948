"""The nn.Module of each row: the one that was running, or the one whose backward it is."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.normalise.gather import Gathered
from ingest.normalise.scans import innermost

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


def modules(gathered: Gathered) -> Int32:
    """Per host row, the innermost call of an nn.Module (with_stack) around it; -1 where none is.

    Backward runs outside of modules. The engine's rows carry the sequence number of the operator
    that made them: what runs under them belongs to the module around that operator.
    """
    is_module = gathered.is_category("python_function") & gathered.name_matches(r"^nn\.Module: ")
    module: Int32 = innermost(gathered.parent, is_module)
    if not is_module.any():
        return module
    rows, forward = _forward_of(gathered)
    of_backward = np.full(len(module), -1, np.int32)
    of_backward[rows] = module[forward]
    nearest = innermost(gathered.parent, is_module | (of_backward >= 0))
    found = np.where(nearest >= 0, nearest, 0)
    found = np.where(of_backward[found] >= 0, of_backward[found], found)
    belongs: Int32 = np.where(nearest >= 0, found, -1).astype(np.int32)
    return belongs


def _forward_of(gathered: Gathered) -> tuple[Int32, Int32]:
    """Rows of backward and the operator each was made by.

    Sequence numbers count per thread. A row of backward names the thread of its forward by a number
    of PyTorch's own; it is the thread that has most of the sequence numbers of that name. An
    operator carries the number of the next node of the graph: the last to start with it makes it.
    """
    ops = pl.concat([_numbered(gathered, trace_id) for trace_id in range(len(gathered.files))])
    forward = ops.filter(pl.col("fwd") == 0).unique(
        ["thread", "seq"], keep="last", maintain_order=True
    )
    backward = ops.filter(pl.col("fwd") > 0).drop("thread")
    pairs = backward.join(
        forward.select("trace_id", "seq", "thread", made_by="id"), on=["trace_id", "seq"]
    ).filter(pl.col("made_by") < pl.col("id"))
    of_name = pairs.group_by("trace_id", "fwd", "thread").len().sort("len", "thread")
    of_name = of_name.unique(["trace_id", "fwd"], keep="last", maintain_order=True).drop("len")
    pairs = pairs.join(of_name, on=["trace_id", "fwd", "thread"], how="semi")
    return pairs["id"].to_numpy(), pairs["made_by"].to_numpy()


def _numbered(gathered: Gathered, trace_id: int) -> pl.DataFrame:
    """Operators of a file that carry a sequence number, by slice."""
    rows = (
        gathered.files[trace_id]
        .parsed.cpu_op.select(
            "row", seq="sequence_number", fwd=pl.col("fwd_thread_id").fill_null(0)
        )
        .filter(pl.col("seq") >= 0)
    )
    ids = gathered.id_of[trace_id][rows["row"].to_numpy()]
    return rows.select(
        "seq", "fwd", trace_id=pl.lit(trace_id, dtype=pl.Int32), id=pl.Series(ids),
        thread=pl.Series(gathered.utid[ids]),
    ).sort("id")  # fmt: skip
