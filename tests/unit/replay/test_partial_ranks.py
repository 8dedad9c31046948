"""Facts about collectives of which members are not in the files, or were not chosen."""

from pathlib import Path

import pytest

from ingest.errors import UsageError
from ingest.vocab import EdgeKind, TaskKind
from tests.kineto import ALL_REDUCE, KinetoFile
from tests.replayed import written


def _pair() -> list[KinetoFile]:
    """Rank 0 waits for rank 1 in each of three all-reduces; they move data for 10 us."""
    files = [KinetoFile(rank=rank, ranks=(0, 1)) for rank in (0, 1)]
    for file in files:
        file.step(1, (0, 4000))
        for number in range(3):
            at = 1000 * number
            start = at + (110 if file.rank == 0 else 500)
            file.launched("compute", (at, at + 5), (at + 10, start - 2))
            file.all_reduce(number + 1, (at + 10, at + 15), (start, at + 510), stream=7)
    return files


def test_members_meet_when_the_last_has_arrived(tmp_path: Path) -> None:
    run = written(tmp_path, *_pair())
    assert run.transfer_and_wait_us(0) == [(10, 390)] * 3
    assert run.transfer_and_wait_us(1) == [(10, 0)] * 3
    meets = run.all_of(ALL_REDUCE, TaskKind.MEET)
    assert [run.span(meet) for meet in meets] == [(at + 500, at + 500) for at in (0, 1000, 2000)]
    arrivals = run.all_of(ALL_REDUCE, TaskKind.ARRIVE)
    assert [len(run.edges(meet, EdgeKind.COLLECTIVE)) for meet in meets] == [2, 2, 2]
    assert all(run.span(arrival)[0] == run.span(arrival)[1] for arrival in arrivals)


def test_chosen_rank_keeps_the_wait_for_the_others_as_it_was(tmp_path: Path) -> None:
    run = written(tmp_path, *_pair(), ranks=(0,))
    assert [info.rank for info in run.graph.ranks] == [0]
    arrivals = run.all_of(ALL_REDUCE, TaskKind.ARRIVE)
    transfers = run.all_of(ALL_REDUCE, TaskKind.TRANSFER)
    assert run.graph.tasks.dur_ns[arrivals].tolist() == [390_000] * 3
    assert run.graph.tasks.dur_ns[transfers].tolist() == [10_000] * 3
    faster = run.scaled({ALL_REDUCE: 0.5})
    assert run.span(transfers[0], faster) == (500, 505)
    assert run.graph.collectives.members_seen.tolist() == [1, 1, 1]
    assert run.graph.collectives.members_expected.tolist() == [2, 2, 2]
    assert run.is_exact()


def test_chosen_rank_that_was_last_waited_for_nobody(tmp_path: Path) -> None:
    run = written(tmp_path, *_pair(), ranks=(1,))
    arrivals = run.all_of(ALL_REDUCE, TaskKind.ARRIVE)
    assert run.graph.tasks.dur_ns[arrivals].tolist() == [0] * 3


def test_rank_without_file_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file holds rank 7") as error:
        written(tmp_path, *_pair(), ranks=(0, 7))
    assert str(error.value.hint) == "ranks in these files: 0, 1"


def test_lone_rank_moves_data_as_long_as_its_fastest_equal_call(tmp_path: Path) -> None:
    file = KinetoFile(rank=0, ranks=(0, 1))
    file.step(1, (0, 4000))
    for number, length in enumerate((50, 20, 400)):
        at = 1000 * number
        file.all_reduce(number + 1, (at, at + 5), (at + 10, at + 10 + length))
    run = written(tmp_path, file)
    tasks, calls = run.graph.tasks, run.graph.collectives
    assert tasks.dur_ns[run.all_of(ALL_REDUCE, TaskKind.TRANSFER)].tolist() == [20_000] * 3
    waits = tasks.dur_ns[run.all_of(ALL_REDUCE, TaskKind.ARRIVE)].tolist()
    assert waits == [30_000, 0, 380_000]
    assert calls.outside_wait_low_ns.tolist() == [20_000] * 3
    assert calls.outside_wait_high_ns.tolist() == [50_000, 20_000, 400_000]
    assert run.facts.members_complete == 0
    assert run.base.trust.grade >= "C"
    assert "members of long collectives are not in these files" in run.base.trust.reasons


def test_lone_rank_with_too_few_equal_calls_counts_all_as_transfer(tmp_path: Path) -> None:
    file = KinetoFile(rank=0, ranks=(0, 1))
    file.step(1, (0, 1000))
    file.all_reduce(1, (0, 5), (10, 410))
    run = written(tmp_path, file)
    assert run.transfer_and_wait_us(0) == [(400, 0)]


def test_member_that_ended_before_the_last_arrived_did_not_wait_for_it(tmp_path: Path) -> None:
    files = [KinetoFile(rank=rank, ranks=(0, 1)) for rank in (0, 1)]
    for file in files:
        file.step(1, (0, 1000))
        for number in range(5):
            start = 110 + 100 * number
            file.all_reduce(number + 1, (start - 20, start - 15), (start, start + 50))
    files[0].all_reduce(6, (700, 705), (710, 760))
    files[1].all_reduce(6, (790, 795), (800, 850))
    run = written(tmp_path, *files)
    early, late = run.all_of(ALL_REDUCE, TaskKind.TRANSFER)[-2:]
    assert run.span(early) == (710, 760)
    assert run.facts.contradicted == {"collective": 1}
    assert [edge.src for edge in run.edges(early, EdgeKind.COLLECTIVE)] == [early - 1]
    assert run.span(late) == (800, 850)
    assert run.is_exact()
