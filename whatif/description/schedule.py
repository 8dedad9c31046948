"""The schedule of a pipeline, from the order in which each stage runs forward and backward.

Orders are words of F (forward), B (backward, or the gradient of its inputs alone) and W (the
gradient of weights by itself), one letter per micro-batch and chunk. Definitions: GPipe
arXiv:1811.06965, 1F1B arXiv:2006.09503, interleaved 1F1B arXiv:2104.04473, zero bubble
arXiv:2401.10241, DualPipe arXiv:2412.19437.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from whatif.description.described import Sure
from whatif.models.shape import Schedule

_SHOWN = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSchedule:
    """A schedule with what it rests on."""

    schedule: Schedule
    sure: Sure
    evidence: str


def schedule_of(
    orders: Mapping[int, str],
    stages: int,
    *,
    chunks: int = 1,
    both_ways: bool = False,
) -> FoundSchedule:
    """Tell the schedule.

    Args:
        orders: by stage, of one step; stages that were not recorded are left out.
        stages: of the pipeline.
        chunks: of layers on each stage.
        both_ways: activations enter at both ends.
    """
    if stages == 1:
        return _found(Schedule.NONE, Sure.MEASURED, "one stage")
    seen = {stage: order for stage, order in orders.items() if "F" in order}
    if both_ways:
        return _found(Schedule.DUALPIPE, Sure.MEASURED, "activations enter at both ends")
    if not seen:
        return _found(
            Schedule.ONE_F_ONE_B, Sure.GUESSED, "the order is not recorded; 1F1B is the usual one"
        )
    words = _told(seen)
    if any("W" in order for order in seen.values()):
        evidence = f"gradients of weights apart from those of inputs: {words}"
        return _found(Schedule.ZERO_BUBBLE, Sure.MEASURED, evidence)
    if chunks > 1:
        return _found(Schedule.INTERLEAVED, Sure.MEASURED, f"{chunks} chunks a stage: {words}")
    return _of_one_chunk(seen, stages, words)


def _of_one_chunk(seen: Mapping[int, str], stages: int, words: str) -> FoundSchedule:
    """All forwards first, or as few in flight as stages follow."""
    telling = {stage: order for stage, order in seen.items() if order.count("F") > stages - stage}
    if not telling:
        evidence = f"so few micro-batches are the same in every schedule: {words}"
        return _found(Schedule.ONE_F_ONE_B, Sure.GUESSED, evidence)
    if all(re.fullmatch(r"F+B*", order) for order in telling.values()):
        return _found(Schedule.GPIPE, Sure.MEASURED, f"every forward before any backward: {words}")
    most = {stage: most_in_flight(order) for stage, order in telling.items()}
    if all(count <= stages - stage for stage, count in most.items()):
        stage, count = max(most.items(), key=lambda item: item[1])
        evidence = f"stage {stage} has {count} micro-batches in flight at most: {words}"
        return _found(Schedule.ONE_F_ONE_B, Sure.MEASURED, evidence)
    return _found(Schedule.ONE_F_ONE_B, Sure.GUESSED, f"an order of its own: {words}")


def most_in_flight(order: str) -> int:
    """Micro-batches whose forward is done and whose backward is not, at most."""
    return max(accumulate((letter == "F") - (letter == "B") for letter in order), default=0)


def _found(schedule: Schedule, sure: Sure, evidence: str) -> FoundSchedule:
    return FoundSchedule(schedule=schedule, sure=sure, evidence=evidence)


def _told(orders: Mapping[int, str]) -> str:
    """`stage 0 FFBFBB, stage 1 FBFBFB`."""
    ends = sorted(orders)
    shown = dict.fromkeys((ends[0], ends[-1]))
    return ", ".join(f"stage {stage} {_cut(orders[stage])}" for stage in shown)


def _cut(order: str) -> str:
    return order if len(order) <= _SHOWN else f"{order[:_SHOWN]}…"
