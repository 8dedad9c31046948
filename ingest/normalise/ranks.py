"""Which rank a file name means: only forms that say so, no number that merely stands there."""

import re
from collections.abc import Sequence

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
