"""Queries that sections of a report ask: each once, whoever asks."""

from pathlib import Path

import pytest

from ingest.pipeline import IngestOptions
from ingest.store import Store
from replay import api
from replay.asking import Asking

ROOT = Path(__file__).resolve().parents[3]
TRACE = ROOT / "sample_traces" / "tiny" / "cpu_only.json"


def test_the_same_question_is_asked_once_and_another_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    page = Store.page

    def counted(store: Store, sql: str, *args: object, **more: object) -> object:
        asked.append(sql)
        return page(store, sql, *args, **more)  # type: ignore[arg-type]

    with api.open_run(TRACE, options=IngestOptions(cache=False)) as run:
        asking = Asking(run, trace="trace", window={"ranks": None})
        monkeypatch.setattr(Store, "page", counted)
        first = asking("op_times", top=2)
        assert asking("op_times", top=2) == first
        assert len(asked) == 1
        assert len(first.rows) == 2
        assert len(asking("op_times", top=1).rows) == 1
        assert asking("op_times", top=2, limit=1).left_out == 1
        assert len(asked) == 3
