"""FLOPs of a recording against those that torch counts while the same calls run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest.normalise.flops import flops_of
from replay.api import sql

torch: Any = pytest.importorskip("torch", reason="torch is optional: it records and counts here")
profiler: Any = pytest.importorskip("torch.profiler")
counter: Any = pytest.importorskip("torch.utils.flop_counter")


def _linear() -> None:
    layer = torch.nn.Linear(12, 7)
    layer(torch.randn(5, 3, 12, requires_grad=True)).sum().backward()


def _matmul() -> None:
    left = torch.randn(4, 1, 6, 3, requires_grad=True)
    (left @ torch.randn(5, 3, 2)).sum().backward()


def _convolution() -> None:
    layer = torch.nn.Conv2d(4, 6, (3, 5), stride=(2, 1), padding=(1, 2), dilation=(1, 2))
    layer(torch.randn(2, 4, 17, 19, requires_grad=True)).sum().backward()


def _first_convolution() -> None:
    torch.nn.Conv1d(3, 8, 5, stride=2)(torch.randn(2, 3, 40)).sum().backward()


def _transposed_convolution() -> None:
    layer = torch.nn.ConvTranspose2d(4, 6, 3, stride=2)
    layer(torch.randn(2, 4, 9, 9, requires_grad=True)).sum().backward()


def _attention_of_products() -> None:
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        query = torch.randn(2, 3, 16, 8, requires_grad=True)
        torch.nn.functional.scaled_dot_product_attention(query, query, query).sum().backward()


def _products() -> None:
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    torch.mm(a, b)
    torch.addmm(torch.randn(5), a, b)
    torch.bmm(a.expand(2, 3, 4), b.expand(2, 4, 5))
    torch.baddbmm(torch.randn(2, 3, 5), a.expand(2, 3, 4), b.expand(2, 4, 5))


@pytest.mark.parametrize(
    "work",
    [
        _linear,
        _matmul,
        _convolution,
        _first_convolution,
        _transposed_convolution,
        _attention_of_products,
        _products,
    ],
)
def test_a_recording_tells_the_flops_that_torch_counts(
    work: Callable[[], None], tmp_path: Path
) -> None:
    counted = counter.FlopCounterMode(display=False)
    with counted:
        work()
    cpu = profiler.ProfilerActivity.CPU
    with profiler.profile(activities=[cpu], record_shapes=True) as recorded:
        work()
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    found = sql([tmp_path / "trace.json"], "SELECT sum(flops) AS flops FROM cpu_op").rows
    assert counted.get_total_flops() > 0
    assert [list(row) for row in found] == [[counted.get_total_flops()]]


@pytest.mark.parametrize("kind", ["flash", "efficient", "cudnn"])
def test_attention_of_gpus_counts_as_torch_has_it(kind: str) -> None:
    name = f"_scaled_dot_product_{kind}_attention"
    query, key = [2, 8, 128, 64], [2, 8, 96, 64]
    registry = counter.flop_registry
    tensors = [torch.empty(shape, device="meta") for shape in (query, query, key, key)]
    forward = registry[getattr(torch.ops.aten, name)](*tensors[1:])
    backward = registry[getattr(torch.ops.aten, f"{name}_backward")](*tensors)
    assert flops_of(f"aten::{name}", [query, key, key], None) == forward
    assert flops_of(f"aten::{name}_backward", [query, query, key, key], None) == backward
