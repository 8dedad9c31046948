"""What accounts for differences that were made on purpose."""

from dataclasses import replace

import msgspec

from tests.sides import ALL_REDUCE, Work, run_of, scaled
from whatif.compare.contract import Cause, Diff
from whatif.compare.diff import diff
from whatif.compare.gate import parse_limit
from whatif.compare.markdown import render_markdown
from whatif.compare.match import How
from whatif.compare.side import Side
from whatif.compare.text import render

BUSY = [
    Work(host_ns=100, what="gemm", dur_ns=2_000_000),
    Work(host_ns=100, what="relu", dur_ns=300_000),
    Work(host_ns=100, what="norm", dur_ns=500_000),
]
"""A step in which the device never waits."""


def first_cause(found: Diff) -> Cause:
    return found.causes[0]


def test_a_kernel_twice_as_slow_is_named_first_with_its_size() -> None:
    found = diff(run_of(BUSY, BUSY), run_of(scaled(BUSY, "gemm", 2), scaled(BUSY, "gemm", 2)))
    assert found.change_ns == 2_000_000
    assert found.sentence.startswith("B is 2.00 ms (71.4%) slower: +2.00 ms gemm kernels")
    cause = first_cause(found)
    assert (cause.name, cause.change_ns, cause.matched_by) == ("gemm", 2_000_000, How.SAME)
    assert (cause.effects.count_ns, cause.effects.longer_ns) == (0, 2_000_000)
    assert found.explained_frac == 1


def test_twice_as_many_is_told_as_a_number() -> None:
    found = diff(run_of(BUSY), run_of([*BUSY, BUSY[2]]))
    cause = first_cause(found)
    assert (cause.name, cause.effects.count_ns, cause.effects.longer_ns) == ("norm", 500_000, 0)
    assert (cause.count_a, cause.count_b) == (1, 2)


def test_what_is_hidden_less_is_told_as_that() -> None:
    a = [
        Work(host_ns=100, what=ALL_REDUCE, dur_ns=400_000),
        Work(host_ns=100, what="gemm", dur_ns=400_000),
    ]
    b = [
        Work(host_ns=100, what=ALL_REDUCE, dur_ns=400_000),
        Work(host_ns=100, what="gemm", dur_ns=100_000),
    ]
    found = diff(run_of(a), run_of(b))
    cause = next(one for one in found.causes if one.part == "exposed_transfer")
    assert abs(cause.effects.exposed_ns - 300_000) < 1_000
    assert cause.effects.count_ns == cause.effects.longer_ns == 0


def test_new_and_gone_work_is_listed() -> None:
    other = [replace(BUSY[0], what="relu", op="aten::relu", shape=3), *BUSY[1:]]
    found = diff(run_of(BUSY), run_of(other))
    alone = {one.matched_by: one.name or one.name_b for one in found.causes if one.change_ns}
    assert alone[How.GONE] == "gemm"
    assert found.comparability.lone_frac > 0


def renamed(side: Side, names: dict[str, str]) -> Side:
    """The same run with kernels of other names."""
    graph = side.graph
    called = tuple(names.get(name, name) for name in graph.names)
    gpus = tuple(replace(rank, gpu="AMD Instinct MI300X") for rank in graph.ranks)
    return replace(side, graph=replace(graph, names=called, ranks=gpus))


def test_the_kernel_of_another_library_is_found_by_its_operator() -> None:
    a = run_of(BUSY)
    b = renamed(run_of(scaled(BUSY, "gemm", 3)), {"gemm": "Cijk_Ailk", "cudaLaunchKernel": "hipL"})
    found = diff(a, b)
    cause = first_cause(found)
    assert (cause.name, cause.name_b, cause.matched_by) == ("gemm", "Cijk_Ailk", How.RENAMED)
    assert cause.change_ns == 4_000_000
    assert not found.comparability.is_same_gpu
    assert any("MI300X" in reason for reason in found.comparability.reasons)


def test_other_shapes_of_the_same_kernel_are_the_same_work() -> None:
    b = [replace(work, shape=2) for work in BUSY]
    found = diff(run_of(BUSY), run_of(b))
    compute = {one.matched_by for one in found.causes if one.part == "compute"}
    assert compute == {How.RESHAPED}


