"""Section `stragglers` on traces whose late rank is known."""

from pathlib import Path

import pytest

from replay import api
from tests.kineto import COMPUTE, KinetoFile
from tests.material import material_of
from tests.unit.postmortem.sections import bars_of, block_of, rows_of, section_of
from whatif.postmortem.sections import stragglers
from whatif.report.blocks import DataTable, Words
from whatif.report.reading import late_sentences

ROOT = Path(__file__).resolve().parents[3]
TRACES = ROOT.parent / "shared" / "traces"
SAMPLE = ROOT / "sample_traces" / "ddp8_h100"
GLOO = ROOT / "sample_traces" / "gloo2_cpu"
with_shared = pytest.mark.skipif(not TRACES.is_dir(), reason="shared/ is not beside the checkout")


def _slow_kernel(folder: Path) -> list[Path]:
    """A gemm of 40 us on rank 1 and of 10 us on rank 0, then an all-reduce; ten steps of 100 us."""
    written = []
    for rank, gemm_us in ((0, 10), (1, 40)):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        for step in range(10):
            at = 100 * step
            file.step(step, (at, at + 100))
            file.launched("gemm", (at + 2, at + 5), (at + 10, at + 10 + gemm_us))
            met = (at + 12 + gemm_us, at + 70)
            file.all_reduce(step, (at + 6, at + 9), met, stream=COMPUTE)
        written.append(file.write(folder / f"rank{rank}.json"))
    return written


def test_the_slow_rank_is_named_with_its_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section, material = section_of(stragglers.section, _slow_kernel(tmp_path), monkeypatch)
    assert section.summary.startswith("Rank 1 makes each other rank wait 0.03 ms a step (30.0%)")
    first = rows_of(section, "stragglers.ranks")[0]
    assert (first["rank"], first["collectives"], first["last"]) == (1, 10, 10)
    assert first["cost a step"] == 30_000
    assert first["others wait"] == 300_000
    assert first["clock uncertain by"] is not None
    assert rows_of(section, "stragglers.matrix") == [
        {"waits": "rank 0", "for rank 1": 30_000},
        {"waits": "rank 1", "for rank 1": None},
    ]
    slower = rows_of(section, "stragglers.slower")[0]
    assert (slower["name"], slower["on"], slower["calls"]) == ("gemm", "device", 1)
    assert (slower["own"], slower["others"], slower["more"]) == (40_000, 10_000, 30_000)
    call = rows_of(section, "stragglers.collectives")[0]
    assert (call["collective"], call["late"], call["why"]) == (
        "all_reduce",
        "rank 1",
        "device compute",
    )
    assert (call["apart"], call["others wait"], call["exposed"]) == (30_000, 30_000, 30_000)
    assert material.answer.reading is not None
    assert material.answer.reading.stragglers[0].cost_ns == first["cost a step"]


def test_causes_of_the_sample_add_up_to_its_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    section, material = section_of(stragglers.section, [SAMPLE], monkeypatch)
    late = material.findings.run.late
    assert late.worst is not None
    costs = bars_of(section, "stragglers.cost")
    assert sum(value or 0 for value in costs["rank 3"].values()) == late.worst.cost_ns
    (told,) = late_sentences(
        material.findings.run, material.findings.baseline.replayed.mean_ns, n_ranks=8
    )
    assert section.summary.lower() == f"{told}.".lower()
    waited = [row["for rank 3"] for row in rows_of(section, "stragglers.matrix")]
    others = [value for value in waited if value is not None and value > 1_000]
    assert sum(others) / 7 == pytest.approx(late.worst.cost_ns, abs=1)


def test_the_query_counts_what_the_table_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    section, _ = section_of(stragglers.section, [SAMPLE], monkeypatch)
    table = block_of(section, "stragglers.ranks")
    assert isinstance(table, DataTable)
    assert table.query is not None
    assert table.query.command.endswith("--query late_ranks")
    shown = {
        (row["rank"], row["collectives"], row["last"])
        for row in rows_of(section, "stragglers.ranks")
    }
    with api.open_run(SAMPLE) as run:
        asked = run.query("late_ranks").to_dicts()
    assert shown == {(row["rank"], row["collectives"], row["times_last"]) for row in asked}


def test_one_rank_alone_tells_what_it_waited_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = KinetoFile(rank=0, ranks=(0, 1))
    for number, end in enumerate((30, 30, 30, 60)):
        at = 100 * number
        file.step(number, (at, at + 100))
        file.all_reduce(number, (at + 2, at + 5), (at + 10, at + end))
    section, _ = section_of(stragglers.section, [file.write(tmp_path / "rank0.json")], monkeypatch)
    (words,) = section.blocks
    assert isinstance(words, Words)
    assert "Waiting for ranks that are not in these files" in words.paragraphs[0]
    assert section.summary.startswith("Waits 0.01 ms a step (7.5%) for ranks that are not")
    assert [missing.how for missing in section.missing] == [
        "give the traces of all ranks of the same steps"
    ]


def test_a_run_without_others_waits_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = KinetoFile()
    file.step(1, (0, 100))
    file.launched("gemm", (5, 10), (12, 32))
    section, _ = section_of(stragglers.section, [file.write(tmp_path / "rank0.json")], monkeypatch)
    assert section.summary == "One rank alone, without collectives: it waits for no other."
    assert section.blocks == ()


@with_shared
def test_the_matrix_of_real_ranks_gives_the_cost_of_the_worst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    section, material = section_of(
        stragglers.section, [TRACES / "v100x4_torchrec_fp32"], monkeypatch
    )
    late = material.findings.run.late
    assert late.worst is not None
    waited = [row[f"for rank {late.worst.rank}"] for row in rows_of(section, "stragglers.matrix")]
    others = [value for value in waited if value is not None]
    assert sum(others) / len(others) == pytest.approx(late.worst.cost_ns, rel=1e-6)
    reasons = rows_of(section, "stragglers.reasons")
    assert sum(row["cost a step"] for row in reasons if row["late"] == "rank 2") == pytest.approx(
        late.worst.cost_ns, rel=0.01
    )


def test_waiting_on_hosts_is_not_called_exposed(monkeypatch: pytest.MonkeyPatch) -> None:
    section, _ = section_of(stragglers.section, [GLOO], monkeypatch)
    table = block_of(section, "stragglers.matrix")
    assert isinstance(table, DataTable)
    assert "Waiting at collectives" in table.about
    assert all(row["exposed"] is None for row in rows_of(section, "stragglers.collectives"))


def test_names_that_differ_by_a_hash_are_the_same_work(tmp_path: Path) -> None:
    """Rank 1 takes 40 us for its graph and rank 0 10 us; `save` is on rank 1 alone."""
    written = []
    for rank, graph_us, letter in ((0, 10, "a"), (1, 40, "b")):
        file = KinetoFile(rank=rank, ranks=(0, 1))
        file.step(1, (0, 100))
        file.op(f"## Call CompiledFxGraph f{letter * 51} ##", (0, graph_us))
        file.launched("gemm", (60, 65), (70, 90))
        if rank == 1:
            file.op("save", (80, 90))
        written.append(file.write(tmp_path / f"rank{rank}.json"))
    with material_of(*written) as material:
        rows = material.ask("slower_work", late_rank=1).dicts()
    assert [(row["name"], row["other_ranks"], row["more_ns"]) for row in rows] == [
        ("## Call CompiledFxGraph * ##", 1, 30_000),
        ("save", 0, None),
    ]
