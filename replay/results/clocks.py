"""Which clocks of the files the recording cannot compare, and how well."""

from collections.abc import Iterator

from replay.graph.facts import FileFacts, GraphFacts

FARTHEST_NS = 3_600_000_000_000
"""Clocks of one run that differ by more than an hour are not those of one run, or one was lost."""
FEWEST_SAMPLES = 3
"""A median of fewer collectives follows a single odd one."""


def unsure_clocks(facts: GraphFacts) -> Iterator[str]:
    """A sentence for each way in which clocks of several files could not be compared well."""
    if len({file.rank for file in facts.files}) < 2:  # noqa: PLR2004  (nothing to compare)
        return
    reference = next((file.rank for file in facts.files if _is_reference(file)), None)
    apart = [
        file.rank for file in facts.files if not _is_reference(file) and _base(file) != reference
    ]
    if apart:
        told = "the ranks" if reference is None else _list(apart)
        yield f"clocks of {told} cannot be compared: no matched collective ties them together"
    far = [file.rank for file in facts.files if abs(file.clock_offset_ns) > FARTHEST_NS]
    if far:
        yield f"clocks of {_list(far)} are more than an hour off: is it another run, or a cut file?"
    few = [
        file.rank
        for file in facts.files
        if file.clock_method == "ends" and file.clock_samples < FEWEST_SAMPLES
    ]
    if few:
        yield (
            f"clocks of {_list(few)} rest on fewer than {FEWEST_SAMPLES} collectives: "
            "waits are unsure (`replay check`)"
        )


def _is_reference(file: FileFacts) -> bool:
    return file.clock_method == "reference"


def _base(file: FileFacts) -> int:
    return file.rank if file.clock_base_rank is None else file.clock_base_rank


def _list(ranks: list[int]) -> str:
    noun = "rank" if len(ranks) == 1 else "ranks"
    return f"{noun} {', '.join(map(str, sorted(ranks)))}"
