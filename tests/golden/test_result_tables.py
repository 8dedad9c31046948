"""What a replay puts into the store: the numbers of the graph, once, and without a half state."""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.errors import TraceError
from ingest.pipeline import IngestOptions
from ingest.store import Store
from replay import api
from replay import run as run_module
from replay.engine.run import replay
from replay.engine.schedule import Schedule
from replay.graph.arrays import TaskGraph
from replay.graph.build import build
from replay.results import tables as tables_module
from replay.results.critical_path import (
    critical_path,
    cut_at_steps,
    pieces_of,
    shares_by_class,
    shares_by_collective,
    shares_by_module,
    shares_by_phase,
    shares_by_rank,
)
from replay.results.idle import device_idle, idle_by_cause, stream_idle
from replay.results.metrics import step_times
from replay.results.tables import results_version
from replay.run import Run

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_traces"
REAL = ROOT.parent / "shared" / "traces" / "v100x4_torchrec_fp32"
SETS = (SAMPLES / "ddp8_h100", SAMPLES / "gloo2_cpu", SAMPLES / "tiny" / "graph_launch.json", REAL)
Columns = Mapping[str, Mapping[str, object]]
SHARES = {
    "class": shares_by_class,
    "rank": shares_by_rank,
    "collective": shares_by_collective,
    "module": shares_by_module,
    "phase": shares_by_phase,
}


@dataclass(frozen=True)
class Both:
    """The same run as tables and as a graph."""

    run: Run
    graph: TaskGraph
    schedule: Schedule

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return list(self.run.rows(query).rows)

    def column(self, query: str) -> list[Any]:
        return [row[0] for row in self.rows(query)]


@pytest.fixture(scope="module", params=SETS, ids=lambda path: path.stem)
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    if not request.param.exists():
        pytest.skip(f"{request.param.name} is not here")
    options = IngestOptions(cache_dir=tmp_path_factory.mktemp("stores"))
    with api.open_run(request.param, options=options) as run:
        graph = build(run._opened.store).graph
        yield Both(run, graph, replay(graph))


def test_the_path_of_each_step_adds_up_to_the_step(both: Both) -> None:
    times = step_times(both.graph, both.schedule)
    assert both.rows(
        "SELECT step, SUM(total_dur)::BIGINT FROM critical_path GROUP BY step ORDER BY step"
    ) == list(zip(both.graph.steps, times.per_step_ns.tolist(), strict=True))


def test_pieces_of_the_path_follow_one_another(both: Both) -> None:
    holes = "SELECT LEAD(ts) OVER (ORDER BY position) - ts - total_dur AS hole FROM critical_path"
    assert set(both.column(holes)) <= {0, None}


@pytest.mark.parametrize("dimension", SHARES)
def test_shares_of_the_path_are_those_of_the_check(both: Both, dimension: str) -> None:
    graph = both.graph
    pieces = cut_at_steps(
        critical_path(graph, both.schedule), step_times(graph, both.schedule).boundary_ns
    )
    for ordinal, step in enumerate(graph.steps):
        shares = SHARES[dimension](graph, pieces_of(pieces, pieces.step == ordinal))
        told = both.run.rows(
            "SELECT part, dur FROM critical_summary WHERE step = $step AND dimension = $of",
            {"step": step, "of": dimension},
        )
        assert dict(told.rows) == {share.label: share.total_ns for share in shares}


def test_tasks_and_edges_are_those_of_the_graph(both: Both) -> None:
    graph = both.graph
    assert both.rows("SELECT ts, dur FROM task ORDER BY task_id") == list(
        zip(graph.tasks.ts_ns.tolist(), graph.tasks.dur_ns.tolist(), strict=True)
    )
    names = [graph.names[name] if name >= 0 else None for name in graph.tasks.name]
    assert both.column("SELECT name FROM task ORDER BY task_id") == names
    counted = both.rows("SELECT COUNT(*), SUM(lag_ns)::BIGINT, SUM(binding::INT)::BIGINT FROM edge")
    binding = int((both.schedule.blocked_by >= 0).sum())
    assert counted == [(len(graph.edges.src), int(graph.edges.lag_ns.sum()), binding)]


def test_a_member_of_a_collective_knows_its_operation(both: Both) -> None:
    assert both.column(
        "SELECT COUNT(*) FROM collective_rank AS m JOIN task AS t ON t.slice_id = m.kernel_id"
        " WHERE t.kind IN ('arrive', 'transfer') AND t.coll_id <> m.coll_id"
    ) == [0]
    members = "SELECT COUNT(*) FROM task WHERE kind IN ('arrive', 'transfer') AND coll_id IS NULL"
    assert both.column(members) == [0]


