"""The verdict says the step, where it goes, what binds it, the biggest lever, and what stays."""

import re
from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields

from tests.unit.postmortem.graphs import MS, US, material_of, one_rank, training
from whatif.postmortem.conclusion import bound_words, verdict
from whatif.postmortem.contract import Confidence, Verdict
from whatif.postmortem.findings.rules import findings
from whatif.postmortem.material import Material
from whatif.postmortem.wording import percent, predicted, whole_percents


def said(material: Material) -> Verdict:
    return verdict(material, findings(material))


def judged(material: Material, **trust: object) -> Material:
    """The run with other words about its trust."""
    changed = with_fields(material.answer.trust, **trust)
    return replace(material, answer=with_fields(material.answer, trust=changed))


def bound_by(material: Material, **path_frac: float) -> Material:
    """The run with other shares of its critical path."""
    reading = with_fields(material.answer.reading, path_frac=path_frac)
    return replace(material, answer=with_fields(material.answer, reading=reading))


def test_a_healthy_run_says_so_and_has_nothing_left_to_mend() -> None:
    found = said(material_of(one_rank(kernels=4)))
    assert found.is_healthy
    assert found.not_fixed == ""
    assert "bound by GPU compute: 100% compute. No bottleneck found" in found.sentence


def test_a_straggler_is_told_with_its_step_its_range_and_what_stays() -> None:
    found = said(material_of(training(slow={1: 1.5})))
    assert not found.is_healthy
    assert found.sentence.startswith("Step 30.")
    assert "Biggest lever: no stragglers" in found.sentence
    assert re.search(r"predicted 20\.\d\d ms", found.sentence)
    assert re.match(r"Left of the step then: 20\.00 ms compute \(99%\)", found.not_fixed)


def test_shares_of_the_sentence_add_up_to_100_percent() -> None:
    for graph in (
        training(),
        training(slow={1: 1.3}),
        one_rank(copy_ns=3 * MS),
        one_rank(sync=True),
    ):
        sentence = said(material_of(graph)).sentence.split(". ")[0]
        assert sum(map(int, re.findall(r"(\d+)% [a-zCe]", sentence))) == 100


def test_grade_d_comes_first_and_is_never_healthy() -> None:
    material = judged(material_of(one_rank(kernels=4)), grade="D", reasons=("nothing fits",))
    found = said(material)
    assert found.sentence.startswith("Not to be trusted (grade D): nothing fits. Step")
    assert "No bottleneck is named: this recording does not bear it" in found.sentence
    assert not found.is_healthy


def test_silence_of_unknown_cause_is_never_healthy() -> None:
    material = judged(material_of(one_rank(kernels=4)), explained_frac=0.4, advice=("x: do y",))
    found = said(material)
    assert (
        "No bottleneck is named: 60% of the critical path has no known cause; it lacks x: do y."
        in (found.sentence)
    )
    assert not found.is_healthy


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ({"compute": 0.80, "host": 0.20}, "bound by GPU compute"),
        (
            {"compute": 0.55, "host": 0.45},
            "bound by a mix (device compute 55% and host work 45% of the critical path)",
        ),
        (
            {"compute": 0.49, "host": 0.20, "transfer": 0.31},
            "bound by a mix (device compute 49%, transfers of collectives 31% and host work 20% of "
            "the critical path)",
        ),
    ],
)
def test_a_bound_needs_half_of_the_path_and_a_margin(shares: dict[str, float], words: str) -> None:
    assert bound_words(bound_by(material_of(one_rank(kernels=4)), **shares)) == words


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([1, 1, 1], [34, 33, 33]),
        ([0, 5], [0, 100]),
        ([0, 0], [0, 0]),
        ([29.35, 9.97, 0.33, 2.52], [69, 24, 1, 6]),
    ],
)
def test_whole_percents_add_up(parts: list[float], whole: list[int]) -> None:
    assert whole_percents(parts) == whole


def test_small_shares_have_a_decimal() -> None:
    assert [percent(frac) for frac in (0.0, 0.004, 0.0994, 0.0996, 0.5)] == [
        "0%", "0.4%", "9.9%", "10%", "50%",
    ]  # fmt: skip


def test_a_prediction_is_told_with_its_range_and_speedups() -> None:
    wide = predicted(20 * MS, (4 * MS, 10 * MS, 12 * MS))
    assert wide == "predicted 10.00 ms, 8.00 ms to 16.00 ms (1.25x to 2.50x)"
    assert predicted(20 * MS, (10 * MS, 10 * MS, 10 * MS + 1)) == "predicted 10.00 ms (2.00x)"
    assert predicted(20 * MS, (20 * MS, 20 * MS, 20 * MS)) == "predicted 0.00 ms"


def test_the_spread_of_steps_is_told_as_far_as_it_is_known() -> None:
    assert said(material_of(one_rank(steps=1))).sentence.startswith("Step 20.02 ms, bound")
    few, many = (said(material_of(one_rank(steps=steps))).sentence for steps in (3, 20))
    assert "(longest of 3: " in few
    assert "(p95 " in many


def test_idle_time_names_its_cause() -> None:
    sentence = said(
        material_of(one_rank(kernels=20, kernel_ns=100 * US, host_ns=300 * US))
    ).sentence
    assert "idle (host late)" in sentence


def test_a_guess_does_not_lead_where_something_surer_was_found() -> None:
    material = material_of(training(slow={1: 1.5}))
    (sure,) = findings(material)
    guess = with_fields(
        sure, key="guess", saving_ns=12 * MS, flag="", what_if="a guess", confidence=Confidence.LOW
    )
    assert "Biggest lever: no stragglers" in verdict(material, (guess, sure)).sentence
    assert "Biggest lever: a guess, predicted 18." in verdict(material, (guess,)).sentence
