"""How long the ranks of a pipeline stand idle, and how many micro-batches they hold.

Closed forms of the bubble are those of the papers, of equal stages and messages that take no time.
"""

from itertools import accumulate

from whatif.models.pipeline.orders import turns, warm_up_of
from whatif.models.pipeline.terms import PassTimes, Pipeline, Turn, Work
from whatif.models.shape import Schedule


def bubble(pipeline: Pipeline, times: PassTimes) -> float:
    """Time that each rank stands idle in a step of equal stages, in the unit of `times`.

    GPipe and 1F1B (p-1)(F+B), interleaved that over the chunks, ZB-H1 (p-1)(F+B-2W), DualPipe
    (p/2-1)(FB+B-3W), where B is both gradients and FB `times.pair`, which ends for both at once.
    Weights' gradients fill gaps and no more: where W is longer than the inputs' gradient, the time
    remains in which the last stage waits for its first input. Of ZB-H1 from as many micro-batches
    as stages.
    """
    stages = pipeline.stages
    match pipeline.kind:
        case Schedule.NONE:
            return 0.0
        case Schedule.GPIPE | Schedule.ONE_F_ONE_B:
            return (stages - 1) * times.whole
        case Schedule.INTERLEAVED:
            return (stages - 1) * times.whole / pipeline.chunks
        case Schedule.ZERO_BUBBLE:
            rest = times.backward_input - times.backward_weight
            return (stages - 1) * (times.forward + max(rest, 0.0))
        case Schedule.DUALPIPE:
            pair = times.whole if times.pair is None else times.pair
            gap = pair + times.backward - 3 * times.backward_weight
            return (stages / 2 - 1) * max(gap, 2 * times.forward if times.pair is None else 0.0)


def bubble_frac(pipeline: Pipeline, times: PassTimes) -> float:
    """Idle time over the time of the work: (p-1)/m of 1F1B, (p-1)/(v m) interleaved."""
    return bubble(pipeline, times) / (pipeline.micro_batches * times.whole)


def held(order: tuple[Turn, ...]) -> int:
    """Most activations of a chunk that the rank holds at once, in micro-batches of a chunk.

    A micro-batch is held from its forward to the end of its backward; where that is split, what
    the weights' part needs is counted whole.
    """
    change = (1 if turn.work is Work.FORWARD else -1 if turn.work in _ENDS else 0 for turn in order)
    return max(accumulate(change), default=0)


_ENDS = (Work.BACKWARD, Work.BACKWARD_WEIGHT)


def held_of_stage(pipeline: Pipeline, stage: int) -> int:
    """As `held`, of a stage, without its order where a closed form is at hand."""
    stages, micro_batches = pipeline.stages, pipeline.micro_batches
    match pipeline.kind:
        case Schedule.NONE:
            return 1
        case Schedule.GPIPE:
            return micro_batches
        case Schedule.ONE_F_ONE_B:
            return min(stages - stage, micro_batches)
        case Schedule.ZERO_BUBBLE:
            return min(stages, micro_batches)
        case Schedule.INTERLEAVED:
            return warm_up_of(pipeline, stage) + (
                warm_up_of(pipeline, stage) < micro_batches * pipeline.chunks
            )
        case Schedule.DUALPIPE:
            return held(turns(pipeline, stage))
