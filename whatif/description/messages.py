"""What pipeline stages send one another, and what its order says of stages and micro-batches."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ingest.vocab import CollectiveKind, TaskKind
from replay.graph.arrays import NONE, Int64, TaskGraph
from whatif.parallelism import Axis, Layout

_KINDS = (CollectiveKind.SEND, CollectiveKind.RECV, CollectiveKind.SEND_RECV)

_ENDS = 2


class Message(NamedTuple):
    """One end of a message, at the rank that posted it."""

    rank: int
    step: int
    posted_ns: int
    sends: bool
    peer: int
    """Rank at the other end; -1 where it is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Stages as the messages of a step tell them."""

    stage_of_rank: Mapping[int, int]
    following: Mapping[int, int]
    """By rank, the rank that its activations go to."""
    both_ways: bool = False
    """First messages go both ways along a link: activations enter at both ends."""
    cyclic: bool = False
    """The last stage sends activations to the first: several chunks of layers a stage."""


def messages_of(graph: TaskGraph, layout: Layout) -> list[Message]:
    """Ends of messages between stages, of which it is told who sends, by rank and time."""
    tasks, calls = graph.tasks, graph.collectives
    at = np.flatnonzero((tasks.kind == TaskKind.ARRIVE) & (tasks.step >= 0) & ~tasks.fixed)
    at = at[np.isin(calls.kind[tasks.collective[at]], [int(kind) for kind in _KINDS])]
    axis = np.array(
        [role.axis in (Axis.PIPELINE, Axis.WORLD, Axis.UNCLEAR) for role in layout.roles]
    )
    at = at[axis[calls.group[tasks.collective[at]]]] if len(at) else at
    peers = _peers(graph, at)
    found = []
    for task, peer in zip(at.tolist(), peers.tolist(), strict=True):
        sends = _sends(graph, task)
        if sends is not None:
            caller = int(tasks.caller[task])
            posted = tasks.ts_ns[task if caller == NONE else caller]
            found.append(
                Message(int(tasks.rank[task]), int(tasks.step[task]), int(posted), sends, peer)
            )
    return sorted(found, key=lambda one: (one.rank, one.step, one.posted_ns))


def _peers(graph: TaskGraph, at: Int64) -> Int64:
    """The other rank of each message: as matched, else the other member of a group of two."""
    call = graph.tasks.collective[at]
    rank = graph.tasks.rank[at].astype(np.int64)
    total = np.bincount(call, rank, minlength=len(graph.collectives.kind))[call]
    count = np.bincount(call, minlength=len(graph.collectives.kind))[call]
    peers = np.where(count == _ENDS, total.astype(np.int64) - rank, NONE)
    for place in np.flatnonzero(peers == NONE).tolist():
        members = set(graph.groups[int(graph.collectives.group[call[place]])].ranks)
        others = members - {int(rank[place])}
        if len(members) == _ENDS and len(others) == 1:
            peers[place] = others.pop()
    return peers


def _sends(graph: TaskGraph, task: int) -> bool | None:
    """Whether it is the sending end; None where neither kind nor names tell."""
    kind = graph.collectives.kind[graph.tasks.collective[task]]
    if kind != CollectiveKind.SEND_RECV:
        return bool(kind == CollectiveKind.SEND)
    for number in (int(graph.tasks.name[task]), int(graph.tasks.op[task])):
        name = graph.names[number].lower() if number != NONE else ""
        if ("send" in name) != ("recv" in name):
            return "send" in name
    return None


def chain_of(messages: Iterable[Message]) -> Chain | None:
    """Who follows whom: along each link the first message of a step carries activations."""
    first: dict[frozenset[int], Message] = {}
    senders: dict[frozenset[int], set[int]] = defaultdict(set)
    opened: dict[tuple[int, int], Message] = {}
    for one in sorted(messages, key=lambda message: (message.step, message.posted_ns)):
        if one.sends and one.peer != NONE:
            first.setdefault(frozenset((one.rank, one.peer)), one)
        opened.setdefault((one.step, one.rank), one)
    for one in opened.values():
        if one.sends and one.peer != NONE:
            senders[frozenset((one.rank, one.peer))].add(one.rank)
    if not first:
        return None
    following = {one.rank: one.peer for one in first.values()}
    both_ways = any(len(ends) == _ENDS for ends in senders.values())
    heads = sorted(set(following) - set(following.values()))
    cyclic = not heads
    stages: dict[int, int] = {}
    for head in heads or [min(following)]:
        rank: int | None = head
        stage = 0
        while rank is not None and rank not in stages:
            stages[rank] = stage
            rank, stage = following.get(rank), stage + 1
    return Chain(stage_of_rank=stages, following=following, both_ways=both_ways, cyclic=cyclic)


def orders_of(messages: Iterable[Message], chain: Chain) -> dict[int, str]:
    """By rank, the order of forward and backward in the first step that has messages.

    A stage has run forward when it posts activations to the next and backward begins with what
    comes back; of the last stage the messages with the one before tell.
    """
    mine: dict[int, list[Message]] = defaultdict(list)
    for one in messages:
        if not mine[one.rank] or mine[one.rank][0].step == one.step:
            mine[one.rank].append(one)
    orders = {}
    for rank, found in mine.items():
        after = chain.following.get(rank)
        if after is not None:
            letters = ["F" if one.sends else "B" for one in found if one.peer in (after, NONE)]
        else:
            letters = ["B" if one.sends else "F" for one in found]
        orders[rank] = "".join(letters)
    return orders
