"""Routing of experts, asked of a run that has none."""

import pytest

from ingest.errors import ScenarioError
from tests.builders import data_parallel
from whatif.transforms.base import Context
from whatif.transforms.experts import Capacity, Imbalance


@pytest.mark.parametrize("asked", [Imbalance(factor=1.5), Capacity(factor=1.25)])
def test_a_dense_run_has_no_routing(asked: Imbalance | Capacity) -> None:
    with pytest.raises(ScenarioError, match="no experts"):
        asked.apply(data_parallel(), Context())
