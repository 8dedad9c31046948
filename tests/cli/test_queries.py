"""Named queries: each runs on every sample, its header is complete, its values are bound."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from ingest.errors import UsageError
from replay import api
from replay.queries.load import FOLDER, Value, load, loose, names, parse
from replay.run import Run as OpenRun
from tests.cli.calls import ROOT, Run

SAMPLES = ("sample_traces/ddp8_h100", "sample_traces/gloo2_cpu", "sample_traces/tiny/cpu_only.json")
TRACE = SAMPLES[0]
NOT_IN_THE_SAMPLE = {
    "alltoall_balance",
    "comm_unmatched",
    "allocation_cost",
    "kernel_tails",
    "memory_allocations",
    "memory_at_peak",
    "memory_curve",
    "memory_peaks",
    "profiler_overhead",
    "python_times",
    "recomputation",
}
"""It has no rows for these."""


@pytest.fixture(scope="module")
def opened(cache_home: Path) -> Iterator[Mapping[str, OpenRun]]:
    """The samples, each opened once: it is the queries that are tried here, not the opening."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache_home))
        yield {sample: stack.enter_context(api.open_run(ROOT / sample)) for sample in SAMPLES}


def _given(name: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """Those of the values that a query has parameters for."""
    known = {param.name for param in load(name).params}
    return {key: value for key, value in values.items() if key in known}


@pytest.mark.parametrize("name", names())
def test_a_named_query_runs_on_every_sample(opened: Mapping[str, OpenRun], name: str) -> None:
    query = load(name)
    found = {sample: run.rows(query.text, query.values({})) for sample, run in opened.items()}
    assert all(table.names == found[TRACE].names for table in found.values())
    assert bool(found[TRACE].rows) != (name in NOT_IN_THE_SAMPLE)


def test_the_command_line_prints_a_named_query_in_each_form(
    run: Run, opened: Mapping[str, OpenRun]
) -> None:
    query, told = load("steps"), ("sql", TRACE, "--query", "steps", "--param", "rank=3")
    expected = opened[TRACE].rows(query.text, query.values({"rank": 3}))
    as_csv, as_json = run(*told, "--format", "csv"), run(*told, "--json")
    assert (as_csv.code, as_csv.err, as_json.code, as_json.err) == (0, "", 0, "")
    assert len(list(csv.DictReader(io.StringIO(as_csv.out)))) == len(expected.rows) > 0
    rows = json.loads(as_json.out)
    assert [tuple(row) for row in rows] == [expected.names] * len(expected.rows)
    assert [row["step"] for row in rows] == [
        row[expected.names.index("step")] for row in expected.rows
    ]


@pytest.mark.parametrize("name", names())
def test_a_header_says_what_there_is_and_the_text_uses_it(name: str) -> None:
    query = load(name)
    assert query.name == name
    assert query.description.endswith((".", "?", ")"))
    assert {param.name for param in query.params} == set(re.findall(r"\$(\w+)", query.text))
    assert all(param.meaning for param in query.params)


@pytest.mark.parametrize("key", ["ranks", "first_step", "last_step"])
def test_the_part_of_the_run_is_chosen_alike_in_all_queries(key: str) -> None:
    told = {
        str(param) + param.meaning
        for name in names()
        for param in load(name).params
        if param.name == key
    }
    assert len(told) == 1


@pytest.mark.parametrize("name", names())
def test_a_rank_and_a_number_of_rows_can_be_given(opened: Mapping[str, OpenRun], name: str) -> None:
    query, given = load(name), _given(name, {"rank": 3, "top": 2})
    table = opened[TRACE].rows(query.text, query.values(given))
    assert "top" not in given or len(table.rows) <= 2
    if "rank" in given and "rank" in table.names:
        at = table.names.index("rank")
        assert all(row[at] == 3 for row in table.rows)
    assert opened[TRACE].rows(query.written(given)) == table, "as it is with its values written in"


def test_the_straggler_of_the_sample_is_the_late_rank(run: Run) -> None:
    rows = json.loads(run("sql", TRACE, "--query", "late_ranks", "--json").out)
    assert rows[0]["rank"] == 3
    assert rows[0]["wait_caused_ms"] > 10 * rows[1]["wait_caused_ms"] / 2


def test_the_tree_of_a_slice_is_indented_by_its_levels(run: Run) -> None:
    rows = json.loads(run("sql", TRACE, "--query", "op_tree", "--json").out)
    assert [row["level"] for row in rows[:2]] == [0, 1]
    assert all(row["name"].startswith("| " * row["level"]) for row in rows)


def test_the_list_has_all_of_them_uncut(run: Run) -> None:
    assert {row["name"] for row in json.loads(run("queries", "--json").out)} == set(names())
    text = run("queries").out
    assert all(load(name).description in text for name in names())


def test_one_of_them_prints_as_its_file(run: Run) -> None:
    assert run("queries", "steps").out == (FOLDER / "steps.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--query", "kernel_time"], ("no query `kernel_time`", "kernel_times")),
        (["--query", "steps", "--param", "rnak=0"], ("no parameter `rnak`", "rank")),
        (["--query", "steps", "--param", "rank=first"], ("`rank=first` is no BIGINT",)),
        (["--query", "steps", "--param", "rank"], ("has no value",)),
        (["--query", "steps", "SELECT 1"], ("one query is wanted",)),
    ],
)
def test_a_wrong_call_is_told_with_the_nearest_names(
    run: Run, arguments: list[str], words: tuple[str, ...]
) -> None:
    outcome = run("sql", TRACE, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert all(word in outcome.err for word in words)


def test_a_value_is_bound_and_never_part_of_the_text(run: Run) -> None:
    evil = "x' OR '1'='1"
    rows = run("sql", TRACE, "--query", "kernel_times", "--param", f"class={evil}", "--json").out
    assert json.loads(rows) == []


def test_a_header_of_ones_own_gives_types_and_defaults() -> None:
    query = parse(
        "-- param a DOUBLE 1 Meaning\n--     goes on.\n-- param b VARCHAR 'x y' B.\nSELECT 1",
        name="q",
    )
    assert query.values({"a": "2"}) == {"a": 2.0, "b": "x y"}
    assert query.params[0].meaning == "Meaning goes on."
    with pytest.raises(UsageError, match="malformed"):
        parse("-- param a\nSELECT 1", name="q")
    with pytest.raises(UsageError, match="is no FLOAT"):
        parse("-- param a FLOAT 1 x\nSELECT 1", name="q")


def test_a_value_without_a_type_is_what_it_reads_as() -> None:
    assert [loose(text) for text in ("1", "1.5", "true", "null", "a")] == [1, 1.5, True, None, "a"]


def test_written_values_cannot_leave_their_place() -> None:
    query = parse("-- param who VARCHAR NULL Whose.\nSELECT $who", name="own")
    assert query.written({"who": "a' OR $who --"}) == "SELECT 'a'' OR $who --'"
    assert query.written({}) == "SELECT NULL::VARCHAR"
