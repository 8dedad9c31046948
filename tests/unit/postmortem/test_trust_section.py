"""What the trust section says of ranks that have files and do not count."""

from dataclasses import replace

from msgspec.structs import replace as with_fields

from tests.material import column_of, table_of
from tests.unit.postmortem.graphs import material_of, training
from whatif.postmortem.contract import Missing
from whatif.postmortem.material import Material, SourceFile
from whatif.postmortem.sections.trust import section
from whatif.report.advice import ABSENT_MEMBERS

WHAT = "the other members of the collectives"


def lacking_members(*, files_of: tuple[int, ...]) -> Material:
    """A run of ranks 0 and 1 whose collectives have more members, and which ranks have a file."""
    made = material_of(training())
    judged = with_fields(made.answer.trust, advice=(ABSENT_MEMBERS,))
    files = tuple(SourceFile(name="f", rank=rank, events=1, digest="") for rank in files_of)
    return replace(made, answer=with_fields(made.answer, trust=judged), sources=files)


def test_ranks_without_files_are_asked_for() -> None:
    told = section(lacking_members(files_of=(0, 1)))
    assert told.missing == (Missing(what=WHAT, how="give the files of all ranks"),)
    assert "ranks left out" not in column_of(table_of(told, "trust.figures"), "what")


def test_ranks_left_out_by_hand_are_not_asked_for() -> None:
    told = section(lacking_members(files_of=(0, 1, 2, 3, 5)))
    how = "leave --ranks out: the files of rank 2-3, 5 are there"
    assert told.missing == (Missing(what=WHAT, how=how),)
    figures = table_of(told, "trust.figures")
    found = dict(zip(column_of(figures, "what"), column_of(figures, "found"), strict=True))
    assert found["ranks left out"] == "2-3, 5"
