"""Several captures of one rank: which files make one run."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from ingest.errors import TraceError, UsageError
from ingest.normalise.gather import TraceFile

_YEAR_2000_NS = 946_684_800_000_000_000


class OtherWindow(Exception):  # noqa: N818  (no error: the files are read again, fewer of them)
    """Only some of the files were asked for."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self.paths = tuple(paths)


def one_window(files: Sequence[TraceFile], wanted: int | None) -> None:
    """Make sure that the files are of one capture.

    The k-th file of each rank, by time, belongs to window k.

    Raises:
        UsageError: there are several, and none or a wrong one was chosen.
        TraceError: two files of one rank overlap in time.
        OtherWindow: a window was chosen, and other files were read as well.
    """
    windows = _windows(files)
    if wanted is not None and wanted >= len(windows):
        raise UsageError(
            f"there is no window {wanted}: " + _said(windows), hint="windows count from 0"
        )
    if len(windows) == 1:
        return
    if wanted is None:
        raise UsageError(
            f"several captures of one rank: {_said(windows)}",
            hint=f"choose one with --window 0 to --window {len(windows) - 1}",
        )
    raise OtherWindow([file.path for file in windows[wanted]])


def _windows(files: Sequence[TraceFile]) -> list[list[TraceFile]]:
    of_rank: dict[int, list[TraceFile]] = {}
    for file in sorted(files, key=lambda file: file.parsed.span_ns):
        of_rank.setdefault(file.rank, []).append(file)
    for rank, mine in of_rank.items():
        for earlier, later in pairwise(mine):
            if later.parsed.span_ns[0] < earlier.parsed.span_ns[1]:
                raise TraceError(
                    f"`{earlier.path.name}` and `{later.path.name}` are both of rank {rank}",
                    hint="give the files of one run, one per rank",
                )
    most = max(map(len, of_rank.values()))
    return [
        [of_rank[rank][k] for rank in sorted(of_rank) if k < len(of_rank[rank])]
        for k in range(most)
    ]


def _said(windows: Sequence[Sequence[TraceFile]]) -> str:
    return "; ".join(
        f"{number}: {_time(window)}, {len(window)} file{'' if len(window) == 1 else 's'}"
        f" (`{window[0].path.name}`)"
        for number, window in enumerate(windows)
    )


def _time(window: Sequence[TraceFile]) -> str:
    begin = min(file.parsed.span_ns[0] for file in window)
    seconds = (max(file.parsed.span_ns[1] for file in window) - begin) / 1e9
    if begin < _YEAR_2000_NS:
        return f"from {begin / 1e9:.3f} s, {seconds:.3f} s long"
    moment = datetime.fromtimestamp(begin / 1e9, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC, {seconds:.3f} s long"
