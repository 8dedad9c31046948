"""Which queries ask for tables of the replay."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.store import Store

ASKING = (
    "FROM task",
    'SELECT * FROM "TASK"',
    "SELECT max(ts) FROM main.task",
    "SELECT * FROM store.task AS t JOIN edge AS e USING (a)",
    "SELECT * FROM task WHERE ts > $since",
    "SELECT (SELECT max(slack) FROM replay_slice)",
    "FROM slice WHERE id IN (SELECT slice_id FROM critical_path)",
    "FROM interval_union('critical_path')",
    "PIVOT critical_path ON class IN ('gemm') USING sum(dur)",
    "WITH task AS (FROM task) FROM task",
    "WITH task AS (FROM store.task) FROM task",
    "WITH a AS (FROM slice), b AS (FROM edge) FROM a, b",
    "DESCRIBE task",
    "SUMMARIZE device_idle",
    "EXPLAIN FROM critical_summary",
)
OTHER = (
    "FROM kernel",
    "SELECT task FROM slice",
    "SELECT 'task' FROM range(3) -- FROM task",
    "SELECT 1 AS edge",
    "WITH edge AS (SELECT 1 AS a) FROM edge",
    "WITH edge AS (FROM slice), b AS (FROM edge) FROM b",
    "SHOW TABLES",
    "SELEC task FROM task",
)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store.create(Path(":memory:")) as made:
        made.make_views()
        yield made


@pytest.mark.parametrize("query", ASKING)
def test_a_query_on_a_table_of_the_replay_is_told(store: Store, query: str) -> None:
    assert store.asks_for_results(query)


@pytest.mark.parametrize("query", OTHER)
def test_the_same_word_elsewhere_is_no_table(store: Store, query: str) -> None:
    assert not store.asks_for_results(query)
