"""Which ranks share nodes, domains and sites, and over what members of collectives are spread."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.errors import ScenarioError, UsageError
from replay.graph.arrays import TaskGraph
from tests.builders import GraphBuilder, data_parallel
from whatif.models.hardware import Accelerator, require
from whatif.parallelism import world_size
from whatif.recorded import Recorded
from whatif.topology import Topology, find_topology, mesh_links_of, spread, topology_of
from whatif.topology_file import load_topology

ALL = np.arange(16)


def numbered(gpus: int, **more: object) -> Topology:
    return Topology(gpus_per_node=gpus, domain_gpus=gpus, told="", **more)


def load(folder: Path, text: str) -> Topology:
    path = folder / "nodes.yaml"
    path.write_text(text, encoding="utf-8")
    return topology_of(load_topology(path), str(path))


def with_hosts(*hosts: str | None) -> TaskGraph:
    ranks = tuple(range(len(hosts)))
    graph = data_parallel(ranks=ranks, builder=GraphBuilder(ranks=ranks))
    infos = tuple(replace(info, host=host) for info, host in zip(graph.ranks, hosts, strict=True))
    return replace(graph, ranks=infos)


def h100() -> Accelerator:
    return require("H100")


def test_ranks_fill_nodes_in_order() -> None:
    assert numbered(4).node_of(ALL).tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4


def test_listed_nodes_come_first_and_the_others_follow() -> None:
    places = numbered(2, listed=((0, 2), (1, 3)))
    assert places.node_of(np.arange(8)).tolist() == [0, 1, 0, 1, 2, 2, 3, 3]
    assert places.pair_of(np.array([0, 2])).tolist() == [0, 0]


def test_a_domain_may_be_wider_than_a_node_but_not_than_a_site() -> None:
    rack = Topology(gpus_per_node=4, domain_gpus=16, told="")
    assert len(set(rack.domain_of(ALL).tolist())) == 1
    parted = replace(rack, site_nodes=(3, 1))
    assert parted.site_of(ALL).tolist() == [0] * 12 + [1] * 4
    assert len(set(parted.domain_of(ALL).tolist())) == 2


def test_bridges_join_neighbours_of_a_node() -> None:
    assert numbered(4).pair_of(np.arange(8)).tolist() == [0, 0, 1, 1, 4, 4, 5, 5]


@pytest.mark.parametrize(
    ("gpus", "world", "expected"),
    [(4, 16, [0] * 8 + [1] * 8), (8, 8, [0] * 4 + [1] * 4), (4, 12, [0] * 8 + [1] * 4)],
)
def test_a_split_parts_whole_nodes_where_there_are_several(
    gpus: int, world: int, expected: list[int]
) -> None:
    halves = numbered(gpus).split(world)
    assert halves.site_of(np.arange(world)).tolist() == expected
    assert halves.largest_site(world) == expected.count(0)


def test_names_of_hosts_tell_the_nodes() -> None:
    places = find_topology(with_hosts("a", "a", "b", "b"), h100())
    assert places.gpus_per_node == 2
    assert "host names" in places.told


@pytest.mark.parametrize("hosts", [("a", "a", "a", "a"), (None, None, None, None), ("a",) * 4])
def test_one_host_tells_nothing(hosts: tuple[str | None, ...]) -> None:
    assert "devices that the trace lists" in find_topology(with_hosts(*hosts), h100()).told


def test_ranks_with_one_device_are_on_different_nodes() -> None:
    graph = with_hosts(None, None, None, None)
    lanes = tuple(
        replace(lane, device=lane.rank % 2) if lane.device >= 0 else lane for lane in graph.lanes
    )
    places = find_topology(replace(graph, lanes=lanes), h100())
    assert places.gpus_per_node == 2
    assert "same device number" in places.told


def test_what_is_given_counts_more_than_what_the_trace_lists() -> None:
    graph = with_hosts("a", "a", "b", "b")
    assert find_topology(graph, h100(), Recorded(gpus_per_node=1)).gpus_per_node == 1


def test_racks_and_bridges_are_known_by_the_catalog() -> None:
    graph = data_parallel(builder=GraphBuilder(ranks=(0, 1), devices_seen=4, world_size=144))
    rack = find_topology(graph, require("GB200"))
    assert (rack.gpus_per_node, rack.domain_gpus) == (4, 72)
    pair = find_topology(graph, require("NVIDIA H100 PCIe"))
    assert (pair.gpus_per_node, pair.domain_gpus) == (4, 4)


@pytest.mark.parametrize(
    ("name", "links"), [("MI210", 3), ("H200 NVL", 3), ("MI300X", 7), ("H100", 7)]
)
def test_a_mesh_has_a_link_to_each_peer_that_it_joins(name: str, links: int) -> None:
    assert mesh_links_of(require(name)) == links


def test_members_in_the_files_tell_the_spread() -> None:
    build = GraphBuilder(ranks=(0, 1, 2))
    calls = {rank: build.call(rank, "c", 10) for rank in (0, 1, 2)}
    build.collective(10, callers={0: calls[0], 1: calls[1]})
    build.collective(10, callers=calls)
    over = spread(build.build(), numbered(2))
    assert over.domains.tolist() == [1, 2]
    assert over.largest.tolist() == [2, 2]
    assert over.sites.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("group", "expected", "domains", "largest"),
    [
        ((0, 4), 2, 2, 1),
        ((0, 1, 2, 3), 4, 1, 4),
        ((), 8, 2, 4),
        ((), 6, 2, 4),
        ((0, 4, 8), 2, 2, 1),
    ],
)
def test_members_that_are_missing_lie_where_their_communicator_does(
    group: tuple[int, ...], expected: int, domains: int, largest: int
) -> None:
    build = GraphBuilder(world_size=16)
    build.collective(10, callers={0: build.call(0, "c", 10)}, group=group, expected=expected)
    over = spread(build.build(), numbered(4))
    assert (over.domains.tolist(), over.largest.tolist()) == ([domains], [largest])


def test_the_size_of_a_communicator_tells_of_ranks_that_nothing_lists() -> None:
    build = GraphBuilder(devices_seen=0)
    build.collective(10, callers={0: build.call(0, "c", 10)}, group=(), expected=16)
    graph = replace(build.build(), world_size=None)
    assert world_size(graph) == 16
    assert find_topology(graph, h100()).gpus_per_node == 8


def test_a_file_says_nodes_cards_and_sites(tmp_path: Path) -> None:
    text = """
