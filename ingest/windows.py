"""Several captures of one rank: which files make one run."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import combinations, pairwise
from pathlib import Path

from ingest.errors import TraceError, UsageError
from ingest.normalise.gather import TraceFile

_YEAR_2000_NS = 946_684_800_000_000_000
_SHOWN = 8
"""Windows that a message lists."""


class OtherWindow(Exception):  # noqa: N818  (no error: the files are read again, fewer of them)
    """Only some of the files were asked for."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self.paths = tuple(paths)


def one_window(files: Sequence[TraceFile], wanted: int | None) -> None:
    """Make sure that the files are of one capture.

    Raises:
        UsageError: there are several, and none or a wrong one was chosen.
        TraceError: two files of one rank overlap in time.
        OtherWindow: a window was chosen, and other files were read as well.
    """
    windows = _windows(files)
    if wanted is not None and wanted >= len(windows):
        raise UsageError(
            f"there is no window {wanted}: there {_are(windows)}",
            hint=f"windows count from 0:{_listed(windows)}",
        )
    if len(windows) == 1:
        return
    if wanted is None:
        raise UsageError(
            f"several captures of one rank: there {_are(windows)}",
            hint=f"{_choice(windows)}:{_listed(windows)}",
        )
    raise OtherWindow([file.path for file in windows[wanted]])


def _windows(files: Sequence[TraceFile]) -> list[list[TraceFile]]:
    """By time; folders that share ranks are a run each, else the k-th file of each rank is of k.

    Raises:
        TraceError: two files of one rank overlap in time.
    """
    of_rank: dict[int, list[TraceFile]] = {}
    for file in sorted(files, key=lambda file: file.parsed.span_ns):
        of_rank.setdefault(file.rank, []).append(file)
    for rank, mine in of_rank.items():
        for earlier, later in pairwise(mine):
            if later.parsed.span_ns[0] < earlier.parsed.span_ns[1]:
                raise TraceError(
                    f"`{_short(earlier)}` and `{_short(later)}` are both of rank {rank}",
                    hint="give the files of one run, one per rank"
                    + _such_as([earlier], [later], before=", "),
                )
    most = max(map(len, of_rank.values()))
    if most == 1:
        return [[of_rank[rank][0] for rank in sorted(of_rank)]]
    return _runs(files) or [
        [of_rank[rank][k] for rank in sorted(of_rank) if k < len(of_rank[rank])]
        for k in range(most)
    ]


def _runs(files: Sequence[TraceFile]) -> list[list[TraceFile]]:
    """The files of each folder, by time; empty where folders are not runs (but nodes, say)."""
    inside: dict[Path, list[TraceFile]] = {}
    for file in sorted(files, key=lambda file: file.rank):
        inside.setdefault(file.path.parent, []).append(file)
    ranks = [{file.rank for file in mine} for mine in inside.values()]
    is_once = sum(map(len, ranks)) == len(files)
    if not is_once or not all(left & right for left, right in combinations(ranks, 2)):
        return []
    return sorted(inside.values(), key=lambda mine: min(file.parsed.span_ns for file in mine))


def _are(windows: Sequence[Sequence[TraceFile]]) -> str:
    return "is 1 window" if len(windows) == 1 else f"are {len(windows)} windows"


def _choice(windows: Sequence[Sequence[TraceFile]]) -> str:
    """What to type for one of them."""
    by_number = f"choose one with --window 0 to --window {len(windows) - 1}"
    return by_number + _such_as(*windows, before=", or give one run, ")


def _such_as(*windows: Sequence[TraceFile], before: str) -> str:
    """A folder that holds one of them alone; nothing where there is none."""
    folders = [{file.path.parent for file in window} for window in windows]
    first, others = folders[0], folders[1:]
    if len(first) > 1 or any(first & other for other in others):
        return ""
    return f"{before}such as `{next(iter(first))}`"


def _listed(windows: Sequence[Sequence[TraceFile]]) -> str:
    """A line each; not all of many."""
    lines = [
        f"{number}: {_time(window)}, {len(window)} file{'' if len(window) == 1 else 's'}"
        f" (`{_short(window[0])}`)"
        for number, window in enumerate(windows[:_SHOWN])
    ]
    if len(windows) > _SHOWN:
        lines.append(f"... and {len(windows) - _SHOWN:,} more")
    return "".join(f"\n  {line}" for line in lines)


def _short(file: TraceFile) -> str:
    """Folder and file: files of different runs are called the same."""
    return str(Path(*file.path.parts[-2:]))


def _time(window: Sequence[TraceFile]) -> str:
    begin = min(file.parsed.span_ns[0] for file in window)
    seconds = (max(file.parsed.span_ns[1] for file in window) - begin) / 1e9
    if begin < _YEAR_2000_NS:
        return f"from {begin / 1e9:.3f} s, {seconds:.3f} s long"
    moment = datetime.fromtimestamp(begin / 1e9, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC, {seconds:.3f} s long"
