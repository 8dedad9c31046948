"""What holds in every store, shown on every sample trace."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.pipeline import Run
from tests.reading import reading

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
RUNS = sorted(
    {
        path.parent if path.name.startswith("rank") else path
        for pattern in ("**/*.json", "**/*.json.gz")
        for path in SAMPLES.glob(pattern)
    }
)

NEVER = {
    "a row holds itself or what comes before it": "FROM slice WHERE parent_id >= id",
    "a row is not one deeper than its parent": """
        FROM slice s JOIN slice p ON p.id = s.parent_id WHERE s.depth != p.depth + 1
    """,
    "a row outlives its parent by more than 1 us, or lies on another thread": """
        FROM slice s JOIN slice p ON p.id = s.parent_id
        WHERE s.ts < p.ts OR s.ts + s.dur > p.ts + p.dur + 1000 OR s.utid != p.utid
    """,
    "a time is below zero": "FROM slice WHERE ts < 0 OR dur < 0 OR self_dur NOT BETWEEN 0 AND dur",
    "device work starts before its call": """
        FROM kernel k JOIN runtime r ON r.id = k.runtime_id WHERE k.ts < r.ts
    """,
    "device work has no row, or another time there": """
        FROM kernel k LEFT JOIN slice s USING (id)
        WHERE (s.ts, s.dur, s.rank) IS DISTINCT FROM (k.ts, k.dur, k.rank)
    """,
    "waiting and moving are not all of a member": """
        FROM collective_rank
        WHERE wait_dur + transfer_dur != dur OR least(wait_dur, transfer_dur) < 0
            OR outside_wait_dur NOT BETWEEN 0 AND wait_dur
    """,
    "a member waits for itself or for one of another operation": """
        FROM (SELECT *, unnest(waits_for) AS other_id FROM collective_rank) AS m
        JOIN collective_rank AS o ON o.kernel_id = m.other_id
        WHERE o.coll_id != m.coll_id OR o.kernel_id = m.kernel_id
    """,
    "a member waits for a row that is no member": """
        FROM (SELECT unnest(waits_for) AS other_id FROM collective_rank) AS m
        WHERE other_id IS NOT NULL
            AND other_id NOT IN (SELECT kernel_id FROM collective_rank)
    """,
    "members are counted wrong": """
        FROM collective c JOIN (
            SELECT coll_id, count(*) AS n, max(ts) AS last FROM collective_rank GROUP BY coll_id
        ) r USING (coll_id)
        WHERE n != n_seen OR n_seen > n_expected OR last != last_arrival
    """,
    "a transfer is outside its bounds": """
        FROM collective WHERE transfer_dur NOT BETWEEN transfer_low_dur AND transfer_high_dur
    """,
    "a call has another number of device rows than it says": """
        FROM runtime r LEFT JOIN (
            SELECT runtime_id, count(*) AS n FROM kernel GROUP BY runtime_id
        ) k ON k.runtime_id = r.id
        WHERE r.n_gpu_events != coalesce(k.n, 0)
    """,
}


@pytest.fixture(scope="module", params=RUNS, ids=lambda path: path.relative_to(SAMPLES).as_posix())
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    with reading(request.param) as opened:
        yield opened


@pytest.mark.parametrize("which", NEVER)
def test_it_never_happens_that(run: Run, which: str) -> None:
    assert run.store.rows(f"SELECT * {NEVER[which]} LIMIT 5") == []


def test_ids_are_dense_and_in_the_order_of_file_and_time(run: Run) -> None:
    rows = run.store.rows("SELECT id, trace_id, rank FROM slice ORDER BY trace_id, id")
    assert [row[0] for row in rows] == list(range(len(rows)))
    assert [row[2] for row in rows] == sorted(row[2] for row in rows)