def test_the_replay_is_the_recording_and_the_path_has_no_slack(both: Both) -> None:
    assert both.column("SELECT ts FROM replay_slice ORDER BY task_id") == (
        both.schedule.start_ns.tolist()
    )
    slacks = "SELECT DISTINCT slack FROM replay_slice WHERE critical"
    assert both.column(slacks) == [0]
    assert both.column("SELECT MIN(step_slack) FROM replay_slice") == [0]


def test_idle_is_that_of_the_check_and_its_parts_add_up(both: Both) -> None:
    for table, idle in (
        ("stream_idle", stream_idle(both.graph, both.schedule)),
        ("device_idle", device_idle(both.graph, both.schedule)),
    ):
        by_cause = f"SELECT cause, SUM(dur)::BIGINT FROM {table} GROUP BY cause"
        assert dict(both.rows(by_cause)) == idle_by_cause(idle)
        assert both.column(
            f"SELECT COUNT(*) FROM {table} WHERE cause NOT IN ('short', 'no_more_work') AND dur <> "
            "host_dur + sync_dur + event_dur + comm_dur + launch_dur + unknown_dur"
        ) == [0]


def test_a_stream_is_busy_or_idle_at_every_moment_of_a_step(both: Both) -> None:
    """Device rows come from the recording, gaps from the replay."""
    filled = """
        WITH busy AS (
            SELECT k.rank, COALESCE(k.device, 0) AS device, COALESCE(k.stream, -1) AS stream,
                w.step, GREATEST(k.ts, w.ts) AS ts, LEAST(k.ts + k.dur, w.ts + w.dur) AS end_ts
            FROM kernel AS k JOIN step_window AS w ON k.ts < w.ts + w.dur AND k.ts + k.dur > w.ts
            UNION ALL
            SELECT rank, device, COALESCE(stream, -1), step, ts, ts + dur
            FROM stream_idle WHERE cause <> 'short'
            UNION ALL
            SELECT rank, device, COALESCE(stream, -1), step, NULL, dur
            FROM stream_idle WHERE cause = 'short'
        )
        SELECT SUM(CASE WHEN ts IS NULL THEN end_ts ELSE end_ts - ts END)::BIGINT AS filled
        FROM busy GROUP BY rank, device, stream, step
    """
    lengths = set(both.column("SELECT dur FROM step_window"))
    if both.rows("SELECT 1 FROM kernel LIMIT 1"):
        assert set(both.column(filled)) == lengths


# When they are made.


@pytest.fixture
def options(tmp_path: Path) -> IngestOptions:
    return IngestOptions(cache_dir=tmp_path / "cache")


def _stored(options: IngestOptions) -> Path:
    with api.open_run(SAMPLES / "gloo2_cpu", options=options) as run:
        return run.path


def _has_results(path: Path) -> bool:
    with Store.open(path) as store:
        return store.has_results(results_version())


def _n_tasks(path: Path, options: IngestOptions) -> int:
    with api.open_run(path, options=options) as run:
        return int(run.rows("SELECT COUNT(*) FROM task").rows[0][0])


