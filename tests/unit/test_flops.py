"""Facts about the FLOPs of one operator call by its recorded inputs."""

from typing import Any

import pytest

from ingest.normalise.flops import flops_of

Q = [2, 8, 128, 64]
"""Batch, heads, sequence, width of a head."""
Q_LAST = [2, 128, 8, 64]
"""The same in the layout of the flash kernels."""


def concrete(**values: str) -> list[str]:
    """Inputs by position, `_3="[1, 1]"`; tensors are empty."""
    places = {int(name[1:]): value for name, value in values.items()}
    return [places.get(at, "") for at in range(max(places, default=-1) + 1)]


@pytest.mark.parametrize(
    ("name", "dims", "flops"),
    [
        ("aten::mm", [[8192, 4096], [4096, 1536]], 2 * 8192 * 4096 * 1536),
        ("aten::mm", [[2, 3], [3, 5], [2, 5]], 60),
        ("aten::addmm", [[5], [2, 3], [3, 5], [], []], 60),
        ("aten::addmm_", [[2, 5], [2, 3], [3, 5], [], []], 60),
        ("aten::bmm", [[7, 2, 3], [7, 3, 5]], 420),
        ("aten::baddbmm", [[7, 2, 5], [7, 2, 3], [7, 3, 5], [], []], 420),
        ("aten::_scaled_mm", [[2, 3], [3, 5], [], []], 60),
        ("aten::_grouped_mm", [[10, 3], [4, 3, 5], [4]], 2 * 10 * 3 * 5),
        ("aten::linear", [[4, 2, 3], [5, 3], [5]], 240),
        ("aten::matmul", [[4, 1, 2, 3], [6, 3, 5]], 4 * 6 * 60),
        ("aten::matmul", [[3], [3]], 6),
        ("aten::matmul", [[4, 2, 3], [3]], 48),
        ("aten::scaled_dot_product_attention", [Q, Q, Q], 4 * 2 * 8 * 128 * 128 * 64),
        ("aten::_flash_attention_forward", [Q_LAST] * 3, 4 * 2 * 8 * 128 * 128 * 64),
        ("aten::_flash_attention_backward", [Q_LAST] * 5, 10 * 2 * 8 * 128 * 128 * 64),
    ],
)
def test_a_product_is_two_operations_for_each_pair_that_meets(
    name: str, dims: list[Any], flops: int
) -> None:
    assert flops_of(name, dims, None) == flops


def test_keys_of_fewer_heads_are_met_by_all_heads_of_the_queries() -> None:
    few = [2, 2, 128, 64]
    name = "aten::_scaled_dot_product_flash_attention"
    assert flops_of(name, [Q, few, few], None) == flops_of(name, [Q, Q, Q], None)


def test_a_convolution_counts_each_place_of_its_output() -> None:
    dims = [[4, 3, 224, 224], [768, 3, 16, 16], [768], [], [], [], [], [], []]
    given = concrete(_3="[16, 16]", _4="[0, 0]", _5="[1, 1]", _6="False", _7="[0, 0]", _8="1")
    assert flops_of("aten::convolution", dims, given) == 2 * 4 * 14 * 14 * 768 * 3 * 16 * 16


def test_stride_padding_and_dilation_decide_the_places() -> None:
    given = concrete(_3="[2]", _4="[3]", _5="[2]", _6="False")
    # (17 + 2 * 3 - 2 * (3 - 1) - 1) // 2 + 1 = 10 places
    assert flops_of("aten::_convolution", [[1, 1, 17], [1, 1, 3]], given) == 2 * 10 * 3


def test_libraries_have_padding_before_stride() -> None:
    dims = [[1, 1, 9, 9], [1, 1, 3, 3]]
    given = concrete(_2="[0, 0]", _3="[2, 2]", _4="[1, 1]", _5="1")
    assert flops_of("aten::cudnn_convolution", dims, given) == 2 * 4 * 4 * 9
    given = concrete(_3="[0, 0]", _4="[2, 2]", _5="[1, 1]", _6="1")
    assert flops_of("aten::miopen_convolution", [*dims, []], given) == 2 * 4 * 4 * 9


def test_a_transposed_convolution_counts_each_place_of_its_input() -> None:
    given = concrete(_3="[2, 2]", _4="[0, 0]", _5="[1, 1]", _6="True", _7="[0, 0]", _8="1")
    dims = [[2, 6, 5, 5], [6, 4, 3, 3]]
    assert flops_of("aten::convolution", dims, given) == 2 * 2 * 6 * 25 * 4 * 9


def test_gradients_of_a_convolution_count_where_asked_for_and_once_in_groups() -> None:
    dims = [[2, 8, 5, 5], [2, 4, 5, 5], [8, 2, 3, 3]]
    one = 2 * 2 * 8 * 25 * 2 * 9
    for mask, times in (("[True, True, False]", 2), ("[False, True, True]", 1)):
        given = concrete(_7="False", _9="2", _10=mask)
        assert flops_of("aten::convolution_backward", dims, given) == times * one


@pytest.mark.parametrize(
    ("name", "dims", "given"),
    [
        ("aten::add", [[2, 3], [2, 3]], None),
        ("aten::mm", None, None),
        ("aten::mm", [[2, 3]], None),
        ("aten::mm", [[2, 3], [4, 5]], None),
        ("aten::mm", [[2, 3], ["3", 5]], None),
        ("aten::mm", [[2, -3], [-3, 5]], None),
        ("aten::mm", "[[2, 3], [3, 5]]", None),
        ("aten::mm", [[10**200, 3], [3, 10**200]], None),
        ("aten::bmm", [[7, 2, 3], [6, 3, 5]], None),
        ("aten::matmul", [[4, 2, 3], [5, 3, 5]], None),
        ("aten::convolution", [[4, 3, 8, 8], [8, 3, 3, 3]], None),
        ("aten::convolution", [[4, 3, 8], [8, 3, 3]], concrete(_3="[0]", _4="[0]", _5="[1]")),
        ("aten::convolution_backward", [[2, 8, 5], [2, 4, 5], [8, 4, 3]], concrete(_10="[[")),
        ("aten::_flash_attention_forward", [[999, 8, 64]] * 3 + [[5], [5]], None),
        ("aten::_efficient_attention_forward", [[1, 999, 8, 64]] * 3 + [[], [5], [5]], None),
    ],
)
def test_what_the_inputs_do_not_tell_is_not_known(name: str, dims: object, given: object) -> None:
    assert flops_of(name, dims, given) is None
