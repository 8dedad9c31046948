"""Forward, backward, optimizer and the nn.Module of device work, on either thread of autograd."""

from pathlib import Path

from tests.kineto import AUTOGRAD, MAIN, KinetoFile
from tests.reading import rows

PHASES = "SELECT name, phase FROM kernel ORDER BY name"
ENGINE = "autograd::engine::evaluate_function: AddmmBackward0"


def test_a_thread_filled_by_the_engine_is_backward_with_all_that_runs_beside(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.op("aten::linear", (0, 20))
    file.launched("forward", (1, 5), (10, 12))
    file.op(ENGINE, (30, 60), thread=AUTOGRAD)
    file.launched("backward", (31, 35), (40, 42), thread=AUTOGRAD)
    file.op("aten::as_strided", (61, 63), thread=AUTOGRAD)
    file.launched("glue", (61, 63), (64, 66), thread=AUTOGRAD)
    file.launched("triton", (67, 68), (69, 70), thread=AUTOGRAD)
    file.annotation("Optimizer.step#AdamW.step", (70, 90))
    file.launched("step", (71, 75), (80, 82))
    file.launched("no operator", (91, 92), (93, 94))
    assert rows(file.write(tmp_path / "t.json"), PHASES) == [
        ("backward", "backward"),
        ("forward", "forward"),
        ("glue", "backward"),
        ("no operator", None),
        ("step", "optimizer"),
        ("triton", "backward"),
    ]


def test_on_one_thread_only_the_engines_calls_are_backward(tmp_path: Path) -> None:
    file = KinetoFile()
    for start in (0, 1000):
        file.op("aten::linear", (start, start + 20))
        file.launched("forward", (start + 1, start + 5), (start + 10, start + 12))
        file.op("MyOwnBackward", (start + 21, start + 29))
        file.launched("named so", (start + 22, start + 25), (start + 26, start + 28))
        file.op(ENGINE, (start + 30, start + 400))
        file.op("AddmmBackward0", (start + 31, start + 390))
        file.launched("backward", (start + 35, start + 36), (start + 40, start + 42))
        file.op("aten::_fused_adamw_", (start + 400, start + 420))
        file.launched("step", (start + 401, start + 405), (start + 410, start + 412))
    assert sorted(set(rows(file.write(tmp_path / "t.json"), PHASES))) == [
        ("backward", "backward"),
        ("forward", "forward"),
        ("named so", "forward"),
        ("step", "optimizer"),
    ]


def test_without_a_backward_nothing_is_called_forward(tmp_path: Path) -> None:
    file = KinetoFile()
    file.op("aten::linear", (0, 20))
    file.launched("k", (1, 5), (10, 12))
    assert rows(file.write(tmp_path / "t.json"), PHASES) == [("k", None)]


def _module(file: KinetoFile, name: str, span: tuple[float, float], thread: int = MAIN) -> None:
    file.host_row("python_function", f"nn.Module: {name}", span, thread=thread)


def test_backward_belongs_to_the_module_whose_operator_made_it(tmp_path: Path) -> None:
    file = KinetoFile()
    _module(file, "Net_0", (0, 60))
    _module(file, "Linear_0", (5, 25))
    file.op("aten::linear", (6, 24), **{"Sequence number": 7, "Fwd thread id": 0})
    file.op("aten::addmm", (8, 23), **{"Sequence number": 7, "Fwd thread id": 0})
    file.launched("forward", (9, 12), (20, 30))
    file.op("aten::relu", (30, 50), **{"Sequence number": 8, "Fwd thread id": 0})
    file.op("aten::other", (0, 9), thread=900, **{"Sequence number": 8, "Fwd thread id": 0})
    for number, start in ((8, 100), (7, 150)):
        node = {"Sequence number": number, "Fwd thread id": 1}
        file.op(f"{ENGINE}", (start, start + 40), thread=AUTOGRAD, **node)
        file.op("AddmmBackward0", (start + 2, start + 30), thread=AUTOGRAD, **node)
        file.launched(f"of {number}", (start + 5, start + 8), (start + 10, start + 20 + number),
                      thread=AUTOGRAD)  # fmt: skip
    path = file.write(tmp_path / "t.json")
    assert rows(
        path,
        "SELECT k.name, m.name FROM kernel k LEFT JOIN slice m ON m.id = k.module_id ORDER BY 1",
    ) == [
        ("forward", "nn.Module: Linear_0"),
        ("of 7", "nn.Module: Linear_0"),
        ("of 8", "nn.Module: Net_0"),
    ]
    assert rows(
        path,
        "SELECT path, device_self_dur, device_total_dur, backward_dur FROM module_summary"
        " ORDER BY path",
    ) == [
        ("Net_0", 18_000, 10_000 + 17_000 + 18_000, 35_000),
        ("Net_0.Linear_0", 27_000, 27_000, 17_000),
    ]


def test_a_module_that_is_run_again_in_backward_is_counted_once(tmp_path: Path) -> None:
    file = KinetoFile()
    _module(file, "Linear_0", (0, 25))
    file.op("CheckpointFunction", (1, 24), **{"Sequence number": 3, "Fwd thread id": 0})
    file.launched("forward", (9, 12), (20, 30))
    node = {"Sequence number": 3, "Fwd thread id": 1}
    file.op(ENGINE, (100, 200), thread=AUTOGRAD, **node)
    _module(file, "Linear_0", (110, 140), AUTOGRAD)
    again = {"Sequence number": 1, "Fwd thread id": 0}
    file.op("aten::addmm", (112, 138), thread=AUTOGRAD, **again)
    file.launched("again", (115, 116), (120, 130), thread=AUTOGRAD)
    inner = {"Sequence number": 1, "Fwd thread id": 2}
    file.op(ENGINE, (150, 190), thread=AUTOGRAD, **inner)
    file.launched("backward", (160, 161), (170, 180), thread=AUTOGRAD)
    path = file.write(tmp_path / "t.json")
    assert rows(
        path,
        "SELECT path, calls, device_self_dur, device_total_dur, backward_dur FROM module_summary",
    ) == [("Linear_0", 2, 30_000, 30_000, 10_000)]
