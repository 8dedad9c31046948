"""Ranks of one role do the same work."""

from tests.builders import GraphBuilder
from whatif.transforms.base import Context
from whatif.transforms.rank_roles import rank_roles
from whatif.transforms.stragglers import NoStragglers


def pipeline() -> GraphBuilder:
    """Ranks 0 and 1 embed, ranks 2 and 3 compute a loss; all multiply."""
    build = GraphBuilder(ranks=(0, 1, 2, 3))
    for rank in build.ranks:
        own = "embed" if rank < 2 else "loss"
        for _ in range(4):
            build.kernel(rank, own, 10)
        build.kernel(rank, "gemm", 100 + rank)
    return build


def test_ranks_with_the_same_kernels_share_a_role() -> None:
    assert rank_roles(pipeline().build()).tolist() == [0, 0, 1, 1]


def test_one_more_kernel_among_many_makes_no_other_role() -> None:
    build = GraphBuilder(ranks=(0, 1))
    for rank in build.ranks:
        for _ in range(20):
            build.kernel(rank, "gemm", 10)
    build.kernel(1, "log", 1)
    assert rank_roles(build.build()).tolist() == [0, 0]


def test_the_order_in_which_ranks_are_listed_does_not_matter() -> None:
    build = pipeline()
    build.ranks = (3, 0, 2, 1)
    assert rank_roles(build.build()).tolist() == [0, 1, 0, 1]


def test_stragglers_are_levelled_within_their_role_only() -> None:
    graph = pipeline().build()
    after = NoStragglers().apply(graph, Context()).graph
    gemm = graph.tasks.name == graph.names.index("gemm")
    assert after.tasks.dur_ns[gemm].tolist() == [100, 100, 102, 102]


def test_ranks_without_a_device_are_compared_by_their_host_work() -> None:
    build = GraphBuilder(ranks=(0, 1), gpu=None)
    build.host(0, "aten::mm", 10)
    build.host(1, "aten::add", 10)
    assert rank_roles(build.build()).tolist() == [0, 1]
