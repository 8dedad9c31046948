"""Which layers lie on which stage."""

from itertools import accumulate, pairwise

from ingest.errors import ScenarioError
from whatif.models.pipeline.terms import Pipeline


def partition(layers: int, pipeline: Pipeline) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Layers of each chunk of each stage.

    Even; what is left over goes one by one to the chunks in the middle, since the first has the
    embedding and the last the head.

    Raises:
        ScenarioError: fewer layers than chunks.
    """
    depth = pipeline.depth
    if layers < depth:
        raise ScenarioError(
            f"{layers} layers over {depth} stages and chunks: some would have none",
            hint=f"at most {layers} in all (--pp x --virtual-stages)",
        )
    each, left = divmod(layers, depth)
    first = (depth - left + 1) // 2
    sizes = [each + (first <= place < first + left) for place in range(depth)]
    ends = [0, *accumulate(sizes)]
    chunks = [tuple(range(begin, end)) for begin, end in pairwise(ends)]
    return tuple(
        tuple(chunks[pipeline.place(stage, chunk)] for chunk in range(pipeline.chunks_per_rank))
        for stage in range(pipeline.stages)
    )
