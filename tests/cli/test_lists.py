"""Lists and ranges of what-ifs, as `replay sweep` takes them, and the knobs of `replay solve`."""

from pathlib import Path

import pytest

from ingest.errors import UsageError
from replay.cli.asked import Asked, asked
from replay.cli.knobs import BY_METAVAR, dial_of
from replay.cli.lists import USUAL_UNIT, values_of
from replay.cli.points import axes_of, points_of
from replay.cli.stack import Typed
from replay.cli.what_ifs import BASE_OPTIONS, WHAT_IFS
from tests.cli.calls import ROOT
from whatif.transforms.gpu import Gpu
from whatif.transforms.nvlink import Nvlink

ASKED = asked()


def counted(name: str) -> Asked:
    """An option that takes whole numbers."""
    return Asked(name=name, option=f"--{name}", metavar="N", value=int)


def values(name: str, text: str) -> list[str]:
    return list(values_of(ASKED[name], text))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("nvlink", "x2", ["x2"]),
        ("nvlink", "900GBps, x2,none", ["900GBps", "x2", "none"]),
        ("nvlink", "450,900", ["450GBps", "900GBps"]),
        ("nvlink", "450:1800:4", ["450GBps", "900GBps", "1350GBps", "1800GBps"]),
        ("nvlink", "450GBps:900GBps:2", ["450GBps", "900GBps"]),
        ("nvlink", "400:800Gbps:2", ["400Gbps", "800Gbps"]),
        ("nvlink", "x1:x4:3:log", ["x1", "x2", "x4"]),
        ("nvlink", "450,450GBps,450:900:2", ["450GBps", "900GBps"]),
        ("remove", "name:a:b:3", ["name:a:b:3"]),
        ("nvlink", "450,x2:x3:2", ["450GBps", "x2", "x3"]),
        ("network_scale", "4:1:4", ["4", "3", "2", "1"]),
        ("network_scale", "0.1:10:3:log", ["0.1", "1", "10"]),
        ("scale", "class:gemm,rank:3=1,0.5", ["class:gemm,rank:3=1", "class:gemm,rank:3=0.5"]),
        ("scale", "name:a=b=0:1:3", ["name:a=b=0", "name:a=b=0.5", "name:a=b=1"]),
        ("remove", "class:gemm,rank:3", ["class:gemm,rank:3"]),
        ("remove", "class:gemm|name:x,rank:3|none", ["class:gemm", "name:x,rank:3", "none"]),
        ("scenario", "a.yaml,b.yaml", ["a.yaml", "b.yaml"]),
        ("no_stragglers", "True", ["True"]),
    ],
)
def test_a_text_lists_these_values(name: str, text: str, expected: list[str]) -> None:
    assert values(name, text) == expected


