"""Real runs of several ranks made worse on purpose: the answer stays right, or says what it lacks.

The traces lie in the folder `shared/` beside the checkout.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from ingest.pipeline import IngestOptions, open_run
from replay.graph.build import build
from replay.graph.facts import FileFacts
from replay.results.fidelity import Baseline, baseline
from tests.hostile import clock_moved, collective_deleted
from whatif.scenario import Scenario
from whatif.study import Study, study
from whatif.transforms.absent import AS_RECORDED, with_modelled_transfers
from whatif.transforms.network import NetworkScale

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="no folder shared/ beside the checkout")

MEGATRON, TORCHREC, NANOGPT = "a100x8_megatron_tp8", "v100x4_torchrec_fp32", "h100x8_nanogpt_12-11"
LIGHTLLM, DLRM = "h200x8_lightllm_decode_static", "v100x8_dlrm"
AHEAD_US, DRIFT_PPM = 7_000, 20.0
RANK = 2
"""The rank that is made worse."""
NETWORK_TWICE = Scenario(transforms=(NetworkScale(factor=2.0),))

Int64 = NDArray[np.int64]


class Members(NamedTuple):
    """Members of collectives by rank and order of start."""

    collective: Int64
    rank: Int64
    ts_ns: Int64
    wait_ns: Int64


@dataclass(frozen=True)
class Answered:
    """What is found of a set of files."""

    files: dict[int, FileFacts]
    members: Members
    seen: dict[int, int]
    """Per number of members that are there, how many collectives."""
    counted: dict[str, int]
    base: Baseline
    asked: Study

    @property
    def measured_ns(self) -> int:
        """Recorded step."""
        return int(self.base.measured.mean_ns)

    def last_rank(self, margin_ns: float) -> dict[int, int]:
        """Per collective, by order of its first start, who came last by more than a margin."""
        members = self.members
        order = list(dict.fromkeys(members.collective[np.argsort(members.ts_ns)].tolist()))
        found = {}
        for number, collective in enumerate(order):
            rows = np.flatnonzero(members.collective == collective)
            rows = rows[np.argsort(members.ts_ns[rows])]
            if len(rows) > 1 and members.ts_ns[rows[-1]] - members.ts_ns[rows[-2]] > margin_ns:
                found[number] = int(members.rank[rows[-1]])
        return found


def files_of(name: str) -> list[Path]:
    return sorted((TRACES / name).glob("*.json.gz"))


@cache
def unchanged(name: str) -> Answered:
    return answered(files_of(name))


def answered(paths: Sequence[Path]) -> Answered:
    with open_run(paths, options=IngestOptions(cache=False)) as run:
        built = build(run.store)
        rows = run.store.rows(
            "SELECT coll_id, rank, ts, wait_dur FROM collective_rank ORDER BY rank, ts, coll_id"
        )
        seen = run.store.rows("SELECT n_seen, count(*) FROM collective GROUP BY n_seen")
        counted = run.store.rows(
            "SELECT name, sum(value)::BIGINT FROM import_stat"
            " WHERE name LIKE 'collective%' GROUP BY name"
        )
    graph = with_modelled_transfers(built.graph)
    base = baseline(graph, built.facts)
    return Answered(
        files={file.rank: file for file in built.facts.files},
        members=Members(*np.array(rows, np.int64).reshape(-1, 4).T),
        seen=dict(seen),
        counted=dict(counted),
        base=base,
        asked=study(graph, base, NETWORK_TWICE),
    )


def with_one(name: str, changed: Path, rank: int = RANK) -> list[Path]:
    return [changed if number == rank else path for number, path in enumerate(files_of(name))]


@pytest.mark.parametrize("drift_ppm", [0.0, DRIFT_PPM])
@pytest.mark.parametrize("name", [MEGATRON, TORCHREC, NANOGPT, LIGHTLLM])
def test_a_clock_that_is_ahead_and_drifts_changes_nothing_but_itself(
    tmp_path: Path, name: str, drift_ppm: float
) -> None:
    source = files_of(name)[RANK]
    moved = clock_moved(source, tmp_path / "moved.json", offset_us=AHEAD_US, drift_ppm=drift_ppm)
    before, after = unchanged(name), answered(with_one(name, moved))
    file = after.files[RANK]
    span_ns = float(np.ptp(before.members.ts_ns))
    unsure_ns = 2 * (file.clock_uncertainty_ns or 0) + drift_ppm * 1e-6 * span_ns
    offset_ns = file.clock_offset_ns - before.files[RANK].clock_offset_ns
    assert abs(offset_ns - AHEAD_US * 1_000) <= unsure_ns
    assert after.seen == before.seen
    assert abs(after.measured_ns - before.measured_ns) <= unsure_ns
    # An offset that is applied brings what was left of the clock's own error with it.
    off_ns = np.abs(after.members.wait_ns - before.members.wait_ns)
    assert np.percentile(off_ns, 95) <= unsure_ns
    sure = before.last_rank(2 * unsure_ns)
    assert sure.items() <= after.last_rank(0).items()


def test_a_drift_that_the_ends_resolve_is_recovered(tmp_path: Path) -> None:
    """LightLLM's ends are known to 0.1 us: 20 ppm move them by 0.6 us over 31 ms."""
    source = files_of(LIGHTLLM)[RANK]
    moved = clock_moved(source, tmp_path / "moved.json", offset_us=AHEAD_US, drift_ppm=DRIFT_PPM)
    after = answered(with_one(LIGHTLLM, moved))
    drifts = {rank: file.clock_drift_ppm for rank, file in after.files.items()}
    assert drifts.pop(RANK) == pytest.approx(DRIFT_PPM, abs=4.0)
    assert not any(drifts.values())


