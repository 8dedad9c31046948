"""Parameters are counted once, however often a step reduces their gradients."""

from pathlib import Path

import pytest

from ingest.pipeline import IngestOptions, open_run
from replay.calls.replayed import graph_of
from replay.calls.window import WHOLE
from whatif.description.described import Sure
from whatif.description.infer import describe
from whatif.models.shape import Batch, Degrees, Elements, ModelShape
from whatif.models.transformer.parameters import model_parameters
from whatif.synth.document import MachineSaid, Wanted
from whatif.synth.make import make

MODEL = ModelShape(
    layers=4, hidden=2048, heads=16, kv_heads=4, head_dim=128, ffn=5632, gated=True, vocab=32_000
)


def _made(folder: Path, zero: int, micro_batches: int) -> Path:
    make(
        Wanted(
            model=MODEL,
            machine=MachineSaid(gpu="H100", net_gb_per_s=50),
            degrees=Degrees(dp=8, zero=zero),
            batch=Batch(samples=1, sequence=2048, micro_batches=micro_batches),
        ),
        folder,
    )
    return folder


@pytest.mark.parametrize("zero", range(4))
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_a_made_run_gives_back_its_parameters_and_bytes_and_other_replicas(
    tmp_path: Path, zero: int, micro_batches: int
) -> None:
    """Of any stage: a file of one of eight ranks, fewer replicas and more of them."""
    with open_run(
        [_made(tmp_path, zero, micro_batches)], options=IngestOptions(cache=False)
    ) as run:
        graph, _ = graph_of(run, WHOLE)
    found = describe(graph)
    expected = model_parameters(MODEL).total
    assert found.shape.model.parameters == pytest.approx(expected, rel=0.01)
    assert found.shape.elements == Elements()
    told = {one.what: one.sure for one in found.findings}
    assert told["elements.parameter"] is (Sure.MEASURED if zero else Sure.GUESSED)
