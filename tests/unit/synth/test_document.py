"""Runs that cannot be are refused with their place in the file, before anything is written."""

from pathlib import Path

import pytest

from ingest.errors import ScenarioError
from whatif.models.shape import Batch, Degrees, ModelShape, Options, as_found
from whatif.synth.document import Wanted, load_wanted
from whatif.synth.make import make_from

RUN = """model: {layers: 4, hidden: 1024, heads: 16, kv_heads: 8, ffn: 2048, vocab: 32000}
machine: {gpu: H100, nodes_of: 8, net_gb_per_s: 50}
degrees: {tp: 2, dp: 2, zero: 1}
batch: {samples: 1, sequence: 2048, micro_batches: 2}
"""


def written(folder: Path, *changes: tuple[str, str]) -> Path:
    text = RUN
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path = folder / "run.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("hidden: 1024", "hidden: 0", "`$.model`: hidden of 0"),
        ("hidden: 1024", "hidden: 1000000000000", "`$.model`: hidden of 1,000,000,000,000"),
        ("layers: 4", "layers: 1000000000", "`$.model`: layers of 1,000,000,000"),
        ("layers: 4", "layers: -1", "`$.model`: layers of -1"),
        ("sequence: 2048", "sequence: 0", "`$.batch`: sequence of 0"),
        ("samples: 1", "samples: 0", "`$.batch`: samples of 0"),
        ("samples: 1", "samples: .nan", "`$.batch`: samples of nan"),
        ("samples: 1", "samples: 1.0e+12", "`$.batch`: samples of 1e[+]12"),
        ("batches: 2", "batches: 0", "`$.batch`: micro_batches of 0"),
        ("net_gb_per_s: 50", "net_gb_per_s: 1.0e-12", "`$.machine`: net_gb_per_s of 1e-12"),
        ("net_gb_per_s: 50", "net_gb_per_s: .inf", "`$.machine`: net_gb_per_s of inf"),
        ("nodes_of: 8", "nodes_of: 0", "`$.machine`: nodes_of of 0"),
        ("tp: 2", "tp: 0", "`$.degrees`: tp of 0"),
        ("zero: 1", "zero: 4", "`$.degrees`: ZeRO stage 4"),
    ],
)
def test_numbers_that_no_job_has(tmp_path: Path, before: str, after: str, told: str) -> None:
    path = written(tmp_path, (before, after))
    with pytest.raises(ScenarioError, match=rf"run.yaml, at {told.replace('$', '[$]')}") as caught:
        load_wanted(path)
    assert caught.value.hint.startswith(("a number from", "0, 1, 2"))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([("kv_heads: 8", "kv_heads: 3")], "`$.model.kv_heads`: 16 attention heads do not divide"),
        ([("kv_heads: 8", "kv_heads: 32")], "`$.model.kv_heads`: 16 attention heads do not divide"),
        ([("hidden: 1024", "hidden: 1023")], "`$.model.heads`: 1,023 units of the model's width"),
        ([("zero: 1", "zero: 3, shard: 3")], "`$.degrees.shard`: 2 replicas do not divide over 3"),
        ([("tp: 2", "tp: 3")], "`$.degrees.tp`: 16 attention heads do not divide over 3"),
        ([("dp: 2", "cp: 3")], "`$.degrees.cp`: 2,048 tokens of a sample do not divide over 3"),
        ([("dp: 2", "dp: 2, ep: 2")], "`$.degrees.ep`: 2 ranks for experts, and the model has no"),
        ([("heads: 16", "heads: 16, experts: 4, top_k: 9")], "`$.model.top_k`: a token goes to 9"),
    ],
)
def test_what_contradicts_itself(tmp_path: Path, changes: list[tuple[str, str]], told: str) -> None:
    path = written(tmp_path, *changes)
    with pytest.raises(ScenarioError, match=rf"run.yaml, at {told.replace('$', '[$]')}"):
        load_wanted(path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([("nodes_of: 8, net_gb_per_s: 50", "nodes_of: 1")], "the network is not said"),
        ([("layers: 4", "layers: 100000"), ("batches: 2", "batches: 5")], "kernels to make"),
        ([("samples: 1", "samples: 1000000000")], "longer than a day"),
        (
            [("samples: 1", "samples: 1000000000"), ("sequence: 2048", "sequence: 1000000000")],
            "in one collective",
        ),
        ([(", ffn: 2048", "")], "the model's ffn is not said"),
    ],
)
def test_what_cannot_be_made_leaves_no_folder(
    tmp_path: Path, changes: list[tuple[str, str]], told: str
) -> None:
    path = written(tmp_path, *changes)
    with pytest.raises(ScenarioError, match=rf"run.yaml: .*{told}"):
        make_from(path, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_key_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert isinstance(load_wanted(path), Wanted)
    path.write_text(RUN + "batch: {samples: 9}\n")
    with pytest.raises(ScenarioError, match=r"line 5, column 1: .*`batch` stands there twice"):
        load_wanted(path)


def test_what_a_trace_seems_to_show_but_no_job_has_stays_unknown() -> None:
    found = as_found(ModelShape, layers=4, hidden=0, vocab=10**12, gated=True)
    assert found == ModelShape(layers=4, gated=True)
    assert as_found(Batch, micro_batches=2, samples=float("nan")) == Batch(micro_batches=2)


def test_numbers_of_flags_have_bounds_too() -> None:
    for make in (lambda: Degrees(shard=0), lambda: Options(imbalance=float("nan"))):
        with pytest.raises(ValueError, match=" of "):
            make()
