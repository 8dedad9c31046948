"""What a recording does not tell is left open, not told wrongly."""

from pathlib import Path

import pytest

from ingest.pipeline import IngestOptions, open_run
from replay.calls.replayed import graph_of
from replay.calls.window import WHOLE
from whatif.description.described import Described
from whatif.description.infer import describe
from whatif.models.shape import Recompute

TRACES = Path(__file__).parents[5] / "shared/traces"


def described(name: str) -> Described:
    path = TRACES / name
    if not path.exists():
        pytest.skip("no real traces here")
    with open_run([path], options=IngestOptions(cache=False)) as run:
        graph, _ = graph_of(run, WHOLE)
    return describe(graph)


def test_iterations_without_steps_are_no_layers() -> None:
    """AlexNet, once to warm up and once to be measured."""
    found = described("single/alexnet_cuda_sync.json.gz")
    assert found.shape.model.layers is None
    assert any("layers could not be told apart" in doubt for doubt in found.doubts)


def test_scores_of_a_recommendation_are_no_width() -> None:
    assert described("hta_meta_128gpu_sampled").shape.model.hidden is None


def test_what_checkpoints_compute_again_is_told() -> None:
    """All of ResNet-18's four stages lie in a CheckpointWrapper: 19 of its 20 convolutions."""
    found = described("single/mi300_resnet_ddp.json.gz")
    assert found.shape.options.recompute is Recompute.FULL
