"""Programs of new ranks: which passes run where, in which order."""

import numpy as np
import pytest
from msgspec.structs import replace

from tests.layered import Layered, ask
from whatif.description.labels import Part, Pass
from whatif.models.shape import Degrees, Recompute, RunShape, Schedule
from whatif.tape.segments import OUTSIDE, RECEIVE, SEND, Program, Tape
from whatif.transforms.relayout.columns import columns_of
from whatif.transforms.relayout.programs import programs_of
from whatif.transforms.relayout.structure import layer_sources, micro_batch_source

Row = tuple[str, str, int, int]


def _programs(run: Layered, **changes: object) -> tuple[Tape, list[Program], tuple[str, ...]]:
    tape = run.tape()
    programs, told = programs_of(tape, ask(tape, run.shape, _target(run.shape, **changes)))
    return tape, list(programs), told


def _target(shape: RunShape, **changes: object) -> RunShape:
    for part in ("model", "degrees", "batch", "options"):
        names = getattr(shape, part).__struct_fields__
        mine = {name: value for name, value in changes.items() if name in names}
        shape = replace(shape, **{part: replace(getattr(shape, part), **mine)})
    return shape


def _rows(tape: Tape, program: Program) -> list[Row]:
    """Part, direction, layer and micro-batch of each instance but messages."""
    rows = []
    for number, segment in enumerate(program.segment.tolist()):
        if segment == OUTSIDE:
            continue
        direction = tape.segments.direction if program.direction is None else program.direction
        at = segment if program.direction is None else number
        rows.append(
            (
                Part(int(tape.segments.part[segment])).name,
                Pass(int(direction[at])).name,
                int(program.layer[number]),
                int(program.micro_batch[number]),
            )
        )
    return rows


def _passes(tape: Tape, program: Program, part: str = "LAYER") -> list[tuple[str, int, int]]:
    return [row[1:] for row in _rows(tape, program) if row[0] == part]


def test_two_stages_run_1f1b_with_half_of_the_layers_each() -> None:
    tape, (first, last), _ = _programs(Layered(layers=2), pp=2, micro_batches=3)
    assert (first.rank, last.rank) == (0, 1)
    assert _passes(tape, first) == [
        ("FORWARD", 0, 0),
        ("FORWARD", 0, 1),
        ("BACKWARD", 0, 0),
        ("FORWARD", 0, 2),
        ("BACKWARD", 0, 1),
        ("BACKWARD", 0, 2),
    ]
    assert _passes(tape, last) == [
        ("FORWARD", 1, 0),
        ("BACKWARD", 1, 0),
        ("FORWARD", 1, 1),
        ("BACKWARD", 1, 1),
        ("FORWARD", 1, 2),
        ("BACKWARD", 1, 2),
    ]
    assert len(_passes(tape, first, "EMBEDDING")) == 3
    assert len(_passes(tape, last, "HEAD")) == 6
    assert _passes(tape, first, "HEAD") == _passes(tape, last, "EMBEDDING") == []
    for program in (first, last):
        assert len(_passes(tape, program, "ENTRY")) == len(_passes(tape, program, "OPTIMIZER")) == 1


def test_every_message_is_sent_by_one_stage_and_received_by_the_next() -> None:
    run = Layered(layers=8, ranks=2, steps=2)
    _, programs, told = _programs(run, pp=4, micro_batches=4, virtual_stages=2)
    ends: dict[int, dict[int, tuple[int, int, int]]] = {}
    for program in programs:
        assert program.p2p is not None
        columns = (program.p2p.kind, program.p2p.peer, program.p2p.key, program.p2p.size_bytes)
        for kind, peer, key, size in zip(*(c.tolist() for c in columns), strict=True):
            if kind:
                assert kind not in ends.setdefault(key, {})
                ends[key][kind] = (program.rank, peer, size)
    # Two pipelines and steps, four micro-batches over seven borders between chunks, both ways.
    assert len(ends) == 2 * 2 * 4 * 7 * 2
    for both in ends.values():
        (sender, to, size), (receiver, source, same) = both[SEND], both[RECEIVE]
        assert (sender, receiver) == (source, to)
        assert size == same == 1024 * 1024 * 2
        assert (receiver - sender) % 2 == 0
    assert any("bubble" in line for line in told)


def test_ranks_of_a_stage_are_neighbours_and_stages_lie_far_apart() -> None:
    _, programs, _ = _programs(Layered(ranks=4), pp=2)
    assert sorted((p.rank, p.stage, p.like) for p in programs) == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 0, 2),
        (3, 0, 3),
        (4, 1, 0),
        (5, 1, 1),
        (6, 1, 2),
        (7, 1, 3),
    ]


