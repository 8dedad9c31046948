"""Facts about kernels that find the device full; times in us."""

from pathlib import Path

from ingest.vocab import EdgeKind, Evidence, TaskKind
from replay.graph.residuals import without_edges
from replay.results.fidelity import baseline
from tests.kineto import ALL_REDUCE, KinetoFile
from tests.replayed import Edge, Replayed, written

FILL = "fills the device"
BESIDE = 13
"""A stream beside the compute stream."""


def _edge(run: Replayed, task: int) -> Edge:
    return run.edge(task, EdgeKind.SM_FULL)


def _late(
    file: KinetoFile, at: float, *, tail: float, name: str = "late", fill: str = FILL
) -> None:
    """A kernel of 1,000 us, and one launched beside it that starts `tail` before its end."""
    file.launched(fill, (at, at + 5), (at + 8, at + 1_008))
    start = at + 1_008 - tail
    file.launched(name, (at + 20, at + 25), (start, start + 50), stream=BESIDE)


def _trace(folder: Path, *tails: float) -> Replayed:
    file = KinetoFile()
    file.step(1, (0, 3_000 * len(tails)))
    for number, tail in enumerate(tails):
        _late(file, 3_000 * number, tail=tail)
    return written(folder, file)


def test_kernel_that_started_before_the_end_of_a_covering_one_found_the_device_full(
    tmp_path: Path,
) -> None:
    run = _trace(tmp_path, 30, 30, 40)
    for late, fill in zip(run.all_of("late"), run.all_of(FILL), strict=True):
        edge = _edge(run, late)
        assert (edge.src, edge.lag_us, edge.evidence) == (fill, -30, Evidence.INFERRED)
    assert run.graph.tasks.residual_ns[run.all_of("late")].tolist() == [0, 0, -10_000]
    assert run.is_exact()


def test_late_kernel_follows_the_one_that_fills_the_device(tmp_path: Path) -> None:
    run = _trace(tmp_path, 30, 30, 30)
    longer = run.scaled({FILL: 2})
    assert [run.span(task, longer)[0] for task in run.all_of("late")] == [1_978, 4_978, 7_978]
    gone = run.scaled({FILL: 0})
    start = 20 + 5 + 2
    assert [run.span(task, gone)[0] for task in run.all_of("late")] == [
        start + number * 3_000 for number in range(3)
    ], "with room on the device it starts with its launch"


def test_each_pair_of_kernels_has_a_tail_of_its_own(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 14_000))
    for number in range(3):
        _late(file, 2_000 * number, tail=30)
    for number in range(3, 6):
        _late(file, 2_000 * number, tail=430, name="small")
    _late(file, 12_000, tail=440, name="seldom")
    run = written(tmp_path, file)
    assert {_edge(run, task).lag_us for task in run.all_of("late")} == {-30}
    assert {_edge(run, task).lag_us for task in run.all_of("small")} == {-430}
    assert _edge(run, run.task("seldom")).lag_us == -430, "median of the covering kernel"


def test_one_sample_has_the_default_tail(tmp_path: Path) -> None:
    run = _trace(tmp_path, 60)
    assert _edge(run, run.task("late")).lag_us == -15


def test_launch_that_explains_the_start_leaves_nothing_to_a_full_device(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 2_000))
    file.launched(FILL, (0, 5), (8, 1_008))
    file.launched("k", (980, 985), (990, 1_050), stream=BESIDE)
    run = written(tmp_path, file)
    assert run.edges(run.task("k"), EdgeKind.SM_FULL) == []


def test_kernel_that_covers_a_part_of_the_gap_explains_nothing(tmp_path: Path) -> None:
    file = KinetoFile()
    file.step(1, (0, 2_000))
    file.launched("k", (20, 25), (980, 1_050), stream=BESIDE)
    file.launched(FILL, (500, 505), (508, 1_008))
    run = written(tmp_path, file)
    assert run.edges(run.task("k"), EdgeKind.SM_FULL) == []


def test_kernel_far_from_the_end_of_the_covering_one_ran_beside_it(tmp_path: Path) -> None:
    run = _trace(tmp_path, 700)
    assert run.edges(run.task("late"), EdgeKind.SM_FULL) == []


def test_copies_and_collectives_fill_no_device(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    file.step(1, (0, 4_000))
    file.all_reduce(1, (0, 5), (8, 1_008))
    file.launched("beside a collective", (20, 25), (978, 1_020), stream=BESIDE)
    file.copy("DtoD (Device -> Device)", (2_000, 2_005), (2_008, 3_008), stream=7)
    file.launched("beside a copy", (2_020, 2_025), (2_978, 3_020), stream=BESIDE)
    run = written(tmp_path, file)
    for name in ("beside a collective", "beside a copy"):
        assert run.edges(run.task(name), EdgeKind.SM_FULL) == []


def test_copy_needs_no_room_and_a_collective_does(tmp_path: Path) -> None:
    file = KinetoFile(ranks=(0, 1))
    file.step(1, (0, 4_000))
    file.launched(FILL, (0, 5), (8, 1_008))
    file.copy("DtoD (Device -> Device)", (20, 25), (978, 1_020), stream=BESIDE)
    file.launched(FILL, (2_000, 2_005), (2_008, 3_008))
    file.all_reduce(1, (2_020, 2_025), (2_998, 3_500))
    run = written(tmp_path, file)
    copy = run.task("Memcpy DtoD (Device -> Device)")
    assert run.edges(copy, EdgeKind.SM_FULL) == []
    assert _edge(run, run.all_of(ALL_REDUCE, TaskKind.ARRIVE)[0]).src == run.all_of(FILL)[1]


def test_without_its_edges_the_recording_is_reproduced_by_residuals(tmp_path: Path) -> None:
    run = _trace(tmp_path, 30, 30, 30)
    graph = without_edges(run.graph, EdgeKind.SM_FULL)
    assert not (graph.edges.kind == EdgeKind.SM_FULL).any()
    assert len(graph.edges.src) == len(run.graph.edges.src) - 3
    bare = Replayed(graph, run.facts)
    assert bare.is_exact()
    late = bare.all_of("late")
    assert graph.tasks.residual_ns[late].tolist() == [978_000 - 27_000] * 3
    assert [bare.span(task, bare.scaled({FILL: 2}))[0] for task in late] == [978, 3_978, 6_978]
    assert baseline(graph, run.facts).strict.mean_ns <= run.base.strict.mean_ns