def test_whole_numbers_may_go_by_equal_ratios() -> None:
    assert values_of(counted("dp"), "2:16:4:log") == ("2", "4", "8", "16")
    with pytest.raises(UsageError, match="not a whole number"):
        values_of(counted("dp"), "2:16:4")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("nvlink", "x1,,x2", "empty place"),
        ("nvlink", "450GBps:2TBps:4", "mixes units"),
        ("nvlink", "x1:900GBps:4", "mixes units"),
        ("network_scale", "1:8:1", "has 1 values"),
        ("network_scale", "0:8:3:log", "equal ratios"),
        ("nvlink", "-5:5:3", "cannot end at `-5`"),
        ("nvlink", "nan:5:3", "cannot end at `nan`"),
        ("nvlink", "450:inf:3", "cannot end at `inf`"),
        ("nvlink", "450:1e999:3", "cannot end at `1e999`"),
        ("scale", "class:gemm=-1:1:3", "cannot end at `-1`"),
        ("nvlink", "450:900:-3", "is no range"),
        ("nvlink", "450:900:3:lin", "is no range"),
    ],
)
def test_a_malformed_list_says_what_is_wrong(name: str, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        values(name, text)


def test_every_what_if_option_is_understood_in_a_grid() -> None:
    """Any other option of `replay whatif` stands in the list of those that are none."""
    assert set(ASKED) == set(WHAT_IFS) - {"jitter"} | set(BASE_OPTIONS) | {"scenario"}


def test_every_what_if_is_described() -> None:
    page = (ROOT / "docs" / "what-if.md").read_text(encoding="utf-8")
    assert [one.option for one in ASKED.values() if f"`{one.option}" not in page] == []


def test_usual_units_are_of_options_that_take_rates_or_times() -> None:
    for name in USUAL_UNIT:
        assert ASKED[name].metavar in {"RATE", "TIME"}


def test_a_link_is_asked_for_on_each_accelerator_whatever_was_typed_first() -> None:
    order = (Typed("nvlink", "450:1800:2"), Typed("gpu", "H200,B200"))
    points = points_of(axes_of(order), most=10)
    assert [point.scenario.transforms for point in points] == [
        (Gpu(name=name), Nvlink(rate=rate))
        for name in ("H200", "B200")
        for rate in ("450GBps", "1800GBps")
    ]


def test_the_grid_is_every_combination_in_the_order_typed() -> None:
    order = (
        Typed("network_scale", "1,2"),
        Typed("traces", "x"),
        Typed("no_stragglers", "True"),
        Typed("scale", "class:gemm=0.5,0"),
    )
    points = points_of(axes_of(order), most=10)
    assert [dict(point.at) for point in points] == [
        {"network-scale": "1", "scale class:gemm": "0.5"},
        {"network-scale": "1", "scale class:gemm": "0"},
        {"network-scale": "2", "scale class:gemm": "0.5"},
        {"network-scale": "2", "scale class:gemm": "0"},
    ]
    flags = [" ".join(change.flag for change in point.scenario.transforms) for point in points]
    assert flags[1] == "--network-scale 1 --no-stragglers --scale class:gemm=0"


def test_none_leaves_an_option_out_and_equal_axes_are_told_apart() -> None:
    order = (Typed("network_scale", "none,2"), Typed("network_scale", "1,3"))
    points = points_of(axes_of(order), most=10)
    assert list(points[0].at) == ["network-scale (1)", "network-scale (2)"]
    assert [len(point.scenario.transforms) for point in points] == [1, 1, 2, 2]


def test_a_grid_tells_of_the_recorded_machine_at_every_point() -> None:
    order = (Typed("nvlink", "x1,x2"), Typed("gpus_per_node", "4,8"))
    points = points_of(axes_of(order), most=10)
    assert [point.scenario.base.gpus_per_node for point in points] == [4, 8, 4, 8]


def test_too_many_points_are_refused_with_their_number() -> None:
    order = (Typed("network_scale", "1:2:200"), Typed("scale", "class:gemm=0:1:100"))
    with pytest.raises(UsageError, match=r"200 x 100 = 20,000 points is more than 10,000"):
        points_of(axes_of(order), most=10_000)


def test_a_grid_without_a_list_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to sweep"):
        axes_of((Typed("network_scale", "2"),))


def test_files_of_scenarios_are_values_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "fast.yaml"
    path.write_text("transforms: [{kind: network_scale, factor: 2}]")
    points = points_of(axes_of((Typed("scenario", f"none,{path}"),)), most=10)
    assert [len(point.scenario.transforms) for point in points] == [0, 1]


@pytest.mark.parametrize(
    ("vary", "value", "flag"),
    [
        ("nvlink", 2.5, "--nvlink x2.5"),
        ("--network-scale", 1e6, "--network-scale 1000000"),
        ("network_scale", 0.001, "--network-scale 0.001"),
        ("net-latency", 1, "--net-latency 1ns"),
        ("net-latency", 12_340, "--net-latency 12.34us"),
        ("net-latency", 1e9, "--net-latency 1s"),
        ("scale:class:gemm,rank:3", 0.25, "--scale class:gemm,rank:3=0.25"),
    ],
)
def test_a_knob_writes_its_option(vary: str, value: float, flag: str) -> None:
    dial = dial_of(vary, ())
    assert dial.flag(value) == flag
    (change,) = dial.knob.scenario(value).transforms
    assert change.flag.split()[0] == flag.split()[0]


def test_a_knob_stands_on_top_of_what_is_typed_beside_it() -> None:
    dial = dial_of("nvlink", (Typed("no_stragglers", "True"), Typed("base_gpu", "h100")))
    scenario = dial.knob.scenario(2)
    assert [change.flag for change in scenario.transforms] == ["--no-stragglers", "--nvlink x2"]
    assert scenario.base.gpu == "h100"


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ("nvlnk", "is no what-if"),
        ("remove", "has no number"),
        ("base-nvlink", "is no what-if"),
        ("scale", "has no selector"),
        ("nvlink:class:gemm", "takes no"),
    ],
)
def test_what_cannot_be_varied_says_why(vary: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        dial_of(vary, ())


def test_every_numeric_what_if_builds_at_the_value_that_changes_nothing() -> None:
    for option in ASKED.values():
        if option.metavar in BY_METAVAR and option.name not in BASE_OPTIONS:
            where = ":class:gemm" if "=" in option.metavar else ""
            assert dial_of(f"{option.name}{where}", ()).knob.scenario(1).transforms
