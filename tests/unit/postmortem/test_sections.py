"""Steps, trust, run card, critical path and what-ifs of small runs known by hand."""

import re
from dataclasses import replace

import msgspec
import pytest

from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder
from tests.unit.postmortem.graphs import MS, US, material_of, one_rank, training
from whatif.postmortem.build import build_report
from whatif.postmortem.conclusion import verdict
from whatif.postmortem.contract import Report, Section
from whatif.postmortem.findings.rules import findings
from whatif.postmortem.material import Material
from whatif.postmortem.path_timeline import MOST_PIECES
from whatif.postmortem.sections import critical_path, run_card, steps, trust, what_ifs
from whatif.report.blocks import (
    Block,
    DataTable,
    Lines,
    Ranges,
    StackedBars,
    Timeline,
    Words,
)
from whatif.transforms.scale import Scale

RUNS = {
    "healthy": training(),
    "straggler": training(slow={1: 1.5}),
    "one step": one_rank(steps=1),
    "host": one_rank(kernels=200, kernel_ns=3 * US, host_ns=12 * US),
    "long step": one_rank(steps=5, long_step=2),
}


def block_of(section: Section, key: str) -> Block:
    (found,) = [one for one in section.blocks if getattr(one, "key", "") == key]
    return found


def table_of(section: Section, key: str) -> DataTable:
    found = block_of(section, key)
    assert isinstance(found, DataTable)
    return found


@pytest.mark.parametrize("graph", RUNS.values(), ids=RUNS)
def test_a_report_is_whole_and_comes_back_from_its_json(graph: TaskGraph) -> None:
    made = build_report(material_of(graph), program="trace-replay")
    assert msgspec.json.decode(msgspec.json.encode(made), type=Report) == made
    assert [one.key for one in made.sections][:6] == [
        "verdict", "trust", "run_card", "steps", "breakdown", "critical_path",
    ]  # fmt: skip
    for section in made.sections:
        for block in section.blocks:
            if isinstance(block, DataTable):
                assert {len(row) for row in block.rows} <= {len(block.columns)}


def test_keys_of_blocks_are_unique_in_the_report() -> None:
    made = build_report(material_of(RUNS["straggler"]), program="trace-replay")
    keys = [
        block.key for one in made.sections for block in one.blocks if not isinstance(block, Words)
    ]
    assert len(keys) == len(set(keys))


def test_the_strip_has_the_steps_of_the_run_and_of_each_rank() -> None:
    material = material_of(RUNS["straggler"])
    strip = block_of(steps.section(material), "steps.strip")
    assert isinstance(strip, Lines)
    assert [line.name for line in strip.lines] == ["run", "rank 0", "rank 1"]
    measured = material.findings.baseline.measured
    assert strip.lines[0].values == tuple(measured.per_step_ns.tolist())
    assert strip.x == (0.0, 1.0, 2.0)
    assert strip.has_points


def test_a_long_step_is_marked_and_what_grew_is_told() -> None:
    made = steps.section(material_of(RUNS["long step"]))
    strip = block_of(made, "steps.strip")
    assert isinstance(strip, Lines)
    assert strip.marks == ((2.0, "4.0x the median"),)
    assert table_of(made, "steps.grown").rows[0][:3] == ("2", "gemm", "0")
    assert made.summary.endswith("1 outlier.")


def test_few_steps_have_no_95th_percentile_and_many_have() -> None:
    few, many = (steps.section(material_of(one_rank(steps=count))) for count in (3, 20))
    assert "p95" not in few.summary
    assert "too few" in few.missing[0].what
    assert "p95" in many.summary
    assert many.missing == ()


def test_trust_gives_grade_reasons_and_what_lacks() -> None:
    made = trust.section(material_of(RUNS["host"]))
    assert made.summary.startswith("Grade C: ")
    (words,) = [block for block in made.blocks if isinstance(block, Words)]
    assert any("is host work" in text for text in words.paragraphs)
    figures = {row[0]: row[1] for row in table_of(made, "trust.figures").rows}
    assert figures["strict replay"] == "+0.00%"
    assert figures["ranks found"] == "1 of 1"
    assert figures["steps complete"] == "0-2"
    assert len(table_of(made, "trust.by_step").rows) == 3


def test_the_run_card_tells_what_each_communicator_is_for() -> None:
    groups = tuple(replace(one, description="mesh_dp") for one in RUNS["healthy"].groups)
    made = run_card.section(material_of(replace(RUNS["healthy"], groups=groups)))
    (group, *_) = table_of(made, "run_card.groups").rows
    assert group[:3] == ("mesh_dp (2 ranks)", "0-1", "data")
    facts = {row[0]: row[1] for row in table_of(made, "run_card.facts").rows}
    assert facts["parallelism"] == "data 2"
    assert facts["accelerators of the job"] == "2 x NVIDIA H100 80GB HBM3"
    assert facts["one of them"].startswith("H100 SXM5 80 GB, 990 TFLOP/s bf16")


