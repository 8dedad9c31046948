"""Which rank a process is, and which file is its own."""

import os
import sys
from pathlib import Path
from typing import NamedTuple

LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)
"""Variables of torchrun, Slurm, Open MPI and MPICH."""


class Place(NamedTuple):
    """A process of a job."""

    rank: int
    world_size: int
    is_initialised: bool
    """torch.distributed is, so the profiler writes `distributedInfo` itself."""


def place() -> Place:
    """As torch.distributed has it, else as the launcher says, else rank 0 of 1."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return Place(distributed.get_rank(), distributed.get_world_size(), is_initialised=True)
    for rank, world in LAUNCHERS:
        if os.environ.get(rank, "").isdecimal():
            size = os.environ.get(world, "")
            own = int(os.environ[rank])
            return Place(own, int(size) if size.isdecimal() else own + 1, is_initialised=False)
    return Place(0, 1, is_initialised=False)


def reserve(folder: Path, rank: int) -> Path:
    """An own, empty `rank3.json`; where the rank has a file already, the process is named too.

    Nothing is ever overwritten.

    Raises:
        OSError: the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in (f"rank{rank}", f"rank{rank}.pid{os.getpid()}"):
        path = folder / f"{name}.json"
        if path.with_suffix(".json.gz").exists():
            continue
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"`{folder}` has a file of this process already")