def test_the_first_query_that_asks_makes_them_and_the_next_finds_them(
    options: IngestOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _stored(options)
    with api.open_run(path, options=options) as run:
        run.rows("SELECT COUNT(*) FROM slice")
    assert not _has_results(path)
    n_tasks = _n_tasks(path, options)
    assert n_tasks > 0
    assert _has_results(path)
    monkeypatch.setattr(run_module, "fill_results", lambda *_: pytest.fail("made twice"))
    assert _n_tasks(path, options) == n_tasks
    assert [file.name for file in path.parent.iterdir() if file.suffix != ".lock"] == [path.name]


@pytest.mark.parametrize("way", ["table", "sql", "query", "describe"])
def test_every_way_of_asking_makes_them(options: IngestOptions, way: str) -> None:
    path = _stored(options)
    with api.open_run(path, options=options) as run:
        if way == "table":
            assert len(run.table("critical_path").collect())
        elif way == "sql":
            assert len(run.sql("FROM critical_path"))
        elif way == "query":
            assert len(run.query("critical_by_rank"))
        else:
            counts = {row[0]: row[1] for row in run.describe(with_counts=True).rows}
            assert counts["critical_path"]
    assert _has_results(path)


def test_a_graph_that_is_there_makes_the_same_tables_and_a_report_hands_it_over(
    options: IngestOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = ("task", "edge", "replay_slice", "critical_path", "idle")
    asked = [f"SELECT * FROM store.{table} ORDER BY ALL" for table in tables]
    with api.open_run(_stored(options), options=options) as run:
        built = [run.rows(sql).rows for sql in asked]
    monkeypatch.setattr(tables_module, "build", lambda _: pytest.fail("built twice"))
    other = IngestOptions(cache_dir=tmp_path / "other")
    api.report([SAMPLES / "gloo2_cpu"], options=other)
    path = _stored(other)
    assert _has_results(path)
    with api.open_run(path, options=other) as run:
        assert [run.rows(sql).rows for sql in asked] == built
    part = IngestOptions(cache_dir=tmp_path / "part")
    monkeypatch.undo()
    api.report([SAMPLES / "gloo2_cpu"], window=api.Window(ranks=(0,)), options=part)
    with api.open_run(_stored(part), options=part) as run:
        assert [run.rows(sql).rows for sql in asked] == built


def test_results_of_another_version_are_made_anew(
    options: IngestOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _stored(options)
    n_tasks = _n_tasks(path, options)
    for module in (run_module, tables_module):
        monkeypatch.setattr(module, "results_version", lambda: "another")
    with Store.open(path) as store:
        assert not store.has_results("another")
    assert _n_tasks(path, options) == n_tasks
    with Store.open(path) as store:
        assert store.has_results("another")


def test_a_reader_of_the_same_store_goes_on(options: IngestOptions) -> None:
    path = _stored(options)
    with api.open_run(path, options=options) as other:
        before = other.rows("SELECT COUNT(*) FROM slice").rows
        n_tasks = _n_tasks(path, options)
        assert other.rows("SELECT COUNT(*) FROM slice").rows == before
        assert other.rows("SELECT COUNT(*) FROM task").rows == ((n_tasks,),)


def test_a_store_that_cannot_be_replaced_stays_and_the_session_has_a_copy(
    options: IngestOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _stored(options)
    before = path.read_bytes()
    filled = Store._filled

    def only_elsewhere(self: Store, folder: Path, tables: Columns, version: str) -> Path:
        if folder == path.parent:
            raise PermissionError(13, "Permission denied")
        return filled(self, folder, tables, version)

    monkeypatch.setattr(Store, "_filled", only_elsewhere)
    with api.open_run(path, options=options) as run:
        assert run.rows("SELECT COUNT(*) FROM task").rows[0][0] > 0
        assert len(run.table("edge").collect())
    assert path.read_bytes() == before


def test_another_store_that_came_to_its_place_is_not_overwritten(
    options: IngestOptions, tmp_path: Path
) -> None:
    path = _stored(options)
    with api.open_run(path, options=options) as run:
        newer = tmp_path / "newer.duckdb"
        shutil.copyfile(path, newer)
        newer.replace(path)
        content = path.read_bytes()
        assert run.rows("SELECT COUNT(*) FROM task").rows[0][0] > 0
        assert path.read_bytes() == content


def test_an_interrupt_leaves_the_store_as_it_was(
    options: IngestOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _stored(options)
    before, there = path.read_bytes(), set(path.parent.iterdir())
    filled = Store._insert_columns

    def stopped(self: Store, table: str, columns: Mapping[str, object]) -> None:
        if table == "replay_slice":
            raise KeyboardInterrupt
        filled(self, table, columns)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_insert_columns", stopped)
        with pytest.raises(KeyboardInterrupt):
            _n_tasks(path, options)
    assert path.read_bytes() == before
    assert set(path.parent.iterdir()) == there
    assert _n_tasks(path, options) > 0


def test_a_run_that_is_not_kept_has_them_too() -> None:
    with api.open_run(SAMPLES / "gloo2_cpu", options=IngestOptions(cache=False)) as run:
        assert not run.path.exists()
        assert run.rows("SELECT COUNT(*) FROM critical_path").rows[0][0] > 0


def test_a_run_without_anything_to_replay_says_so_and_answers_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1}]}))
    with api.open_run(path, options=IngestOptions(cache=False)) as run:
        with pytest.raises(TraceError, match="nothing to replay"):
            run.rows("FROM task")
        assert run.rows("SELECT COUNT(*) FROM slice").rows == ((0,),)
        counts = {row[0]: row[1] for row in run.describe(with_counts=True).rows}
        assert counts["task"] == 0


def test_numbers_of_tasks_are_dense(both: Both) -> None:
    ids = np.array(both.column("SELECT task_id FROM task ORDER BY task_id"))
    assert (ids == np.arange(both.graph.n_tasks)).all()
