"""Parameters are counted once, however often a step reduces their gradients."""

from pathlib import Path

import pytest
from msgspec import structs

from ingest.pipeline import IngestOptions
from replay.calls.replayed import replay_run
from whatif.description.described import Sure
from whatif.description.elements import disputed
from whatif.description.infer import describe
from whatif.models.shape import Batch, Degrees, Elements, ModelShape
from whatif.models.transformer.parameters import model_parameters
from whatif.scenario import Scenario
from whatif.study import Studies
from whatif.synth.document import MachineSaid, Wanted
from whatif.synth.make import make
from whatif.transforms.replicas import Replicas
from whatif.transforms.zero import Zero

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
    folder = _made(tmp_path, zero, micro_batches)
    run = replay_run([folder], options=IngestOptions(cache=False))
    found = describe(run.graph)
    expected = model_parameters(MODEL).total
    assert found.shape.model.parameters == pytest.approx(expected, rel=0.01)
    assert found.shape.elements == Elements()
    told = {one.what: one.sure for one in found.findings}
    assert told["elements.parameter"] is (Sure.MEASURED if zero else Sure.GUESSED)
    studies = Studies(run.graph, run.baseline)
    for replicas in (2, 16):
        scenario = Scenario(transforms=(Replicas(replicas=replicas),))
        assert studies.of(scenario, is_bounded=False).step_ns > 0
    if zero == 0:
        answer = studies.of(Scenario(transforms=(Zero(stage=1),)), is_bounded=False)
        assert any("parameters of 2 bytes are a guess" in told for told in answer.assumptions)


@pytest.mark.parametrize(("share", "doubts"), [(None, 0), (1.0, 0), (1.1, 0), (4.0, 1)])
def test_gradients_far_from_layers_and_sizes_are_doubted(share: float | None, doubts: int) -> None:
    """Each micro-batch counted again would be one such case."""
    count = None if share is None else round(share * model_parameters(MODEL).total)
    assert len(disputed(structs.replace(MODEL, parameters=count))) == doubts
