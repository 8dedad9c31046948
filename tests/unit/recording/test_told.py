"""What is told after a recording: its cost, and why there is none."""

from pathlib import Path

import pytest

from replay.recording.head import compress
from replay.recording.launch import Ran
from replay.recording.notes import Note
from replay.recording.settings import Settings
from replay.recording.spoken import costs, unprofiled_option
from replay.recording.story import story

SLOWED = {
    "step_ns": {"before": 400_000_000, "while": 500_000_000, "after": 400_000_000},
    "unprofiled_step_ns": 400_000_000,
}
ASKED = Settings(folder="traces/run")


@pytest.mark.parametrize(
    ("head", "text", "option"),
    [
        (
            SLOWED,
            "a step took 400 ms before, 500 ms while, 400 ms after: +25% with the profiler",
            " --unprofiled-step 400ms",
        ),
        (
            {"step_ns": {"before": 1_234_567, "while": 1_240_000}, "unprofiled_step_ns": 1_234_567},
            "a step took 1.23 ms before, 1.24 ms while: +0% with the profiler",
            "",
        ),
        (
            {
                "step_ns": {"before": 10_000_000, "while": 15_000_000, "after": 20_000_000},
                "unprofiled_step_ns": 10_000_000,
            },
            "a step took 10 ms before, 15 ms while, 20 ms after: +50% with the profiler; "
            "before and after are not alike, so the faster counts and is no option",
            "",
        ),
        (
            {"step_ns": {"before": 1_000_000, "while": 6_000_000}, "unprofiled_step_ns": 1_000_000},
            "a step took 1 ms before, 6 ms while: +500% with the profiler, which is too much for "
            "--unprofiled-step to take out again",
            "",
        ),
        (
            {"step_ns": {"while": 1_000_000}},
            "a step took 1 ms while recording; to compare there is nothing",
            "",
        ),
        (
            {
                "step_ns": {"before": 100_000_000, "while": 4_000_000},
                "unprofiled_step_ns": 100_000_000,
            },
            "a step took 100 ms before, 4 ms while: with the profiler they were faster than "
            "without, so that those without are no measure of it (compilation, allocations, "
            "another user of the machine)",
            "",
        ),
        ({"step_ns": {}}, "no step was measured", ""),
    ],
)
def test_the_cost_is_told_and_becomes_an_option(
    head: dict[str, object], text: str, option: str
) -> None:
    assert (costs([head]), unprofiled_option([head])) == (text, option)


def test_of_several_ranks_the_median_counts() -> None:
    ranks = [{**SLOWED, "unprofiled_step_ns": ns} for ns in (390_000_000, 400_000_000, 900_000_000)]
    assert unprofiled_option(ranks) == " --unprofiled-step 400ms"


def test_the_next_line_to_type_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    raw = tmp_path / "my run" / "rank0.json"
    raw.parent.mkdir()
    raw.write_text("{ }", encoding="utf-8")
    path = compress(raw, SLOWED, {})
    launcher = Note(reason="no optimizer was seen")
    ran = Ran(code=0, notes=(Note(rank=0, steps=23, file=str(path)), launcher), files=(path,))
    told = story(ran, Settings(folder=str(path.parent)))
    assert told.splitlines()[1:] == [
        "recorded   1 file in 'my run', 0.0 MB",
        "cost       a step took 400 ms before, 500 ms while, 400 ms after: +25% with the profiler",
        "next       replay 'my run' --unprofiled-step 400ms",
    ]


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        ((), ["no Python process that imports torch", "python -E"]),
        (
            (Note(reason="too short", advice="Make it longer."), Note(reason="too short")),
            ["nothing recorded: too short\nMake it longer.\n"],
        ),
        ((Note(),), ["killed before it could tell"]),
    ],
)
def test_where_nothing_is_recorded_the_reason_is_told(
    notes: tuple[Note, ...], words: list[str]
) -> None:
    told = story(Ran(code=1, notes=notes, files=()), ASKED)
    assert [word for word in words if word not in told] == []
    assert told.endswith("the program ended with code 1")


def test_ranks_that_recorded_less_are_named_and_counted() -> None:
    short = tuple(Note(rank=rank, steps=14, file="", reason="disk full") for rank in range(5))
    told = story(Ran(code=0, notes=short, files=(Path(__file__),)), ASKED)
    assert told.splitlines()[-4:] == [
        "rank 0: disk full",
        "rank 1: disk full",
        "rank 2: disk full",
        "so did 2 more ranks",
    ]
