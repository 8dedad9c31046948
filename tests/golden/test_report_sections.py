"""Verdict, findings and sections of real traces: what is known of them, and figures against SQL."""

from functools import cache
from pathlib import Path

import pytest

from ingest.pipeline import IngestOptions
from ingest.units import format_ms
from replay import api
from whatif.postmortem.contract import Report
from whatif.report.blocks import Block, DataTable, Lines, Part, StackedBars, Words
from whatif.report.charts.palette import ALIASES, ROLES
from whatif.scenario import Scenario
from whatif.transforms.stragglers import NoStragglers

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT.parent / "shared" / "traces"
SAMPLE = ROOT / "sample_traces" / "ddp8_h100"
WITHOUT_CACHE = IngestOptions(cache=False)
MOST_OPEN = 4
"""Figures of a section that are not folded: about a screen or two."""

with_shared = pytest.mark.skipif(not TRACES.is_dir(), reason="shared/ is not beside the checkout")

FIRST = {
    "h100x8_nanogpt_12-11": "host_bound",
    "h100x4_torchtitan_fsdp_A": "small_kernels",
    "v100x4_torchrec_fp32": "allocator_calls",
    "a100x8_megatron_tp8": "straggler",
    "single/mi300_resnet_ddp.json.gz": "exposed_communication",
}
"""What costs each of these most."""
HEALTHY = (
    "single/hta_ns_resolution.json.gz",
    "pair_nanogpt_gradsync_h100x8/hook_final_rank0.json.gz",
)
"""GPUs that compute all the time."""
ODD = (
    "hta_meta_128gpu_sampled",
    "single/cpu_only_rank34of300.json.gz",
    "single/mtia_rank0.json.gz",
    "single/rank_missing.json.gz",
    "single/cuda_event_sync.json.gz",
    "single/vllm_piecewise_graphs.json.gz",
)
"""Without device rows, without steps, with most rows gone."""


@cache
def report(path: Path) -> Report:
    return api.report([path], command="replay report", options=WITHOUT_CACHE)


def block_of(made: Report, section: str, key: str) -> Block:
    (found,) = [one for one in made.sections if one.key == section]
    (block,) = [one for one in found.blocks if not isinstance(one, Words) and one.key == key]
    return block


@with_shared
@pytest.mark.parametrize(("name", "key"), FIRST.items())
def test_the_finding_of_a_known_run_comes_first(name: str, key: str) -> None:
    made = report(TRACES / name)
    assert made.findings[0].key == key
    assert not made.verdict.is_healthy


@with_shared
@pytest.mark.parametrize(
    ("name", "rank"), [("h100x4_torchtitan_fsdp_A", 2), ("v100x4_torchrec_fp32", 2)]
)
def test_the_rank_that_the_manifest_calls_late_is_the_straggler(name: str, rank: int) -> None:
    (found,) = [one for one in report(TRACES / name).findings if one.key == "straggler"]
    assert f"for rank {rank}: its host is late" in found.insight


@with_shared
@pytest.mark.parametrize("name", HEALTHY)
def test_a_gpu_that_is_always_busy_has_no_bottleneck(name: str) -> None:
    made = report(TRACES / name)
    assert [one.key for one in made.findings] == []
    assert "No bottleneck found" in made.verdict.sentence
    assert made.verdict.is_healthy


@with_shared
@pytest.mark.parametrize("name", ODD)
def test_a_recording_that_lacks_much_is_no_reason_to_fail_or_to_praise(name: str) -> None:
    made = report(TRACES / name)
    assert len(made.sections) == 15
    assert not (made.verdict.is_healthy and "no known cause" in made.verdict.sentence)
    (trust,) = [one for one in made.sections if one.key == "trust"]
    assert trust.missing