@pytest.mark.parametrize("graph", RUNS.values(), ids=RUNS)
def test_the_path_adds_up_in_bars_in_causes_and_over_time(graph: TaskGraph) -> None:
    material = material_of(graph)
    made = critical_path.section(material)
    length_ns = material.findings.baseline.path.length_ns
    n_steps = len(material.findings.graph.steps)
    bars = block_of(made, "critical_path.ranks")
    assert isinstance(bars, StackedBars)
    in_bars = sum(value or 0 for part in bars.parts for value in part.values)
    assert in_bars == pytest.approx(length_ns / n_steps)
    causes = table_of(made, "critical_path.causes").rows
    assert sum(int(row[1] or 0) for row in causes) == pytest.approx(
        length_ns / n_steps, abs=len(causes)
    )
    timeline = block_of(made, "critical_path.timeline")
    assert isinstance(timeline, Timeline)
    assert len(timeline.pieces) <= MOST_PIECES
    at_ns = 0
    for piece in timeline.pieces:
        assert piece.ts_ns == at_ns
        at_ns += piece.dur_ns
    assert at_ns == length_ns


def test_a_path_of_many_pieces_is_drawn_in_slots_that_cover_it() -> None:
    graph = one_rank(steps=2, kernels=400, kernel_ns=30 * US, host_ns=40 * US)
    made = critical_path.section(material_of(graph))
    timeline = block_of(made, "critical_path.timeline")
    assert isinstance(timeline, Timeline)
    assert "300 equal slots" in timeline.about
    assert {piece.role for piece in timeline.pieces} == {"host"}


def test_the_longest_pieces_name_rank_step_lane_and_operator() -> None:
    made = critical_path.section(material_of(RUNS["straggler"]))
    first = table_of(made, "critical_path.longest").rows[0]
    assert first[0] == "gemm"
    assert first[1] == 30 * MS
    assert first[4] == "1"
    assert first[6] == "stream 7"


def test_levers_come_by_their_saving_with_ranges_and_bounds() -> None:
    material = material_of(training(slow={1: 1.5}, transfer_ns=9 * MS, hidden=False))
    made = what_ifs.section(material)
    levers = table_of(made, "what_ifs.levers")
    savings = [int(row[7] or 0) for row in levers.rows]
    assert savings == sorted(savings, reverse=True)
    bars = block_of(made, "what_ifs.ranges")
    assert isinstance(bars, Ranges)
    assert all(bar.low <= bar.value <= bar.high for bar in bars.bars)
    assert bars.baseline == material.levers.step_ns
    free, together = table_of(made, "what_ifs.bounds").rows
    assert free[0] == "infinitely fast communication"
    assert free[8] == "--scale class:collective=0"
    assert str(together[0]).startswith("together: ")
    assert int(together[4] or 0) >= max(savings)


def test_communication_that_is_hidden_says_why_it_is_no_bound() -> None:
    made = what_ifs.section(material_of(training()))
    (free,) = [row for row in table_of(made, "what_ifs.bounds").rows if row[1] is None]
    assert "saves nothing: " in str(free[7])


def test_what_was_asked_comes_first() -> None:
    material = material_of(one_rank(), Scale(where="class:gemm", factor=0.5))
    made = what_ifs.section(material)
    assert made.summary.startswith("Asked: class:gemm x0.5: predicted 10.")
    assert isinstance(made.blocks[0], Words)
    asked = table_of(made, "what_ifs.asked").rows
    for place in (1, 2, 3):
        assert sum(int(row[place] or 0) for row in asked[:4]) == asked[4][place]


def test_a_run_without_work_in_its_steps_has_no_path() -> None:
    builder = GraphBuilder(ranks=(0,))
    builder.host(0, "aten::mm", 0)
    made = critical_path.section(material_of(builder.build()))
    assert made.blocks == ()
    assert made.missing


def test_nothing_is_asked_where_nothing_can_be_replayed() -> None:
    made = material_of(RUNS["straggler"])
    alone: Material = Material(
        name=made.name,
        trace=made.trace,
        command=made.command,
        findings=made.findings,
        answer=made.answer,
        levers=made.levers,
        sources=(),
        ask=made.ask,
    )
    report = build_report(alone, program="trace-replay")
    assert report.findings[0].key == "straggler"
    assert report.verdict.not_fixed == ""


def lever_rows(material: Material) -> list[dict[str, object]]:
    table = table_of(what_ifs.section(material), "what_ifs.levers")
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def test_findings_stand_among_the_levers_and_the_verdict_leads_both_sections() -> None:
    material = material_of(one_rank(kernels=1, kernel_ns=1 * MS, call="cudaMalloc", call_ns=3 * MS))
    material = replace(material, found=findings(material))
    first, rows = material.found[0], lever_rows(material)
    assert first.key == "allocator_calls"
    (mine,) = [row for row in rows if row["what to type"] == first.flag]
    assert (mine["kind"], mine["saves"]) == ("finding", first.saving_ns)
    assert {row["kind"] for row in rows} >= {"finding", "generic knob"}
    said = verdict(material, material.found).sentence
    (told,) = re.findall(r"Biggest finding to act on: .*", said)
    assert what_ifs.section(material).summary.startswith(told)
    assert "Of the generic knobs most would come from " in what_ifs.section(material).summary


def test_predictions_have_the_ranges_of_their_answers() -> None:
    material = material_of(training(slow={1: 1.5}, transfer_ns=9 * MS, hidden=False))
    by_flag = {
        (moved.flag): moved
        for lever in material.levers.levers
        for moved in (lever.twice, lever.limit)
        if moved is not None
    }
    for row in lever_rows(material):
        moved = by_flag[str(row["what to type"])]
        assert (row["2x, low"], row["2x, high"]) == (moved.low_ns, moved.high_ns)
        assert (row["saves, low"], row["saves, high"]) == (
            moved.saving_low_ns, moved.saving_high_ns,
        )  # fmt: skip
