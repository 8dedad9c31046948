"""Columns keep apart however wide their cells are, and names fit into one."""

import pytest

from whatif.report.columns import LONGEST_NAME, aligned, short_name, to_type


def test_columns_keep_apart_whatever_their_width() -> None:
    rows = [
        ("rank", "clock", "host"),
        ("0", "+5,000,000,000.0 +/-12,345.6 us", "a"),
        ("12", "", ""),
    ]
    lines = list(aligned(rows, "><<"))
    assert lines == [
        "rank  clock                            host",
        "   0  +5,000,000,000.0 +/-12,345.6 us  a",
        "  12",
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("void at::native::k<4, F<(int)2>>(int, float*)", "at::native::k"),
        ("void (anonymous namespace)::softmax<float>(float*)", "softmax"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        (
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        ),
        ("<built-in method run>", "<built-in method run>"),
        ("", ""),
    ],
)
def test_kernel_is_named_without_types_and_parameters(name: str, shown: str) -> None:
    assert short_name(name) == shown


def test_name_that_stays_long_is_cut_with_a_mark() -> None:
    shown = short_name("x" * 100)
    assert len(shown) == LONGEST_NAME
    assert shown.endswith("…")


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("--nvlink x2", "--nvlink x2"),
        ("--no-stragglers", "--no-stragglers"),
        ("--remove sync:*", "--remove 'sync:*'"),
        ("--scale name:a b=0.5", "--scale 'name:a b=0.5'"),
    ],
)
def test_a_value_that_a_shell_would_change_stands_in_quotes(flag: str, expected: str) -> None:
    assert to_type(flag) == expected