@with_shared
@pytest.mark.parametrize("name", ["h100x8_nanogpt_12-11", "v100x4_torchrec_fp32"])
def test_the_breakdown_is_that_of_the_sql_beside_it(name: str) -> None:
    made = report(TRACES / name)
    bars = block_of(made, "breakdown", "breakdown.ranks")
    assert isinstance(bars, StackedBars)
    assert bars.query is not None
    assert "--query time_by_rank" in bars.query.command
    ours = dict(
        zip(bars.categories, zip(*(part.values for part in bars.parts), strict=True), strict=True)
    )
    with api.open_run(TRACES / name, options=WITHOUT_CACHE) as run:
        rows = run.query("time_by_rank").to_dicts()
    assert len(rows) == len(bars.categories) - 1
    for row in rows:
        waiting_ms = row["of_it_waiting_ms"]
        theirs_ms = (
            row["compute_ms"],
            row["exposed_comm_ms"] - waiting_ms,
            waiting_ms,
            row["exposed_memcpy_ms"],
            row["idle_ms"],
        )
        mine_ms = [(value or 0) / 1e6 for value in ours[f"rank {row['rank']}"]]
        # SQL takes the recorded, the graph the repaired starts: torchrec's device clocks are apart.
        assert mine_ms == pytest.approx(theirs_ms, abs=0.02 * row["step_ms"])


def test_the_sample_tells_its_straggler_and_reads_as_it_was_made() -> None:
    made = report(SAMPLE)
    found = {one.key: one for one in made.findings}
    assert "rank 3" in found["straggler"].insight
    assert made.verdict.sentence.startswith("Step ")


def test_every_colour_of_a_chart_is_that_of_a_role() -> None:
    charts = [
        block
        for section in report(SAMPLE).sections
        for block in section.blocks
        if isinstance(block, StackedBars | Lines)
    ]
    roles = {part.role for chart in charts for part in parts_of(chart)}
    assert {"compute", "forward", "backward", "runtime"} <= roles
    assert {ALIASES.get(role, role) for role in roles} <= set(ROLES)


def parts_of(chart: StackedBars | Lines) -> tuple[Part, ...]:
    return chart.parts if isinstance(chart, StackedBars) else chart.lines


def test_each_section_opens_with_a_figure_and_folds_the_rest() -> None:
    for section in report(SAMPLE).sections:
        blocks = [block for block in section.blocks if not isinstance(block, Words)]
        folded = [block.is_detail for block in blocks]
        assert folded == sorted(folded), section.key
        assert folded.count(False) <= MOST_OPEN


def test_a_part_of_the_run_is_told_of_that_part_alone() -> None:
    whole = report(SAMPLE)
    (steps,) = [one for one in whole.sections if one.key == "steps"]
    numbers = [row[0] for row in block_rows(steps.blocks, "steps.table")]
    chosen = range(int(str(numbers[0])), int(str(numbers[0])) + 1)
    window = api.Window(ranks=(0, 3), steps=chosen)
    made = api.report([SAMPLE], command="replay report", window=window, options=WITHOUT_CACHE)
    (part,) = [one for one in made.sections if one.key == "steps"]
    assert [row[0] for row in block_rows(part.blocks, "steps.table")] == numbers[:1]
    bars = block_of(made, "breakdown", "breakdown.ranks")
    assert isinstance(bars, StackedBars)
    assert bars.categories == ("mean", "rank 0", "rank 3")
    assert bars.query is not None
    assert "--param ranks=0,3" in bars.query.command
    assert f"--param last_step={chosen[0]}" in bars.query.command


def block_rows(blocks: tuple[Block, ...], key: str) -> tuple[tuple[object, ...], ...]:
    (table,) = [one for one in blocks if isinstance(one, DataTable) and one.key == key]
    return table.rows


def test_what_leads_is_predicted_as_by_every_other_command() -> None:
    made = report(SAMPLE)
    first = made.findings[0]
    assert (first.key, first.flag) == ("straggler", "--no-stragglers")
    scenario = Scenario(transforms=(NoStragglers(),))
    told = api.analyse([SAMPLE], scenario, options=WITHOUT_CACHE).prediction
    assert told is not None
    assert (first.predicted_ns, first.predicted_low_ns, first.predicted_high_ns) == (
        told.step_ns, told.low_ns, told.high_ns,
    )  # fmt: skip
    assert f"predicted {format_ms(told.step_ns)}" in made.verdict.sentence
