"""Every position of every knob is a what-if; those that do nothing for a run say why."""

from itertools import pairwise

import pytest

from replay.cli.flags import scenario_of_words
from replay.serve.contract import Ask, Kind, Knob, KnobState
from replay.serve.knobs import probes
from tests.unit.serve.run import DDP8, GLOO2, session
from whatif.recorded import Recorded
from whatif.scenario import Scenario

KNOBS = session().knobs().knobs


def _states(*words: str, of: object = DDP8) -> dict[str, KnobState]:
    told = session(of).states(Ask(flags=words)).states  # type: ignore[arg-type]
    return {state.key: state for state in told}


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.key)
def test_each_position_is_one_what_if_and_one_is_the_recording(knob: Knob) -> None:
    counts = [len(scenario_of_words(at.flags).transforms) for at in knob.positions]
    assert sorted(counts) == [0] + [1] * (len(knob.positions) - 1)
    assert len({at.flags for at in knob.positions}) == len(knob.positions)


@pytest.mark.parametrize(
    "knob", [knob for knob in KNOBS if knob.example], ids=lambda knob: knob.key
)
def test_the_example_of_a_knob_can_be_typed(knob: Knob) -> None:
    assert len(scenario_of_words((f"--{knob.key}", knob.example)).transforms) == 1


def test_factors_of_a_slider_rise_and_hold_the_recording_in_their_middle() -> None:
    nvlink = next(knob for knob in KNOBS if knob.key == "nvlink")
    factors = [float(at.flags[1][1:]) if at.flags else 1.0 for at in nvlink.positions]
    assert nvlink.kind is Kind.SLIDER
    assert all(before < after for before, after in pairwise(factors))
    assert nvlink.now == "900 GB/s"
    assert (
        next(at.label for at in nvlink.positions if at.flags[-1:] == ("x2",)) == "x2 · 1,800 GB/s"
    )


def test_the_recorded_gpu_is_no_choice_beside_itself() -> None:
    gpu = next(knob for knob in KNOBS if knob.key == "gpu")
    assert gpu.now == "H100 SXM5 80 GB"
    assert gpu.now not in {at.label for at in gpu.positions}


def test_at_most_three_positions_are_tried_and_none_of_jitter() -> None:
    tried = {knob.key: len(probes(knob)) for knob in KNOBS}
    assert tried["nvlink"] == tried["gpu"] == 3
    assert (tried["cuda-graphs"], tried["overlap"], tried["jitter"]) == (1, 2, 0)


def test_knobs_that_do_nothing_for_a_run_say_why() -> None:
    states = _states()
    assert states["nvlink"].can_act
    assert states["host-scale"].can_act
    assert not states["net"].can_act
    assert states["net"].reason.startswith("no collective crosses nodes")


def test_a_run_without_a_gpu_has_no_use_for_gpu_knobs() -> None:
    states = _states(of=GLOO2)
    assert not states["gpu"].can_act
    assert states["gpu"].reason == "no accelerator worked in this trace"
    assert states["compute"].reason.startswith("no task matches `class:compute` (")
    assert states["net"].can_act


def test_a_what_if_may_wake_a_knob() -> None:
    """With 64 replicas the ranks of one node become several nodes."""
    assert not _states()["net"].can_act
    assert _states("--dp", "64")["net"].can_act


def test_what_is_said_of_the_machine_wakes_a_knob() -> None:
    one = session(start=Scenario(base=Recorded(gpus_per_node=4, net="400Gbps")))
    states = {state.key: state for state in one.states(Ask()).states}
    assert states["net"].can_act
    net = next(knob for knob in one.knobs().knobs if knob.key == "net")
    assert net.now == "400 Gbps"