def test_more_micro_batches_take_turns_and_the_last_stands_for_the_last() -> None:
    assert [micro_batch_source(n, 6, 3) for n in range(6)] == [0, 1, 0, 1, 0, 2]
    assert [micro_batch_source(n, 2, 4) for n in range(2)] == [0, 3]
    assert [micro_batch_source(n, 3, 1) for n in range(3)] == [0, 0, 0]
    run = Layered(layers=1, micro_batches=2)
    tape, (program,), told = _programs(run, micro_batches=4)
    assert _passes(tape, program) == [
        (name, 0, micro) for micro in range(4) for name in ("FORWARD", "BACKWARD")
    ]
    recorded = tape.segments.micro_batch[program.segment]
    assert recorded[program.micro_batch == 3].max() == 1
    assert set(recorded[(program.micro_batch >= 0) & (program.micro_batch < 3)]) == {0}
    assert any("copies" in line for line in told)


def test_layers_come_and_go_in_the_middle() -> None:
    assert layer_sources(range(4), 4) == (0, 1, 2, 3)
    assert layer_sources(range(4), 7) == (0, 1, 2, 1, 2, 1, 3)
    assert layer_sources(range(4), 2) == (0, 3)
    assert layer_sources(range(1), 3) == (0, 0, 0)
    assert layer_sources(range(2), 4) == (0, 1, 1, 1)
    assert layer_sources(range(5), 7, dense=2) == (0, 1, 2, 3, 2, 3, 4)
    tape, (program,), _ = _programs(Layered(layers=3), layers=5)
    forwards = [layer for name, layer, _ in _passes(tape, program) if name == "FORWARD"]
    backwards = [layer for name, layer, _ in _passes(tape, program) if name == "BACKWARD"]
    assert forwards == [0, 1, 2, 3, 4]
    assert backwards == [4, 3, 2, 1, 0]


def test_full_recomputation_runs_each_forward_again_before_its_backward() -> None:
    tape, (program,), _ = _programs(Layered(layers=2), recompute=Recompute.FULL)
    assert _passes(tape, program)[2:] == [
        ("RECOMPUTE", 1, 0),
        ("BACKWARD", 1, 0),
        ("RECOMPUTE", 0, 0),
        ("BACKWARD", 0, 0),
    ]
    again = _programs(Layered(layers=2), recompute=Recompute.FULL, recompute_layers=1)
    assert [row for row in _passes(again[0], again[1][0]) if row[0] == "RECOMPUTE"] == [
        ("RECOMPUTE", 0, 0)
    ]


def test_zero_bubble_splits_what_was_recorded_as_one_backward() -> None:
    tape, programs, _ = _programs(
        Layered(layers=2), pp=2, micro_batches=2, schedule=Schedule.ZERO_BUBBLE
    )
    assert [row[0] for row in _passes(tape, programs[1])] == [
        "FORWARD",
        "BACKWARD_INPUT",
        "FORWARD",
        "BACKWARD_INPUT",
        "BACKWARD_WEIGHT",
        "BACKWARD_WEIGHT",
    ]


def test_both_ends_of_dualpipe_hold_embedding_and_head() -> None:
    run = Layered(layers=4)
    tape, programs, _ = _programs(run, pp=4, micro_batches=8, schedule=Schedule.DUALPIPE)
    ends = (programs[0], programs[3])
    for program in ends:
        assert {micro for _, _, micro in _passes(tape, program, "EMBEDDING")} in (
            set(range(4)),
            set(range(4, 8)),
        )
        assert {layer for _, layer, _ in _passes(tape, program)} == {0, 3}
    assert {layer for _, layer, _ in _passes(tape, programs[1])} == {1, 2}


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        (Degrees(dp=8), Degrees(dp=8, tp=2), [0, 2, 4, 6, 8, 10, 12, 14]),
        (Degrees(tp=8), Degrees(tp=4), [0, 1, 2, 3]),
        (Degrees(tp=2, dp=2), Degrees(tp=2, dp=4), [0, 1, 4, 5]),
        (Degrees(tp=2, dp=2), Degrees(tp=1, dp=2), [0, 1]),
    ],
)
def test_recorded_ranks_stand_for_the_first_of_those_they_become(
    before: Degrees, after: Degrees, places: list[int]
) -> None:
    ranks = range(before.world)
    columns = columns_of(dict.fromkeys(ranks, 0), ranks, before, after)
    assert [column.place for column in columns] == places


def test_a_recorded_pipeline_becomes_one_rank() -> None:
    """Ranks 0 and 1 are two stages of one pipeline of four layers."""
    ranks = columns_of({0: 0, 1: 1}, [0, 1], Degrees(pp=2), Degrees())
    assert [(column.place, column.ranks) for column in ranks] == [(0, (0, 1))]


def test_programs_are_columns_of_one_length() -> None:
    _, programs, _ = _programs(Layered(), pp=2, micro_batches=2)
    for program in programs:
        assert program.p2p is not None
        lengths = {len(program.segment), len(program.step), len(program.p2p.kind)}
        assert len(lengths) == 1
        assert program.segment.dtype == np.int32
