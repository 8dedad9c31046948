"""Appendix of a report: every query once, thresholds from the rules, oddities, words."""

from pathlib import Path

from tests.material import column_of, is_whole, material_of, table_of
from whatif.couplings import slowdown
from whatif.postmortem.contract import Finding, Section
from whatif.postmortem.glossary import GLOSSARY
from whatif.postmortem.material import Material
from whatif.postmortem.sections import appendix, host, kernels
from whatif.postmortem.thresholds_told import rules_told
from whatif.report.blocks import Words

ODD = Path("sample_traces/tiny/unescaped_quote.json")
LEAST_FRAC = 0.25
"""Of the step: what two runs
differ by."""
NAMES = ("a", "b")
NS_PER_S = 1e9
IS_STRICT = True


def rule(_: Material) -> Finding | None:
    """Nothing."""
    return None


def other_rule(_: Material) -> Finding | None:
    """Looks for nothing in particular.

    And has more to say.
    """
    return None


def _appendix(path: Path) -> tuple[Section, list[Section]]:
    with material_of(path) as material:
        others = [kernels.section(material), host.section(material)]
        made = appendix.section(material, others, rules=(rule, other_rule), program="p 1.0")
    return made, others


def test_every_query_is_listed_once_with_the_blocks_that_show_it() -> None:
    made, others = _appendix(ODD)
    listed = table_of(made, "appendix.queries")
    shown = [
        block
        for section in others
        for block in section.blocks
        if not isinstance(block, Words) and getattr(block, "query", None) is not None
    ]
    commands = column_of(listed, "command")
    assert len(commands) == len(set(commands))
    assert {key for keys in column_of(listed, "shown in") for key in str(keys).split(", ")} == {
        block.key for block in shown
    }
    assert made.summary.startswith(f"{len(commands)} queries give the figures")


def test_oddities_of_the_files_are_counted() -> None:
    made, _ = _appendix(ODD)
    odd = table_of(made, "appendix.oddities")
    assert column_of(odd, "oddity") == ["unescaped_quote"]
    assert column_of(odd, "places") == [1]
    assert made.summary.endswith("1 kind of oddity in the files, the worst of severity notice.")
    assert is_whole(made)


def test_a_run_without_oddities_says_so() -> None:
    made, _ = _appendix(Path("sample_traces/tiny/absolute_microseconds.json"))
    assert made.summary.endswith("nothing was odd in the files.")


def test_versions_tell_program_and_store() -> None:
    made, _ = _appendix(ODD)
    versions = table_of(made, "appendix.versions")
    told = dict(zip(column_of(versions, "of"), column_of(versions, "version"), strict=True))
    assert told["program"] == "p 1.0"
    assert "store: schema_version" in told


def test_thresholds_are_read_from_the_rules() -> None:
    told = rules_told((rule, other_rule))
    assert [(one.rule, one.threshold, one.value, one.reason) for one in told] == [
        ("test_appendix_section", "LEAST_FRAC", 0.25, "Of the step: what two runs differ by."),
        ("other_rule", "", None, ""),
    ]
    assert told[1].about == "Looks for nothing in particular."


def test_a_rule_named_by_its_function_has_no_thresholds_of_its_module() -> None:
    (told,) = rules_told((slowdown.slowdown_beside_comm,))
    assert (told.rule, told.threshold) == ("slowdown_beside_comm", "")


def test_words_are_explained_once() -> None:
    terms = [term for term, _ in GLOSSARY]
    assert len(terms) == len(set(terms))
    assert all(meaning.endswith(".") for _, meaning in GLOSSARY)
