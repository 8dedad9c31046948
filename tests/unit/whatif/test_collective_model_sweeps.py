"""The collective model against public sweeps: what its constants and its stated errors rest on."""

from pathlib import Path

import numpy as np
import pytest

from tests.bench.accuracy_collectives import MIB, fit, moved, outcome, points
from tests.bench.collective_sweeps import SWEEPS, Measured, read
from whatif.models.collectives.constants import SHIPPED

TABLES = Path(__file__).parents[4] / "shared/facts/nccl_tables"
pytestmark = pytest.mark.skipif(
    not TABLES.is_dir(), reason="the public nccl-tests tables are not here"
)


@pytest.fixture(scope="module")
def sweeps() -> dict[str, Measured]:
    return {name: read(sweep, TABLES) for name, sweep in SWEEPS.items()}


def test_the_constants_are_those_that_the_sweeps_give(sweeps: dict[str, Measured]) -> None:
    found = fit(list(sweeps.values()))
    assert found.hop_ns == pytest.approx(SHIPPED.hop_ns, rel=0.03)
    assert found.net_frac == pytest.approx(SHIPPED.net_frac, rel=0.03)
    assert found.fill_frac == SHIPPED.fill_frac
    for name, silicon in SHIPPED.silicon.items():
        assert found.silicon[name].step_factor == pytest.approx(silicon.step_factor, rel=0.03)


@pytest.mark.parametrize(
    ("base", "target", "large", "small"),
    [
        ("8xA100-80", "8xH100 p5", 0.05, 0.12),
        ("8xA100-40 AG", "8xH100 AG", 0.06, None),
        ("8xA100-40 A2A", "8xH100 A2A", 0.06, None),
        ("8xH200", "8xB200", 0.08, None),
        ("16xA100 HDR", "128xA100 HDR", 0.08, 0.20),
        ("16xMI325X", "64xMI325X", 0.05, None),
    ],
)
def test_a_system_is_predicted_from_another(
    sweeps: dict[str, Measured], base: str, target: str, large: float, small: float | None
) -> None:
    family = SWEEPS[target].family
    others = [one for one in sweeps.values() if one.sweep.family != family]
    result = outcome(sweeps[base], sweeps[target], fit(others))
    error, is_large = np.abs(result.model - 1), result.size_bytes >= MIB
    assert np.median(error[is_large]) <= large
    if small is not None:
        assert np.median(error[~is_large]) <= small


def test_latency_and_bandwidth_alone_are_further_off(sweeps: dict[str, Measured]) -> None:
    result = outcome(sweeps["8xA100-80"], sweeps["8xH100 p5"], SHIPPED)
    model, plain = (np.abs(ratio - 1) for ratio in (result.model, result.alpha_beta))
    assert np.median(plain) > 4 * np.median(model)


def test_subsets_of_a_node_and_rings_against_the_switch() -> None:
    every = points(TABLES)
    for system in ("8x H200", "8x B200"):
        mine = [point for point in every if point.system == system]
        errors = [moved(a, b) - 1 for a in mine for b in mine if a is not b]
        assert len(errors) >= 56
        assert np.median(np.abs(errors)) < 0.05
        assert np.abs(errors).max() < 0.15
