"""What-if options keep the order in which they were typed."""

from pathlib import Path

import msgspec
import pytest
import typer

from ingest.errors import UsageError
from replay.cli.cmd_whatif import whatif
from replay.cli.stack import KEY, StackedCommand
from replay.cli.what_ifs import require_use_of_base, scenario_in, scenario_of
from tests.cli.calls import Run
from whatif.recorded import Recorded
from whatif.scenario import load_scenario
from whatif.transforms.cuda_graphs import CudaGraphs
from whatif.transforms.fuse import Fuse
from whatif.transforms.host_scale import HostScale
from whatif.transforms.jitter import Jitter
from whatif.transforms.network import NetworkScale
from whatif.transforms.no_overlap import NoOverlap
from whatif.transforms.nvlink import Nvlink
from whatif.transforms.perfect_overlap import PerfectOverlap
from whatif.transforms.registry import Transform
from whatif.transforms.remove import Remove
from whatif.transforms.scale import Scale
from whatif.transforms.stragglers import NoStragglers


def _typed(*arguments: str) -> tuple[tuple[str, str], ...]:
    app = typer.Typer(add_completion=False)
    app.command(cls=StackedCommand)(whatif)
    context = typer.main.get_command(app).make_context("whatif", list(arguments))
    return tuple((name, value) for name, value in context.meta[KEY] if name != "traces")


@pytest.mark.parametrize(
    ("line", "order"),
    [
        ("t --scale a=1 --remove b", (("scale", "a=1"), ("remove", "b"))),
        ("t --remove b --scale a=1", (("remove", "b"), ("scale", "a=1"))),
        (
            "--scale a=1 t --remove=b --scale=c=2",
            (("scale", "a=1"), ("remove", "b"), ("scale", "c=2")),
        ),
        (
            "t --no-stragglers --nvlink x2 --network-scale 2",
            (("no_stragglers", "True"), ("nvlink", "x2"), ("network_scale", "2")),
        ),
        ("t --scale --remove --nvlink x2", (("scale", "--remove"), ("nvlink", "x2"))),
        ("--nvlink x2 -- --remove", (("nvlink", "x2"),)),
    ],
)
def test_order_is_that_of_the_line(line: str, order: tuple[tuple[str, str], ...]) -> None:
    assert _typed(*line.split()) == order


def test_each_option_is_one_transform_in_its_place(tmp_path: Path) -> None:
    file = tmp_path / "slow.yaml"
    file.write_text("transforms: [{kind: network_scale, factor: 0.5}]\n", encoding="utf-8")
    order = (
        ("remove", "class:memcpy"),
        ("scenario", str(file)),
        ("steps", "1:2"),
        ("nvlink", "900GBps"),
        ("scale", "name:a=b=0.5"),
        ("no_stragglers", "True"),
    )
    base = Recorded(gpu="H100")
    assert scenario_of(_as_typed(order), base).base == base
    assert scenario_of(_as_typed(order), base).transforms == (
        Remove(where="class:memcpy"),
        NetworkScale(factor=0.5),
        Nvlink(rate="900GBps"),
        Scale(where="name:a=b", factor=0.5),
        NoStragglers(),
    )


@pytest.mark.parametrize(
    ("typed", "change"),
    [
        (("host_scale", "1.5"), HostScale(factor=1.5)),
        (("cuda_graphs", "True"), CudaGraphs()),
        (("fuse", "class:elementwise"), Fuse(where="class:elementwise")),
        (("no_overlap", "True"), NoOverlap()),
        (("perfect_overlap", "True"), PerfectOverlap()),
        (("jitter", "200"), Jitter(samples=200)),
        (("jitter", "50@2"), Jitter(samples=50, scale=2)),
    ],
)
def test_options_of_the_runtime_say_what_files_say(
    typed: tuple[str, str], change: Transform, tmp_path: Path
) -> None:
    assert scenario_of(_as_typed((typed,))).transforms == (change,)
    file = tmp_path / "same.yaml"
    file.write_bytes(msgspec.yaml.encode({"transforms": [change]}))
    assert load_scenario(file).transforms == (change,)


@pytest.mark.parametrize(
    "order",
    [
        (("host_scale", "0"),),
        (("host_scale", "fast"),),
        (("jitter", "many"),),
        (("jitter", "10@much"),),
        (("jitter", "0"),),
        (("jitter", "10@101"),),
        (("compress", "fp8@"),),
        (("scale", "class:gemm"),),
        (("scale", "=2"),),
        (("scale", "class:gemm=fast"),),
        (("scale", "class:gemm=-1"),),
        (("network_scale", "0"),),
        (("network_scale", "two"),),
        (("nvlink", "900"),),
    ],
)
def test_a_malformed_value_is_a_mistake_of_usage(order: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(UsageError):
        scenario_of(_as_typed(order))


def test_a_base_without_a_link_to_change_is_refused() -> None:
    order = _as_typed((("network_scale", "2"), ("base_nvlink", "900GBps")))
    with pytest.raises(UsageError, match=r"change nothing by themselves .--base-nvlink 900GBps"):
        require_use_of_base(order, [scenario_in(order)])
    several = [scenario_in(order), scenario_in(_as_typed((("nvlink", "x2"),)))]
    require_use_of_base(order, several)


@pytest.mark.parametrize(
    "line",
    [
        "--nvlink 900GBps",
        "--pcie x2",
        "--net 400Gbps",
        "--net-latency +20us",
        "--wan 100Gbps,20ms",
        "--in-network off",
        "--collective-algo tree",
        "--bucket-mb 25",
        "--compress topk:0.01",
        "--compress fp8@class:collective",
    ],
)
def test_a_what_if_knows_the_option_that_makes_it(line: str, tmp_path: Path) -> None:
    option, value = line.split()
    typed = ((option[2:].replace("-", "_"), value),)
    made = scenario_of(_as_typed(typed)).transforms
    assert [change.flag for change in made] == [line]
    file = tmp_path / "same.yaml"
    file.write_text(msgspec.yaml.encode({"transforms": made}).decode(), encoding="utf-8")
    assert scenario_of(_as_typed((("scenario", str(file)),))).transforms == made


def test_flags_say_more_of_the_machine_than_files(tmp_path: Path) -> None:
    file = tmp_path / "slow.yaml"
    text = (
        "base: {gpu: a100, net: 200Gbps, gpus_per_node: 4}\ntransforms: [{kind: nvlink, rate: x2}]"
    )
    file.write_text(text, encoding="utf-8")
    order = _as_typed((("scenario", str(file)),))
    assert scenario_of(order, Recorded(gpu="H100", topology="t.yaml")).base == Recorded(
        gpu="H100", net="200Gbps", topology="t.yaml"
    )


def _as_typed(order: tuple[tuple[str, str], ...]) -> tuple:
    from replay.cli.stack import Typed

    return tuple(Typed(*pair) for pair in order)


def test_the_answer_names_the_changes_in_order(run: Run) -> None:
    trace = "sample_traces/ddp8_h100"
    first = run(trace, "--network-scale", "2", "--remove", "class:memcpy")
    second = run(trace, "--remove", "class:memcpy", "--network-scale", "2")
    assert "what if  network x2, then remove class:memcpy" in first.out
    assert "what if  remove class:memcpy, then network x2" in second.out
