"""Scenario files: the same structs as the flags, and errors that name the place."""

from pathlib import Path

import pytest

from ingest.errors import ScenarioError, UsageError
from whatif.recorded import Recorded
from whatif.scenario import Scenario, load_scenario
from whatif.transforms.network import NetworkScale
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.remove import Remove
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers

EVERYTHING = """
name: everything
base: {gpu: a100, gpus_per_node: 8}
transforms:
  - {kind: nvlink, rate: 900GBps}
  - {kind: network_scale, factor: 2}
  - {kind: scale, where: "class:gemm", factor: 0.5}
  - {kind: remove, where: "name:*dropout*"}
  - {kind: no_stragglers}
"""


def load(folder: Path, text: str) -> Scenario:
    path = folder / "idea.yaml"
    path.write_text(text, encoding="utf-8")
    return load_scenario(path)


def test_yaml_builds_the_structs_that_the_flags_build(tmp_path: Path) -> None:
    assert load(tmp_path, EVERYTHING) == Scenario(
        name="everything",
        base=Recorded(gpu="a100", gpus_per_node=8),
        transforms=(
            Nvlink(rate="900GBps"),
            NetworkScale(factor=2),
            Scale(where="class:gemm", factor=0.5),
            Remove(where="name:*dropout*"),
            NoStragglers(),
        ),
    )


def test_a_scenario_without_a_name_is_called_like_its_file(tmp_path: Path) -> None:
    assert load(tmp_path, "transforms: []").name == "idea"


@pytest.mark.parametrize(
    ("text", "place", "nearby"),
    [
        ("transforms: [{kind: scale, where: 'class:gemm', factr: 2}]", "$.transforms[0]", "factor"),
        ("transforms: [{kind: nvlnk, rate: x2}]", "$.transforms[0]", "nvlink"),
        ("transforms: [{kind: no_stragglers}, {rate: x2}]", "$.transforms[1]", ""),
        ("transfroms: []", "transfroms", "transforms"),
        ("transforms: [{kind: network_scale, factor: two}]", "$.factor", ""),
        ("transforms: [{kind: network_scale, factor: -2}]", "$.factor", ""),
        ("transforms: [{kind: network_scale, factor: .inf}]", "no speed of a network", ""),
        ("transforms: [{kind: network_scale, factor: .nan}]", "$.factor", ""),
        ("transforms: [{kind: nvlink, rate: fast}]", "`fast` is not a rate", "900GBps"),
        ("base: {gup: a100}", "$.base", "gpu"),
        ("base: {nvlink: x2}", "$.base", "absolute"),
        ("base: a100", "$.base", "gpu"),
        ("transforms: [nvlink]", "$.transforms[0]", ""),
        ("transforms: nvlink", "$.transforms", ""),
        ("[1, 2]", "no scenario", "transforms:"),
        ("", "no scenario", "transforms:"),
    ],
)
def test_a_mistake_names_the_file_the_place_and_what_is_near(
    tmp_path: Path, text: str, place: str, nearby: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text)
    assert "idea.yaml" in str(caught.value)
    assert place in str(caught.value)
    assert nearby in caught.value.hint
    assert caught.value.exit_code == 4


def test_what_is_no_yaml_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no YAML") as caught:
        load(tmp_path, "transforms: [")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_a_mistake_of_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_scenario(tmp_path / "nowhere.yaml")


def test_a_topology_lies_beside_the_scenario_that_names_it(tmp_path: Path) -> None:
    found = load(tmp_path, "base: {topology: rack.yaml}")
    assert found.base.topology == str(tmp_path / "rack.yaml")
