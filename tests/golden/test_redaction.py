"""A store that is given away holds no host name, user name or path, and the same run."""

import json
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.errors import UsageError
from ingest.lexicon.shapes import filled
from ingest.pipeline import IngestOptions, open_run
from ingest.redaction import templated
from tests.reading import document, host, kernel, write

SECRETS = ("alice", "secretproj", "node17.corp.example", "10.20.30.40", "hunter2")
HEAD = (
    '"host_name": "node17.corp.example", "traceName": "/home/alice/secretproj/rank0.json", '
    '"distributedInfo": {"rank": 0, "world_size": 1, "master": "10.20.30.40:29500"}, '
    '"env": {"USER": "alice", "PASSWORD": "hunter2"}'
)
EVENTS = (
    host("python_function", "/home/alice/secretproj/train.py(12): main", 0, 100),
    host("cpu_op", "aten::mm", 1, 5, **{"Input Dims": [[2, 3], [3, 4]], "External id": 7}),
    host(
        "cpu_op",
        "fused",
        10,
        5,
        **{
            "kernel_file": "/home/alice/secretproj/k12.py",
            "peer": "10.20.30.40",
            "Concrete Inputs": ["/home/alice/secretproj/x.bin", "1"],
        },
    ),
    kernel("void gemm<128, 64>(float*)", 20, 5, correlation=3, grid=[1, 2, 3]),
    '{"ph": "M", "name": "process_name", "pid": 7, "tid": 0,'
    ' "args": {"name": "python /home/alice/secretproj/train.py"}}',
    '{"ph": "C", "name": "rss", "pid": 7, "ts": 3, "args": {"node17.corp.example": 5}}',
    '{"ph": "X", "cat": "cpu_op", "name": "bad \\q /home/alice/secretproj", "pid": 7, "tid": 70,'
    ' "ts": 60, "dur": 1}',
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    folder = tmp_path / "alice" / "secretproj"
    folder.mkdir(parents=True)
    return write(folder / "rank0.json", document(*EVENTS, head=HEAD))


def _store(trace: Path, target: Path, *, redact: bool) -> Path:
    with open_run([trace], options=IngestOptions(output=target, redact=redact)):
        return target


def _everything(store: Path) -> str:
    with duckdb.connect(str(store), read_only=True) as connection:
        tables = connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() UNION ALL"
            " SELECT schema_name, view_name FROM duckdb_views()"
            " WHERE schema_name = 'main' AND NOT internal"
        ).fetchall()
        return "\n".join(
            str(connection.execute(f"SELECT * FROM {schema}.{table}").fetchall())
            for schema, table in tables
        )


def test_no_private_word_is_in_any_table(trace: Path, tmp_path: Path) -> None:
    told = _everything(_store(trace, tmp_path / "run.duckdb", redact=True))
    assert [secret for secret in SECRETS if secret in told] == []


def test_nor_anywhere_in_the_file(trace: Path, tmp_path: Path) -> None:
    stored = _store(trace, tmp_path / "run.duckdb", redact=True).read_bytes()
    assert [secret for secret in SECRETS if secret.encode() in stored] == []


def test_without_redaction_all_of_them_are_there(trace: Path, tmp_path: Path) -> None:
    told = _everything(_store(trace, tmp_path / "run.duckdb", redact=False))
    assert [secret for secret in SECRETS if secret not in told] == []


def test_a_store_cannot_be_redacted_after_the_fact(trace: Path, tmp_path: Path) -> None:
    store = _store(trace, tmp_path / "run.duckdb", redact=False)
    with pytest.raises(UsageError, match="is a store already"):
        _store(store, tmp_path / "other.duckdb", redact=True)
    assert not (tmp_path / "other.duckdb").exists()


def test_what_is_not_private_stays(trace: Path, tmp_path: Path) -> None:
    stores = [_store(trace, tmp_path / f"{on}.duckdb", redact=on) for on in (False, True)]
    queries = (
        "SELECT ts, dur, cat, rank, correlation, external_id FROM slice ORDER BY id",
        "SELECT short_name, class, grid FROM kernel",
        "SELECT input_dims FROM cpu_op ORDER BY id",
        "SELECT a.args FROM slice_args AS a JOIN slice AS s USING (id)"
        " WHERE s.name IN ('aten::mm', 'void gemm<128, 64>(float*)') ORDER BY id",
    )
    for query in queries:
        plain, private = (duckdb.connect(str(store), read_only=True) for store in stores)
        with plain, private:
            assert plain.execute(query).fetchall() == private.execute(query).fetchall()


def test_arguments_stay_json_with_the_same_keys(trace: Path, tmp_path: Path) -> None:
    store = _store(trace, tmp_path / "run.duckdb", redact=True)
    with duckdb.connect(str(store), read_only=True) as connection:
        query = "SELECT a.args FROM slice_args AS a JOIN slice AS s USING (id) WHERE name = 'fused'"
        ((text,),) = connection.execute(query).fetchall()
    assert set(json.loads(text)) == {"kernel_file", "peer", "Concrete Inputs"}


@given(st.text(alphabet='0123456789ab\\u"-. ', max_size=60))
def test_a_shape_and_its_numbers_give_back_the_text(text: str) -> None:
    shape, numbers = templated(text.encode())
    assert filled(shape, numbers) == text.encode()
