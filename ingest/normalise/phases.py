"""Forward, backward and optimizer: which part of a training step each host row belongs to."""

import numpy as np
from numpy.typing import NDArray

from ingest.normalise.gather import Gathered
from ingest.normalise.scans import innermost
from ingest.vocab import Phase

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]

_ENGINE = r"^autograd::engine::"
_FUNCTION = r"^torch::autograd::|Backward\d*$"
_REDUCER = r"^torch\.distributed\.ddp\.reducer::"
_OPTIMIZER = r"^Optimizer\.(?:step|zero_grad)#|^aten::_fused_(?:adamw?|sgd|adagrad)_?$"
_CALL = r"^(?:c10d|_c10d_functional)::|^record_param_comms$|^(?:nccl|gloo|mpi|ucc):"
_ENGINE_SHARE = 0.75
"""Share of the engine's calls in the time of the operators of an autograd thread; on a thread that
runs forward as well it is about two thirds."""


def phases(gathered: Gathered, op: Int32) -> Int8:
    """Phase of every host row.

    Backward is what runs under the autograd engine or on its threads, optimizer what runs under
    `Optimizer.step#` or a fused step, forward every other operator of a file with a backward.

    Args:
        gathered: the rows.
        op: per row, the innermost operator at or around it; -1.
    """
    is_op = gathered.is_category("cpu_op")
    engine = is_op & gathered.name_matches(_ENGINE)
    function = is_op & gathered.name_matches(_FUNCTION)
    n_files = len(gathered.files)
    has_engine = np.bincount(gathered.trace[engine], minlength=n_files) > 0
    backward = np.where(has_engine[gathered.trace], engine, function)
    optimizer = gathered.name_matches(_OPTIMIZER)
    on_autograd = _autograd_threads(gathered, op, engine | function, optimizer)[gathered.utid]
    has_backward = np.bincount(gathered.trace[backward], minlength=n_files) > 0
    phase = np.zeros(len(gathered), np.int8)
    phase[has_backward[gathered.trace] & (op >= 0)] = Phase.FORWARD
    phase[on_autograd | (innermost(gathered.parent, backward) >= 0)] = Phase.BACKWARD
    phase[innermost(gathered.parent, optimizer) >= 0] = Phase.OPTIMIZER
    return phase


def _autograd_threads(gathered: Gathered, op: Int32, engine: Bool, optimizer: Bool) -> Bool:
    """Per thread: whether it is the engine's, by the time of its outermost operators.

    Calls of collectives tell nothing: they wait, on whatever thread needs what they bring.

    Single-threaded autograd (CPU) runs on the thread of the forward: its steps and optimizers are
    there as well, and its engine's calls do not fill it.
    """
    n = max(len(gathered.threads), 1)
    top = np.flatnonzero((op >= 0) & (op == np.arange(len(op))))
    around = gathered.parent[top]
    top = top[(around < 0) | (op[around] < 0)]
    top = top[~gathered.name_matches(_CALL)[top]]
    engine = engine | gathered.name_matches(_REDUCER)
    in_all = np.bincount(gathered.utid[top], gathered.dur[top], minlength=n)
    mine = top[engine[top]]
    in_engine = np.bincount(gathered.utid[mine], gathered.dur[mine], minlength=n)
    drives = np.zeros(n, np.bool_)
    drives[gathered.utid[optimizer | gathered.name_matches(r"^ProfilerStep#")]] = True
    found: Bool = (in_engine > 0) & (in_engine >= _ENGINE_SHARE * in_all) & ~drives
    return found
