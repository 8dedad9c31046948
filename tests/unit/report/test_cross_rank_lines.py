"""What is told of the ranks together."""

from dataclasses import replace

from replay.results.clocks import unsure_clocks
from tests.builders import data_parallel, facts_of
from tests.unit.report.findings import file_of, findings_of
from whatif.report.cross_rank import absent_lines, clock_lines, desync_lines, skew_lines
from whatif.report.text import render

FACTS = replace(facts_of(data_parallel()), files=(file_of(0), file_of(1)))


def test_a_clock_that_was_far_off_is_told_in_the_plain_answer() -> None:
    ahead = replace(file_of(1), clock_offset_ns=5_000_000)
    behind = replace(file_of(1), clock_offset_ns=-7_000_000, clock_drift_ppm=20.04)
    found = findings_of(data_parallel(), facts=replace(FACTS, files=(file_of(0), ahead)))
    assert list(clock_lines(found)) == ["clock of rank 1 is 5.000 ms ahead of rank 0's: corrected"]
    assert "clock of rank 1 is 5.000 ms ahead of rank 0's: corrected" in render(found)
    found = findings_of(data_parallel(), facts=replace(FACTS, files=(file_of(0), behind)))
    assert list(clock_lines(found)) == [
        "clock of rank 1 is 7.000 ms behind rank 0's and drifts by +20.0 ppm: corrected"
    ]
    assert list(clock_lines(findings_of(data_parallel(), facts=FACTS))) == []


def test_clocks_that_nothing_compares_are_a_reason() -> None:
    alone = replace(file_of(1), clock_method="alone", clock_base_rank=1, clock_samples=0)
    few = replace(file_of(1), clock_samples=2)
    first = replace(file_of(0), clock_method="alone")
    assert list(unsure_clocks(FACTS)) == []
    assert list(unsure_clocks(replace(FACTS, files=(alone,)))) == []
    assert list(unsure_clocks(replace(FACTS, files=(file_of(0), alone)))) == [
        "clocks of rank 1 cannot be compared: no matched collective ties them together"
    ]
    assert list(unsure_clocks(replace(FACTS, files=(first, alone)))) == [
        "clocks of the ranks cannot be compared: no matched collective ties them together"
    ]
    (told,) = unsure_clocks(replace(FACTS, files=(file_of(0), few)))
    assert told.startswith("clocks of rank 1 rest on fewer than 3 collectives")


def test_skew_and_ranks_out_of_step_are_told() -> None:
    skewed = replace(file_of(1), launch_skew_ns=800)
    clash = "rank 1 has all_gather as Seq 2 of group 0 (ranks 0, 1), rank 0 has all_reduce"
    facts = replace(FACTS, files=(file_of(0), skewed), out_of_step=(clash,) * 5)
    found = findings_of(data_parallel(), facts=facts)
    assert list(skew_lines(found)) == [
        "device work that began before its launch (by up to 0.8 us, rank 1) was moved to the call"
    ]
    assert list(desync_lines(found)) == [f"ranks out of step: {clash}"] * 3 + [
        "2 more are out of step: import_log has them"
    ]


def test_members_without_a_file_are_told_with_the_waiting_they_make() -> None:
    whole = data_parallel()
    lacking = replace(
        whole,
        world_size=4,
        collectives=replace(
            whole.collectives, members_expected=whole.collectives.members_expected + 2
        ),
    )
    assert list(absent_lines(findings_of(whole))) == []
    (told,) = absent_lines(findings_of(lacking))
    assert told.startswith("1 of 1 collectives lack members here (ranks 2, 3)")
    assert "(0.00 ms per rank and step)" in told
