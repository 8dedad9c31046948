"""Named queries: each runs on every sample, its header is complete, its values are bound."""

import csv
import io
import json
import re

import pytest

from ingest.errors import UsageError
from replay.queries.load import FOLDER, load, loose, names, parse
from tests.cli.calls import Run

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


@pytest.mark.parametrize("name", names())
def test_a_named_query_runs_on_every_sample(run: Run, name: str) -> None:
    for sample in SAMPLES:
        outcome = run("sql", sample, "--query", name, "--format", "csv")
        assert (outcome.code, outcome.err) == (0, "")
    rows = list(
        csv.DictReader(io.StringIO(run("sql", TRACE, "--query", name, "--format", "csv").out))
    )
    assert bool(rows) != (name in NOT_IN_THE_SAMPLE)


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
def test_a_rank_and_a_number_of_rows_can_be_given(run: Run, name: str) -> None:
    known = {param.name for param in load(name).params}
    given = [
        ("--param", f"{key}={value}")
        for key, value in {"rank": 3, "top": 2}.items()
        if key in known
    ]
    outcome = run(
        "sql", TRACE, "--query", name, *(word for pair in given for word in pair), "--json"
    )
    rows = json.loads(outcome.out)
    assert outcome.code == 0
    assert "top" not in known or len(rows) <= 2
    assert "rank" not in known or all(row.get("rank", 3) == 3 for row in rows)


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


@pytest.mark.parametrize("name", names())
def test_a_query_with_its_values_written_in_gives_the_same_rows(run: Run, name: str) -> None:
    query = load(name)
    given = {key: value for key, value in {"rank": 3, "top": 2}.items() if key in query.values({})}
    told = [word for key, value in given.items() for word in ("--param", f"{key}={value}")]
    asked = run("sql", TRACE, "--query", name, *told, "--json")
    written = run("sql", TRACE, query.written(given), "--json")
    assert (written.code, written.err) == (0, "")
    assert written.out == asked.out


def test_written_values_cannot_leave_their_place() -> None:
    query = parse("-- param who VARCHAR NULL Whose.\nSELECT $who", name="own")
    assert query.written({"who": "a' OR $who --"}) == "SELECT 'a'' OR $who --'"
    assert query.written({}) == "SELECT NULL::VARCHAR"