def test_launches_of_another_vendor_are_the_same_call() -> None:
    slow_host = [replace(work, host_ns=50_000, dur_ns=1_000) for work in BUSY]
    found = diff(run_of(slow_host), renamed(run_of(slow_host), {"cudaLaunchKernel": "hipLaunchK"}))
    call = next(one for one in found.causes if one.name == "cudaLaunchKernel")
    assert (call.name_b, call.change_ns) == ("hipLaunchK", 0)


def test_a_rank_that_became_slow_is_a_new_straggler() -> None:
    step = [*BUSY, Work(host_ns=100, what=ALL_REDUCE, dur_ns=100_000)]
    late = {2: 3_000_000}
    found = diff(run_of(step, ranks=range(4)), run_of(step, ranks=range(4), slow=late))
    assert [rank.rank for rank in found.ranks if rank.is_new_straggler] == [2]
    assert "rank 2 makes others wait" in render(found)
    group = max(found.groups, key=lambda one: one.change_ns)
    assert group.key in ("exposed_wait/all_reduce", "idle/host work")


def test_runs_of_other_rank_counts_are_compared_by_their_means() -> None:
    found = diff(run_of(BUSY, ranks=range(2)), run_of(BUSY, ranks=range(3)))
    assert found.change_ns == 0
    assert len(found.ranks) == 2
    assert "files of 2 ranks against 3" in found.comparability.reasons


def test_a_change_within_the_spread_of_the_steps_is_not_told_as_a_regression() -> None:
    a = [scaled(BUSY, "gemm", factor) for factor in (1, 3, 2)]
    b = [scaled(BUSY, "gemm", factor) for factor in (2, 3, 2)]
    found = diff(run_of(*a), run_of(*b), parse_limit("1%", "--max-regression"))
    assert found.is_noise
    assert found.sentence.startswith("no difference beyond noise")
    assert found.gate is not None
    assert found.gate.is_passed
    assert "by chance" in found.gate.reason
    told = render(found)
    assert "has a named cause" not in told
    (row,) = (line for line in told.splitlines() if line.startswith("gemm kernels"))
    assert row.endswith("within noise")


def test_the_gate_fails_beyond_limit_and_noise() -> None:
    a, b = run_of(BUSY, BUSY), run_of(scaled(BUSY, "gemm", 2), scaled(BUSY, "gemm", 2))
    for text, is_passed in (("5%", False), ("1.9ms", False), ("80%", True), ("2.1ms", True)):
        gate = diff(a, b, parse_limit(text, "--max-regression")).gate
        assert gate is not None
        assert gate.is_passed is is_passed
    gate = diff(b, a, parse_limit("0", "--max-regression")).gate
    assert gate is not None
    assert gate.is_passed


def test_a_run_with_and_one_without_a_device_are_not_held_to_be_the_same() -> None:
    a = run_of(BUSY)
    b = replace(a, facts=replace(a.facts, has_device=False))
    found = diff(a, b)
    assert not found.comparability.is_same_kind
    assert found.comparability.confidence == "low"


def test_the_text_fits_on_a_screen_and_says_the_verdict_first() -> None:
    step = [*BUSY, Work(what=ALL_REDUCE, dur_ns=100_000)]
    found = diff(
        run_of(step, step, ranks=range(4)),
        run_of(scaled(step, "norm", 3), step, ranks=range(4), slow={1: 9_000}),
        parse_limit("1%", "--max-regression"),
    )
    lines = render(found).splitlines()
    assert lines[0].split(":")[0] == found.sentence.split(":")[0]
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


def test_names_mean_nothing_to_markdown_or_html() -> None:
    name = "<script>[x](y)&`z|w"
    step = [*BUSY, Work(what="gemm", dur_ns=900_000)]
    a, b = run_of(BUSY, BUSY), renamed(run_of(step, step), {"gemm": name})
    found = diff(a, b)
    trace = msgspec.structs.replace(found.a.trace, gpu="<script>")
    run = msgspec.structs.replace(found.a, name="a`b", trace=trace)
    text = render_markdown(msgspec.structs.replace(found, a=run))
    assert "<" not in text
    assert "``a`b``" in text
    assert "\\[x\\](y)&amp;\\`z\\|w" in text
