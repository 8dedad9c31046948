"""Laws of the comparison of any two runs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from replay.results.metrics import rank_breakdowns
from tests.sides import ALL_REDUCE, CLASSES, COPY, Step, Work, graph_of, run_of, side_of
from whatif.compare.account import account
from whatif.compare.contract import Diff
from whatif.compare.diff import diff
from whatif.compare.leaves import Account, Key, Part
from whatif.compare.side import Side

NAMES = (*CLASSES, COPY, ALL_REDUCE)


@st.composite
def works(draw: st.DrawFn) -> Work:
    """Host work and one launch."""
    return Work(
        host=draw(st.sampled_from(["aten::linear", "aten::add", ""])),
        host_ns=draw(st.integers(1, 40_000)),
        what=draw(st.sampled_from(NAMES)),
        dur_ns=draw(st.integers(1, 30_000)),
        stream=draw(st.sampled_from([7, 9])),
        shape=draw(st.integers(1, 2)),
        op=draw(st.sampled_from(["aten::mm", "aten::addmm"])),
    )


STEPS = st.lists(st.lists(works(), min_size=1, max_size=6), min_size=1, max_size=3)
SLOW = st.dictionaries(st.integers(0, 2), st.integers(1, 20_000), max_size=2)


@st.composite
def sides(draw: st.DrawFn) -> Side:
    """A run of one to three ranks and steps."""
    n_ranks = draw(st.integers(1, 3))
    slow = {rank: ns for rank, ns in draw(SLOW).items() if rank < n_ranks}
    return in_order(run_of(*draw(STEPS), ranks=range(n_ranks), slow=slow))


def in_order(side: Side) -> Side:
    """Only runs whose steps end one after another, as all recorded ones do."""
    assume((side.baseline.replayed.per_step_ns >= 0).all())
    return side


@given(sides())
@settings(max_examples=100, deadline=None)
def test_the_leaves_of_an_account_are_the_step_and_its_breakdown(side: Side) -> None:
    found = account(side)
    assert sum(leaf.spent_ns for leaf in found.leaves) == found.step_ns
    for rank, parts in zip(
        found.ranks, rank_breakdowns(side.graph, side.baseline.schedule), strict=True
    ):
        assert sum(rank.parts_ns.values()) == found.step_ns
        expected = {
            Part.COMPUTE: parts.compute_ns,
            Part.WAIT: parts.exposed_wait_ns,
            Part.TRANSFER: parts.exposed_comm_ns - parts.exposed_wait_ns,
            Part.MEMCPY: parts.exposed_memcpy_ns,
        }
        for part, spent_ns in expected.items():
            assert abs(rank.parts_ns[part] - spent_ns) <= 2  # each is rounded by itself


@given(sides(), sides())
@settings(max_examples=100, deadline=None)
def test_every_list_of_a_comparison_adds_up_to_the_change(a: Side, b: Side) -> None:
    found = diff(a, b)
    change_ns = found.b.step_ns - found.a.step_ns
    assert found.change_ns == change_ns
    for rows in (found.groups, found.causes, found.parts):
        assert sum(row.a_ns for row in rows) == found.a.step_ns
        assert sum(row.b_ns for row in rows) == found.b.step_ns
        assert sum(row.change_ns for row in rows) == change_ns
    for cause in found.causes:
        effects = cause.effects
        assert effects.count_ns + effects.longer_ns + effects.exposed_ns == cause.change_ns


@given(sides())
@settings(max_examples=75, deadline=None)
def test_a_run_does_not_differ_from_itself(side: Side) -> None:
    found = diff(side, side)
    assert found.change_ns == 0
    assert {row.change_ns for row in (*found.groups, *found.causes, *found.parts)} == {0}
    assert found.comparability.matched_frac == 1
    assert not any(rank.is_new_straggler for rank in found.ranks)


def changes(found: Diff, sign: int) -> Counter[tuple[str, int]]:
    """Groups and causes with their change, as a multiset."""
    rows = [(group.key, sign * group.change_ns) for group in found.groups]
    rows += [(cause.group, sign * cause.change_ns) for cause in found.causes]
    return Counter(rows)


@given(sides(), sides())
@settings(max_examples=100, deadline=None)
def test_the_other_way_round_is_the_opposite(a: Side, b: Side) -> None:
    there, back = diff(a, b), diff(b, a)
    assert changes(there, 1) == changes(back, -1)
    assert there.noise_ns == back.noise_ns
    assert there.comparability.matched_frac == back.comparability.matched_frac


def renamed(steps: Sequence[Step]) -> list[list[Work]]:
    return [[replace(work, stream=work.stream + 100) for work in step] for step in steps]


def told(found: Account) -> list[tuple[Key, int, float]]:
    return [(leaf.key, leaf.spent_ns, leaf.count) for leaf in found.leaves]


@given(STEPS, st.permutations(range(3)), SLOW)
@settings(max_examples=100, deadline=None)
def test_names_of_streams_and_order_of_ranks_do_not_matter(
    steps: list[list[Work]], order: list[int], slow: dict[int, int]
) -> None:
    before = account(in_order(side_of(graph_of(steps, ranks=range(3), slow=slow))))
    moved = {order.index(rank): late_ns for rank, late_ns in slow.items()}
    after = account(side_of(graph_of(renamed(steps), ranks=range(3), slow=moved)))
    assert told(before) == told(after)
    # Unlike the mean, the ranks are told apart.
    assert [rank.parts_ns for rank in before.ranks] == [
        after.ranks[order.index(rank)].parts_ns for rank in range(3)
    ]
