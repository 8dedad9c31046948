"""Runs of several ranks for tests: one call writes one operation to the files of its members."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ingest.pipeline import IngestOptions, open_run
from tests.kineto import NETWORK, KinetoFile

KERNELS = {
    "allreduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "_allgather_base": "ncclDevKernel_AllGather_RING_LL",
    "_reduce_scatter_base": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL",
    "all_to_allv": "ncclDevKernel_SendRecv",
    "send": "ncclDevKernel_SendRecv",
    "recv": "ncclDevKernel_SendRecv",
    "broadcast": "ncclDevKernel_Broadcast_RING_LL",
}
Json = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Group:
    """A communicator as a file describes it."""

    ranks: tuple[int, ...]
    name: str = "0"

    def args(self) -> Json:
        return {
            "Process Group Name": self.name,
            "Process Group Ranks": str(list(self.ranks)),
            "Group size": len(self.ranks),
        }


class Met(NamedTuple):
    """A collective as the store has it; times in us."""

    kind: str
    seen: int
    expected: int
    method: str
    waits_us: dict[int, float]
    transfer_us: float


@dataclass(kw_only=True)
class Ranks:
    """Files of a job; each rank launches 5 us before its member starts."""

    world: int
    files: dict[int, KinetoFile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rank in range(self.world):
            self.files[rank] = KinetoFile(rank=rank, ranks=tuple(range(self.world)))

    def meet(
        self,
        operation: str,
        starts_us: Mapping[int, float],
        transfer_us: float,
        group: Group | Mapping[int, Group],
        **args: object,
    ) -> None:
        """A collective that all members leave together, `transfer_us` after the last one came.

        Args:
            operation: `Collective name`.
            starts_us: start of the members that shall be in the files, by rank.
            transfer_us: from the last start on.
            group: the communicator, or what each rank calls it.
            args: further metadata; a mapping gives each rank its own.
        """
        end_us = max(starts_us.values()) + transfer_us
        for rank, start_us in starts_us.items():
            own = group if isinstance(group, Group) else group[rank]
            given = {key: _own(value, rank) for key, value in args.items()}
            self.member(rank, operation, (start_us, end_us), own, **given)

    def member(
        self, rank: int, operation: str, span: tuple[float, float], group: Group, **args: object
    ) -> None:
        """One rank's kernel alone, with its launching call."""
        elements = {"In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float"}
        shown = {"Collective name": operation, **elements, **group.args(), **_metadata(args)}
        self.kernel(rank, KERNELS[operation], span, stream=_stream(args), **shown)

    def kernel(
        self,
        rank: int,
        name: str,
        span: tuple[float, float],
        *,
        stream: int = NETWORK,
        **args: object,
    ) -> None:
        """A kernel with any metadata, launched 5 us before it starts."""
        file = self.files[rank]
        call = file.call("cudaLaunchKernel", (span[0] - 5, span[0] - 3))
        file.kernel(name, span, stream=stream, call=call)
        file.rows[-1]["args"] = {**_args_of(file), **args}

    def write(self, folder: Path, ranks: Sequence[int] | None = None) -> list[Path]:
        """The files of these ranks, of all by default."""
        chosen = self.files if ranks is None else ranks
        return [self.files[rank].write(folder / f"rank{rank}.json") for rank in chosen]

    def met(self, folder: Path, ranks: Sequence[int] | None = None) -> list[Met]:
        """What is found of it, in order of the first start."""
        with open_run(self.write(folder, ranks), options=IngestOptions(cache=False)) as run:
            rows = run.store.rows(
                "SELECT c.kind, c.n_seen, c.n_expected, c.match_method, c.transfer_dur, coll_id,"
                " list({'rank': m.rank, 'wait': m.wait_dur} ORDER BY m.rank)"
                " FROM collective AS c JOIN collective_rank AS m USING (coll_id)"
                " GROUP BY ALL ORDER BY min(m.ts), coll_id"
            )
        return [
            Met(
                kind=kind,
                seen=seen,
                expected=expected,
                method=method,
                waits_us={one["rank"]: one["wait"] / 1000 for one in waits},
                transfer_us=transfer / 1000,
            )
            for kind, seen, expected, method, transfer, _, waits in rows
        ]


def _args_of(file: KinetoFile) -> Json:
    args = file.rows[-1]["args"]
    assert isinstance(args, dict)
    return args


def _stream(args: Mapping[str, object]) -> int:
    stream = args.get("stream", NETWORK)
    assert isinstance(stream, int)
    return stream


def _own(value: object, rank: int) -> object:
    return value[rank] if isinstance(value, Mapping) else value


def _metadata(args: Mapping[str, object]) -> Json:
    """Keyword arguments in the words of the profiler."""
    words = {
        "seq": "Seq", "to": "Dst Rank", "of": "Src Rank", "place": "Rank",
        "sent": "In msg nelems", "received": "Out msg nelems",
        "splits_in": "In split size", "splits_out": "Out split size",
    }  # fmt: skip
    return {words[key]: value for key, value in args.items() if key in words}
