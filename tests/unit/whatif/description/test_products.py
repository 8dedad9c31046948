"""Dims of products as profilers write the inputs of operators."""

import pytest

from whatif.description.products import product


@pytest.mark.parametrize(
    ("name", "dims", "expected"),
    [
        ("aten::mm", "[[256, 384], [384, 1536]]", (1, 256, 1536, 384)),
        ("aten::addmm", "[[1536], [256, 384], [384, 1536], [], []]", (1, 256, 1536, 384)),
        ("aten::linear", "[[2, 128, 384], [1536, 384], [1536]]", (1, 256, 1536, 384)),
        ("aten::bmm", "[[32, 2048, 64], [32, 64, 2048]]", (32, 2048, 2048, 64)),
        ("aten::baddbmm", "[[1], [32, 9, 64], [32, 64, 7], [], []]", (32, 9, 7, 64)),
        ("aten::matmul", "[[4, 16, 8], [8, 5]]", (1, 64, 5, 8)),
        ("aten::_grouped_mm", "[[64, 8], [4, 8, 6]]", (4, 16, 6, 8)),
        ("aten::add", "[[4, 4], [4, 4]]", (0, 0, 0, 0)),
        ("aten::mm", "[[4, 4]]", (0, 0, 0, 0)),
        ("aten::mm", "not JSON", (0, 0, 0, 0)),
        ("aten::mm", "[[], []]", (0, 0, 0, 0)),
    ],
)
def test_batch_m_n_k(name: str, dims: str, expected: tuple[int, ...]) -> None:
    assert product(name, dims) == expected
