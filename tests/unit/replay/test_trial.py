"""Facts about graphs that an experiment takes something from."""

from pathlib import Path

import pytest

from ingest.pipeline import IngestOptions, open_run
from ingest.vocab import EdgeKind
from replay.graph.build import Trial, build
from replay.graph.facts import GraphFacts
from replay.results.fidelity import baseline, step_error_frac
from tests.kineto import KinetoFile

STEP_US = 2_000.0
LAG_US = (1.0, 1.0, 3.0, 3.0)
"""Gap between the kernels of each step."""


def _trace(folder: Path) -> Path:
    """Four steps: eleven queued kernels each, and a device synchronise at the end."""
    file = KinetoFile()
    for number, lag_us in enumerate(LAG_US):
        began = number * STEP_US
        file.step(number, (began, began + STEP_US))
        now = began + 7
        for kernel in range(11):
            call = began + 10 * kernel
            file.launched("k", (call, call + 5), (now, now + 100))
            now += 100 + lag_us
        file.call("cudaDeviceSynchronize", (began + 150, now + 10))
    return file.write(folder / "rank0.json")


def _facts(path: Path, trial: Trial) -> GraphFacts:
    with open_run([path], options=IngestOptions(cache=False)) as run:
        return build(run.store, trial=trial).facts


@pytest.mark.parametrize(("steps", "lag_ns", "samples"), [(None, 2_000, 40), (2, 1_000, 20)])
def test_lags_are_learned_on_the_first_steps_only_where_asked(
    tmp_path: Path, steps: int | None, lag_ns: int, samples: int
) -> None:
    lag = _facts(_trace(tmp_path), Trial(taught_steps=steps)).lags["stream_order"]
    assert (lag.lag_ns, lag.samples) == (lag_ns, samples)


def test_error_of_held_out_steps_is_that_of_lags_from_the_others(tmp_path: Path) -> None:
    with open_run([_trace(tmp_path)], options=IngestOptions(cache=False)) as run:
        built = build(run.store, trial=Trial(taught_steps=2))
    base = baseline(built.graph, built.facts)
    learned_ns, judged_ns = 1_000, 3_000
    lost_us = 2 * 10 * (learned_ns - judged_ns) / 1_000
    assert step_error_frac(base.measured, base.strict, 2) == pytest.approx(
        lost_us / (2 * STEP_US), abs=1e-3
    )
    assert step_error_frac(base.measured, base.strict, 2) < base.trust.strict_error_frac


def test_rule_left_out_makes_no_edge_and_the_others_all(tmp_path: Path) -> None:
    path = _trace(tmp_path)
    whole = _facts(path, Trial()).edges
    less = _facts(path, Trial(without=frozenset({"host_sync"}))).edges
    gone = {key for key in whole if key[0] == EdgeKind.HOST_SYNC}
    assert gone
    assert less == {key: count for key, count in whole.items() if key not in gone}


def test_rule_of_another_name_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="no such rules"):
        Trial(without=frozenset({"event_waits"}))
