"""A pipeline as its stages would run it: each takes its turns in order, each when it can."""

from whatif.models.pipeline.orders import turns
from whatif.models.pipeline.terms import PassTimes, Pipeline, Turn, Work

Done = dict[tuple[str, int, int, int], float]


def makespan(pipeline: Pipeline, times: PassTimes) -> float:
    """Time from the first turn to the end of the last; messages take none.

    Pairs of DualPipe begin and end together.
    """
    orders = [list(turns(pipeline, stage)) for stage in range(pipeline.stages)]
    free = [0.0] * pipeline.stages
    done: Done = {}
    while any(orders):
        moved = [
            _advance(pipeline, times, stage, order, done, free)
            for stage, order in enumerate(orders)
        ]
        assert any(moved), f"stages wait for one another: {pipeline}"
    return max(free)


def _advance(
    pipeline: Pipeline,
    times: PassTimes,
    stage: int,
    order: list[Turn],
    done: Done,
    free: list[float],
) -> bool:
    if not order:
        return False
    together = order[: 2 if len(order) > 1 and order[1].beside else 1]
    needed = [key for turn in together for key in _needs(pipeline, stage, turn)]
    if any(key not in done for key in needed):
        return False
    spent = sum(_length(pipeline, times, turn) for turn in together)
    if len(together) == 2 and times.pair is not None:
        spent = times.pair
    free[stage] = max([free[stage], *(done[key] for key in needed)]) + spent
    for turn in together:
        if turn.work is not Work.BACKWARD_WEIGHT:
            done[_key(turn.work, stage, turn)] = free[stage]
    del order[: len(together)]
    return True


def _length(pipeline: Pipeline, times: PassTimes, turn: Turn) -> float:
    length = {
        Work.FORWARD: times.forward,
        Work.BACKWARD: times.backward,
        Work.BACKWARD_INPUT: times.backward_input,
        Work.BACKWARD_WEIGHT: times.backward_weight,
    }[turn.work]
    return length * pipeline.stages / pipeline.depth


def _needs(pipeline: Pipeline, stage: int, turn: Turn) -> list[tuple[str, int, int, int]]:
    if turn.work is Work.BACKWARD_WEIGHT:
        return [_key(Work.BACKWARD, stage, turn)]
    forward = turn.work is Work.FORWARD
    other = pipeline.neighbour(stage, turn.chunk, -1 if forward else 1)
    if other is not None:
        return [("forward" if forward else "backward", *other, turn.micro_batch)]
    return [] if forward else [_key(Work.FORWARD, stage, turn)]


def _key(work: Work, stage: int, turn: Turn) -> tuple[str, int, int, int]:
    name = "forward" if work is Work.FORWARD else "backward"
    return name, stage, turn.chunk, turn.micro_batch