gpus_per_node: 4
domain_gpus: 8
nics: {per_node: 2, rate: 400Gbps, latency: 3us}
sites: [2, 2]
wan: {rate: 100Gbps, latency: 20ms}
"""
    places = load(tmp_path, text)
    assert places.nics_per_gpu == 0.5
    assert places.domain_gpus == 8
    assert places.site_of(ALL).tolist() == [0] * 8 + [1] * 8


def test_the_example_of_the_docs_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/what-if.md").read_text(encoding="utf-8")
    text = page.split("```yaml\n")[1].split("```")[0]
    places = load(tmp_path, text)
    assert (places.gpus_per_node, places.rails, places.has_sites) == (8, True, True)
    listed = load(tmp_path, text.replace("gpus_per_node", "# ").replace("# nodes: ", "nodes: "))
    assert listed.node_of(np.array([3, 10])).tolist() == [0, 1]


def test_ranges_and_lists_of_ranks_mean_the_same(tmp_path: Path) -> None:
    by_range = load(tmp_path, "nodes: ['0-3', '4-7']")
    by_list = load(tmp_path, "nodes: [[0, 1, 2, 3], [4, 5, 6, 7]]")
    assert by_range == by_list
    assert by_range.gpus_per_node == 4


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("gpus: 8", "gpus"),
        ("gpus_per_node: many", "$.gpus_per_node"),
        ("gpus_per_node: 0", "GPUs per node"),
        ("{}", "gpus_per_node"),
        ("gpus_per_node: 8\nnics: {rate: 400}", "$.nics"),
        ("gpus_per_node: 8\nnics: {rate: x2}", "$.nics"),
        ("gpus_per_node: 8\nnics: {per_node: 0}", "$.nics"),
        ("gpus_per_node: 8\nwan: {rate: 100Gbps}", "$.wan"),
        ("gpus_per_node: 8\nwan: {rate: 100Gbps, latency: 20}", "$.wan"),
        ("gpus_per_node: 8\noversubscription: 0.5", "oversubscription"),
        ("gpus_per_node: 8\ndomain_gpus: 12", "domain of 12"),
        ("gpus_per_node: 8\ndomain_gpus: 0", "domain of 0"),
        ("gpus_per_node: 8\nsites: [1, 0]", "site"),
        ("nodes: [[]]", "a node without a rank"),
        ("nodes: [[-1, 0]]", "rank -1"),
        ("nodes: ['0-99999999999']", "0-99999999999"),
        ("nodes: ['0-3', '3-5']", "rank 3"),
        ("nodes: ['3-0']", "3-0"),
        ("- 8", "no topology"),
        ("[" * 20_000, "no YAML"),
    ],
)
def test_a_mistake_names_the_file_and_the_place(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text)
    assert "nodes.yaml" in str(caught.value)
    assert place in str(caught.value)


def test_a_missing_file_is_a_mistake_of_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_topology(tmp_path / "nowhere.yaml")


def test_ranks_of_one_host_share_a_node_whatever_their_device_numbers() -> None:
    """Each process may see its own device alone, as number 0."""
    ranks = tuple(range(8))
    graph = data_parallel(ranks=ranks, builder=GraphBuilder(ranks=ranks, devices_seen=8))
    lanes = tuple(replace(lane, device=0) for lane in graph.lanes)
    unnamed = tuple(replace(info, host=None) for info in graph.ranks)
    alone = replace(graph, lanes=lanes, ranks=unnamed)
    assert find_topology(alone, h100()).gpus_per_node == 1
    infos = tuple(replace(info, host="a") for info in graph.ranks)
    assert find_topology(replace(alone, ranks=infos), h100()).gpus_per_node == 8
