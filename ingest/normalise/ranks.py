"""Which rank each file is of: as recorded, as its name says clearly, else by order."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from ingest.errors import UsageError
from ingest.normalise.gather import TraceFile
from ingest.parsed import Parsed

_MOST_RANKS = 1 << 31

_CLEAR = re.compile(
    r"""
    (?<![a-z])(?<!local[-_])(?<!node[-_])(?<![tpdec]p[-_])
    (?:(?:global[-_]?)?rank|worker|trainer|gpu|device)
    [-_. =]?\[?(?P<word>\d{1,7})(?!\d)(?!(?!of\d)[a-z])
    |\[(?P<bracket>\d{1,7})\]
    |^(?P<whole>\d{1,7})(?=\.(?!\d))
    |\.(?P<last>\d{1,5})(?=\.(?:pt\.trace\.)?json(?:\.\w+)?$)
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""`rank3`, `rank_3`, `rank-3of8`, `worker3`, `gpu3`, `[3]`, `3.json`, `x.3.json`.

A rank of tensor parallelism or of a node (`tp_rank3`, `local_rank3`) is no rank of the job.
"""
_ENDING = re.compile(r"(?<=[-_])\d{1,5}(?=\.\D)")


def ranks_in_names(names: Sequence[str]) -> list[int | None]:
    """Rank that each file name means; None where it says none.

    A number at the end of a word (`trace_3.json`, `TP-1.trace.json`) means a rank only where the
    files differ in nothing else and count on without a gap: `resnet-50.json` is a model.
    """
    clear = [_clear(name) for name in names]
    if None not in clear:
        return clear
    return _series(names) or clear


def _clear(name: str) -> int | None:
    found = [match for match in _CLEAR.finditer(name) if match.group("word")]
    found = found or list(_CLEAR.finditer(name))
    numbers = {int(match[match.lastgroup or 0]) for match in found}
    return numbers.pop() if len(numbers) == 1 else None


def _series(names: Sequence[str]) -> list[int | None] | None:
    """Numbers at the end of names that are alike but for them, one after the other."""
    endings = [_ENDING.search(name) for name in names]
    if len(names) == 1 or None in endings:
        return None
    stems = {_ENDING.sub("", name, count=1) for name in names}
    numbers = [int(match[0]) for match in endings if match is not None]
    ordered = sorted(numbers)
    if len(stems) > 1 or ordered != list(range(ordered[0], ordered[0] + len(names))):
        return None
    return list(numbers)


def with_ranks(parsed: Sequence[tuple[Path, Parsed]]) -> list[TraceFile]:
    """Rank of each file: recorded, else from its name, else by order (never one that is taken).

    Several files may have one rank: captures of different times (`ingest.windows`).

    Raises:
        UsageError: more files than the job had ranks: those that record none are of another.
    """
    infos = [_distributed_info(one) for _, one in parsed]
    ranks: list[int | None] = [_whole(info.get("rank")) for info in infos]
    sources = ["distributedInfo" if rank is not None else "" for rank in ranks]
    missing = [index for index, rank in enumerate(ranks) if rank is None]
    names = ranks_in_names([parsed[index][0].name for index in missing])
    named = dict(zip(missing, names, strict=True))
    taken = {rank for rank in ranks if rank is not None}
    for index in _other_captures(parsed, ranks, named):
        ranks[index], sources[index] = named.pop(index), "file name"
        missing.remove(index)
        parsed[index][1].log.count("rank_from_name")
    said = set(named.values())
    again = len(said) < len(missing)
    if None not in said and not taken & said and (not again or _apart(parsed, named)):
        for index in missing:
            ranks[index], sources[index] = named[index], "file name"
            parsed[index][1].log.count("rank_from_name")
    else:
        free = (rank for rank in range(len(parsed) + len(taken)) if rank not in taken)
        for index in missing:
            ranks[index], sources[index] = next(free), "order"
            parsed[index][1].log.count("rank_from_order")
    files = [
        TraceFile(
            path=path,
            parsed=one,
            rank=rank if rank is not None else 0,
            rank_source=source,
            world_size=_whole(info.get("world_size")) or None,
        )
        for (path, one), rank, source, info in zip(parsed, ranks, sources, infos, strict=True)
    ]
    _refuse_another_job(files)
    return sorted(files, key=lambda file: file.rank)


def _other_captures(
    parsed: Sequence[tuple[Path, Parsed]],
    recorded: Sequence[int | None],
    named: dict[int, int | None],
) -> list[int]:
    """Files without a recorded rank whose names say that of a file that has it, as its own does.

    Two files that are both called `rank0` are two captures, not two ranks.
    """
    twice = {
        rank
        for (path, _), rank in zip(parsed, recorded, strict=True)
        if rank is not None and _clear(path.name) == rank
    }
    return [index for index, rank in named.items() if rank in twice]


def _refuse_another_job(files: Sequence[TraceFile]) -> None:
    """A job has no more ranks than it recorded: a file that says none may be of another one.

    Raises:
        UsageError: the rank that such a file would get is none of the job.
    """
    size = max((file.world_size or 0 for file in files), default=0)
    others = [file for file in files if file.rank >= size and file.rank_source != "distributedInfo"]
    if not size or not others:
        return
    other = next((file for file in files if file.rank_source == "distributedInfo"), others[0])
    raise UsageError(
        f"`{others[0].path}` records no rank and would be number {others[0].rank + 1} of the "
        f"{size} of the job of `{other.path}`: it is of another run",
        hint=f"give the files of one run, such as `{_run_of(other.path, files)}`",
    )


def _run_of(path: Path, files: Sequence[TraceFile]) -> str:
    """The folder, where it tells the runs apart."""
    folders = {file.path.parent for file in files}
    return str(path.parent if len(folders) > 1 else path)


def _distributed_info(parsed: Parsed) -> dict[str, object]:
    info = parsed.header.get("distributedInfo")
    return info if isinstance(info, dict) else {}


def _whole(value: object) -> int | None:
    """A rank or number of ranks; None for what no job can have."""
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return int(str(value)) if whole and 0 <= int(str(value)) < _MOST_RANKS else None


def _apart(parsed: Sequence[tuple[Path, Parsed]], named: dict[int, int | None]) -> bool:
    """No two files of one rank overlap in time: they are captures, and their names mean ranks."""
    spans = sorted((rank or 0, *parsed[index][1].span_ns) for index, rank in named.items())
    return all(left[0] != right[0] or left[2] <= right[1] for left, right in pairwise(spans))
