"""What is asked of a recording, where it goes, and what it says of itself."""

import ast
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from replay.recording import head, notes, place, settings, stopwatch

PACKAGE = Path(settings.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_settings_travel_as_they_are() -> None:
    asked = settings.Settings(
        folder="a b/ü", skip=0, ranks=(0, 8), metadata={"tokens": 1}, counted="forward"
    )
    assert settings.from_json(asked.to_json()) == asked


@pytest.mark.parametrize(
    "wrong", [{"skip": -1}, {"warmup": 0}, {"steps": 0}, {"counted": "epoch"}], ids=str
)
def test_settings_that_record_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"steps|skip"):
        settings.Settings(folder="x", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("skip", "measured"), [(0, 0), (1, 0), (4, 2), (10, 5), (100, 5)])
def test_the_later_half_of_the_skipped_steps_is_measured_at_most_five(
    skip: int, measured: int
) -> None:
    assert settings.Settings(folder="x", skip=skip).measured_before == measured


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (0, 1)),
        ({"RANK": "3", "WORLD_SIZE": "8"}, (3, 8)),
        ({"RANK": "3", "WORLD_SIZE": "8", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, (3, 8)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "16"}, (5, 16)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, (1, 2)),
        ({"RANK": "7"}, (7, 8)),
        ({"RANK": "auto"}, (0, 1)),
    ],
    ids=str,
)
def test_the_launcher_says_the_rank(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: tuple[int, int]
) -> None:
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    for pair in place.LAUNCHERS:
        for name in pair:
            monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert place.place() == place.Place(*expected, is_initialised=False)


def test_no_file_of_a_rank_is_ever_overwritten(tmp_path: Path) -> None:
    first, second = (place.reserve(tmp_path / "new", 3) for _ in range(2))
    assert (first.name, second.name) == ("rank3.json", f"rank3.pid{os.getpid()}.json")
    with pytest.raises(FileExistsError):
        place.reserve(tmp_path / "new", 3)
    (tmp_path / "rank4.json.gz").touch()
    assert place.reserve(tmp_path, 4).name == f"rank4.pid{os.getpid()}.json"


def test_the_head_stands_first_in_the_compressed_file(tmp_path: Path) -> None:
    raw = tmp_path / "rank0.json"
    raw.write_text(' {\n "schemaVersion": 1, "traceEvents": []}', encoding="utf-8")
    path = head.compress(raw, {"steps": 3}, {"distributedInfo": {"rank": 2}})
    whole = json.loads(gzip.decompress(path.read_bytes()))
    assert list(whole.items()) == [
        ("trace_replay", {"steps": 3}),
        ("distributedInfo", {"rank": 2}),
        ("schemaVersion", 1),
        ("traceEvents", []),
    ]
    assert head.read_head(path) == {"steps": 3}
    assert [found.name for found in tmp_path.iterdir()] == ["rank0.json.gz"]


def test_a_file_without_a_head_has_an_empty_one(tmp_path: Path) -> None:
    other = tmp_path / "other.json.gz"
    other.write_bytes(gzip.compress(b'{"traceEvents": []}'))
    assert head.read_head(other) == {}


def test_what_is_no_json_object_is_left_as_it_is(tmp_path: Path) -> None:
    raw = tmp_path / "rank0.json"
    raw.write_text("[1, 2]", encoding="utf-8")
    with pytest.raises(ValueError, match="no JSON object"):
        head.compress(raw, {}, {})
    assert [found.name for found in tmp_path.iterdir()] == ["rank0.json"]


def test_notes_are_read_by_rank_and_a_torn_one_counts(tmp_path: Path) -> None:
    notes.write_note(str(tmp_path), notes.Note(rank=1, steps=4, file="x", reason="y"))
    (tmp_path / "0.json").write_text('{"rank": 0, "st', encoding="utf-8")
    assert notes.read_notes(tmp_path) == [
        notes.Note(),
        notes.Note(rank=1, steps=4, file="x", reason="y"),
    ]


def test_a_mean_step_is_time_over_steps() -> None:
    times = iter([1_000, 61_000])
    settled: list[int] = []
    watch = stopwatch.Stopwatch(settle=lambda: settled.append(1), clock=lambda: next(times))
    watch.start()
    timed = watch.stop(6)
    assert (timed.mean_ns, len(settled)) == (10_000, 2)
    assert timed.together(stopwatch.Timed(2, 100_000)).mean_ns == 20_000


@pytest.mark.parametrize(
    ("before_ns", "after_ns", "expected"),
    [
        (None, None, None),
        (100, None, (5, 100)),
        (100, 108, (10, 104)),
        (100, 120, (5, 100)),
        (9_000, 100, (5, 100)),
    ],
)
def test_what_makes_steps_longer_does_not_count_as_the_step_without_the_profiler(
    before_ns: int | None, after_ns: int | None, expected: tuple[int, int] | None
) -> None:
    before, after = (
        None if mean_ns is None else stopwatch.Timed(5, 5 * mean_ns)
        for mean_ns in (before_ns, after_ns)
    )
    clean = stopwatch.clean_step(before, after)
    assert (clean and (clean.steps, clean.mean_ns)) == expected


def test_a_script_that_imports_the_door_loads_nothing_heavy() -> None:
    code = "import sys, replay.capture; print(*sorted({n.partition('.')[0] for n in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PACKAGE.parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"torch", "numpy", "duckdb", "numba", "ingest", "whatif"} & set(done.stdout.split())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_an_older_python_can_read_the_module(path: Path) -> None:
    """The training may run in another environment, from Python 3.10 on."""
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_training_process_needs_only_torch_and_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }
    assert imported <= sys.stdlib_module_names | {"torch"}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_fact_that_json_has_no_word_for_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="`loss` is"):
        settings.Settings(folder="x", metadata={"loss": value})