@pytest.mark.parametrize(
    ("name", "number"), [(MEGATRON, 20), (NANOGPT, 20), (TORCHREC, 12), (LIGHTLLM, 60), (DLRM, 3)]
)
def test_a_collective_that_one_rank_lost_leaves_all_others_matched(
    tmp_path: Path, name: str, number: int
) -> None:
    lost = collective_deleted(files_of(name)[RANK], tmp_path / "lost.json", number)
    before, after = unchanged(name), answered(with_one(name, lost))
    whole = max(before.seen)
    expected = {**before.seen, whole: before.seen[whole] - 1}
    expected[whole - 1] = expected.get(whole - 1, 0) + 1
    assert after.seen == expected
    assert after.counted == before.counted
    assert after.measured_ns == before.measured_ns
    assert abs(after.base.trust.strict_error_frac - before.base.trust.strict_error_frac) < 0.01
    assert after.asked.low_ns <= before.asked.step_ns <= after.asked.high_ns


@pytest.mark.parametrize("name", [MEGATRON, NANOGPT])
def test_ranks_are_those_in_the_files_whatever_the_files_are_called(
    tmp_path: Path, name: str
) -> None:
    files = files_of(name)
    called = [tmp_path / files[-1 - number].name for number in range(len(files))]
    for source, target in zip(files, called, strict=True):
        target.write_bytes(source.read_bytes())
    before, after = unchanged(name), answered([tmp_path])
    for mine, theirs in zip(after.members, before.members, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert after.measured_ns == before.measured_ns


@pytest.mark.parametrize(
    ("name", "left"),
    [(name, left) for name in (NANOGPT, LIGHTLLM, DLRM) for left in (7, 4, 1)]
    + [(MEGATRON, 5), (TORCHREC, 3), (TORCHREC, 1)],
)
def test_ranks_that_are_missing_are_told_and_the_range_holds_the_whole_runs_answer(
    name: str, left: int
) -> None:
    """Network twice as fast: the share of the step that it leaves, from fewer and fewer ranks."""
    files = files_of(name)
    whole, part = unchanged(name), answered(files[:left])
    assert list(part.files) == list(range(left))
    assert max(part.seen) == left
    assert AS_RECORDED in part.asked.assumptions
    assert_holds(part.asked, part.base, whole)


@pytest.mark.parametrize(("name", "rank"), [(NANOGPT, 7), (NANOGPT, 3), (DLRM, 1), (DLRM, 3)])
def test_one_rank_alone_says_how_little_it_can_know(name: str, rank: int) -> None:
    """All eight say that the network is worth nothing; a rank that waits must not claim it."""
    whole, part = unchanged(name), answered([files_of(name)[rank]])
    assert part.base.trust.grade >= "C"
    assert_holds(part.asked, part.base, whole)
    if name == DLRM:
        assert part.asked.step_ns > 0.99 * part.measured_ns


def assert_holds(asked: Study, base: Baseline, whole: Answered) -> None:
    """The range holds the share of the step that all ranks together say is left."""
    low, high = asked.low_ns / base.replayed.mean_ns, asked.high_ns / base.replayed.mean_ns
    true = whole.asked.step_ns / whole.base.replayed.mean_ns
    assert low - 0.005 <= true <= high + 0.005
