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
from whatif.postmortem.wording import percent, percents, predicted
from whatif.report.levers import MovedFacts


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
    assert "bound by GPU compute: 100.0% compute. No bottleneck found" in found.sentence


def test_a_straggler_is_told_with_its_step_its_range_and_what_stays() -> None:
    found = said(material_of(training(slow={1: 1.5})))
    assert not found.is_healthy
    assert found.sentence.startswith("Step 30.")
    assert "Biggest finding to act on: no stragglers" in found.sentence
    assert re.search(r"predicted 20\.\d\d ms", found.sentence)
    assert re.match(r"Left of the step then: 20\.00 ms compute \(99%\)", found.not_fixed)


def test_shares_of_the_sentence_add_up_to_100_percent_but_for_rounding() -> None:
    for graph in (
        training(),
        training(slow={1: 1.3}),
        one_rank(copy_ns=3 * MS),
        one_rank(sync=True),
    ):
        sentence = said(material_of(graph)).sentence.split(". ")[0]
        told = re.findall(r"(\d+\.\d)% [a-z]", sentence.split(": ")[-1])
        assert sum(map(float, told)) == pytest.approx(100, abs=0.2)


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
    ("parts", "shares"),
    [
        ([1, 1, 1], ["33.3%", "33.3%", "33.3%"]),
        ([0, 5], ["", "100.0%"]),
        ([0, 0], ["", ""]),
        ([29.35, 9.97, 0.33, 2.52], ["69.6%", "23.6%", "0.8%", "6.0%"]),
        ([99_960, 40], ["100.0%", ""]),
    ],
)
def test_shares_of_a_whole_are_rounded_one_by_one(parts: list[float], shares: list[str]) -> None:
    assert percents(parts) == shares


def test_small_shares_have_a_decimal() -> None:
    assert [percent(frac) for frac in (0.0, 0.004, 0.0994, 0.0996, 0.5)] == [
        "0%", "0.4%", "9.9%", "10%", "50%",
    ]  # fmt: skip


def moved(step: int, saving: int, *ends: int) -> MovedFacts:
    """A what-if; ends of the step and of the saving, ms."""
    low, high, saving_low, saving_high = (end * MS for end in ends)
    return MovedFacts(
        flag="--x", step_ns=step * MS, low_ns=low, high_ns=high, saving_ns=saving * MS,
        saving_low_ns=saving_low, saving_high_ns=saving_high, saving_frac=0.5,
    )  # fmt: skip


def test_a_prediction_has_the_range_of_the_answer_and_the_saving_its_own() -> None:
    wide = moved(10, 10, 7, 17, 4, 12)
    assert (
        predicted(20 * MS, wide)
        == "predicted 10.00 ms, 7.00 ms to 17.00 ms (2.00x), saves 4.00 ms to 12.00 ms"
    )
    assert (
        predicted(20 * MS, moved(10, 10, 10, 10, 10, 10))
        == "predicted 10.00 ms (2.00x), saves 10.00 ms"
    )
    assert predicted(20 * MS, moved(0, 20, 0, 0, 20, 20)) == "predicted 0.00 ms, saves 20.00 ms"


def test_a_bound_is_told_as_the_most_that_there_is() -> None:
    assert (
        predicted(20 * MS, moved(10, 10, 10, 10, 8, 12), is_bound=True)
        == "predicted at least 10.00 ms (at most 2.00x), saves at most 10.00 ms"
    )


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
    told = [verdict(material, found).sentence for found in ((guess, sure), (guess,))]
    assert "Biggest finding to act on: no stragglers" in told[0]
    assert "Biggest finding to act on: a guess, predicted 20." in told[1]
