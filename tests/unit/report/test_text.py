"""The text answer: what it says, what it leaves out, and that it stays on a screen."""

from dataclasses import replace

import pytest

from ingest.units import Nanos
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder, data_parallel, facts_of
from tests.unit.report.findings import READING, file_of, findings_of
from whatif.levers import Lever
from whatif.report.check import render_check
from whatif.report.text import LINES, WIDTH, numbers, render
from whatif.transforms.network import NetworkScale
from whatif.transforms.scale import Scale


def test_a_what_if_is_told_with_step_range_and_breakdown() -> None:
    text = render(findings_of(data_parallel(slow_rank=1), NetworkScale(factor=2)))
    assert (
        text
        == """\
read     2 files, ranks 0-1 of 2 | NVIDIA H100 80GB HBM3 | 2,000 events | step 0
store    runs/a.duckdb (7.4 MB, new) | 1.2 s

trust A  strict replay +0.0% off | 100% of the critical path explained | edges none

what if  network x2

step     measured          2.41 ms
         replayed          2.41 ms
         predicted         2.21 ms   speedup 1.090x   range 2.21 ms to 2.21 ms

bound    GPU-bound on rank 1: 83% of the critical path is device compute | CPU 0.3 steps ahead
waits    rank 1 makes each other rank wait 1.00 ms a step (41.5%), last in 1 of 1 collectives:
         device compute 100%

where    per step, mean over ranks           before         after        change
         compute                            1.50 ms       1.50 ms       0.00 ms
         exposed communication              0.90 ms       0.70 ms      -0.20 ms
           of it waiting for others         0.50 ms       0.50 ms       0.00 ms
         exposed copies                     0.00 ms       0.00 ms       0.00 ms
         idle                               0.01 ms       0.01 ms       0.00 ms
         total                              2.41 ms       2.21 ms      -0.20 ms

levers   no everyday what-if saves 0.5 % of this step

notes    - every transfer scales as a whole, its latency included
"""
    )


def test_levers_show_the_option_to_type_and_the_saving() -> None:
    lever = Lever(
        flag_text="--network-scale 2",
        saving_ns=Nanos(200_000),
        step_ns=Nanos(1_210_000),
        low_ns=Nanos(1_210_000),
        high_ns=Nanos(1_210_000),
        saving_low_ns=200_000,
        saving_high_ns=200_000,
        why="all transfers twice as fast",
    )
    text = render(findings_of(data_parallel(), levers=(lever,)))
    assert (
        "levers   --network-scale 2                  -0.20 ms  -14.2%  all transfers twice as fast"
    ) in text


def test_a_run_without_gpu_rows_says_so_and_has_no_idle_line() -> None:
    graph = data_parallel()
    facts = replace(facts_of(graph), has_device=False)
    text = render(findings_of(graph, facts=facts))
    assert "| no GPU rows |" in text
    assert "CPU work" in text
    assert "other waiting" in text
    assert "\n         idle " not in text


def test_a_step_far_above_the_median_is_named() -> None:
    builder = GraphBuilder()
    for step, dur_ns in enumerate((1_000_000, 2_000_000, 1_000_000)):
        builder.host(0, "aten::mm", dur_ns, step=step)
    text = render(findings_of(builder.build()))
    assert "step 1 took 2.00 ms, 2.0x the median" in text


def test_a_rank_far_from_the_median_rank_is_named_and_the_others_are_not() -> None:
    builder = GraphBuilder(ranks=(0, 1, 2))
    for rank, dur_ns in enumerate((1_000_000, 1_001_000, 1_500_000)):
        builder.host(rank, "aten::mm", dur_ns)
    text = render(findings_of(builder.build(), Scale(where="rank:2", factor=0.5)))
    assert "ranks    rank 2            1.50 ms   +49.9% against the median rank" in text
    assert "predicted 0.75 ms" in text
    assert "rank 0 " not in text


def test_ranks_told_by_name_or_order_are_said() -> None:
    graph = data_parallel()
    files = (file_of(0), file_of(1, rank_source="order"))
    text = render(findings_of(graph, facts=replace(facts_of(graph), files=files)))
    assert "rank 1: told by file name or order, not recorded" in text


def test_a_store_that_is_not_kept_has_no_path() -> None:
    text = render(findings_of(data_parallel(), reading=replace(READING, store=None)))
    assert "store    none kept (7.4 MB) | 1.2 s\n" in text


def test_oddities_of_the_data_are_counted() -> None:
    graph = data_parallel()
    facts = replace(facts_of(graph), issues={"truncated": 1, "bad_escape": 12_000})
    text = render(findings_of(graph, facts=facts))
    assert "oddities of the data: bad_escape 12,000, truncated 1" in text


def _crowded() -> TaskGraph:
    builder = GraphBuilder(ranks=tuple(range(8)))
    for rank in builder.ranks:
        for step in range(12):
            slow = 3 if step % 3 == 0 else 1
            builder.host(rank, "aten::mm", (rank + 1) * slow * 1_000_000, step=step)
    return builder.build()


def test_notes_give_way_where_the_answer_would_not_fit_on_a_screen() -> None:
    graph = _crowded()
    issues = {f"an_oddity_with_a_rather_long_name_{number}": number for number in range(60)}
    facts = replace(facts_of(graph), issues=issues, files=tuple(file_of(r) for r in range(8)))
    text = render(findings_of(graph, NetworkScale(factor=2), facts=facts))
    lines = text.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= WIDTH
    assert "more: `--json` tells them" in lines[-1]


def test_a_check_tells_every_note_and_every_oddity() -> None:
    graph = data_parallel()
    issues = {"truncated": 1, "unheard_of": 2}
    facts = replace(facts_of(graph), issues=issues, contradicted={"event_wait": 3})
    text = render_check(findings_of(graph, facts=facts))
    assert "data_loss: the file ends too early" in text
    assert "unheard_of" in text
    assert "not made, against the recording: event_wait 3" in text


@pytest.mark.parametrize(
    ("values", "text"),
    [((0,), "0"), ((0, 1, 2, 5), "0-2, 5"), ((5, 3), "3, 5"), ((), ""), ((4, 5), "4-5")],
)
def test_runs_of_numbers_are_joined(values: tuple[int, ...], text: str) -> None:
    assert numbers(values) == text
