"""Recorded collectives of axes that stay: new members, places and sizes, at measured times."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from replay.graph.arrays import Group, Int64, TaskGraph
from whatif.transforms.base import Context
from whatif.transforms.relayout.exchanges.axes import AXES, Change, bytes_factor, ranks_along
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.retime import retimed


@dataclass(frozen=True, slots=True, kw_only=True)
class Resized:
    """A graph whose recorded collectives have the members and sizes of the new layout."""

    graph: TaskGraph
    assumptions: tuple[str, ...] = ()
    known_errors: tuple[str, ...] = ()


def resized(
    graph: TaskGraph, ask: Ask, along: Int64, staying: Sequence[Change], context: Context
) -> Resized:
    """Give them their new members and sizes; times follow by the model's ratio.

    Args:
        graph: as the parts before have left it.
        ask: before and after.
        along: per collective, its axis.
        staying: axes whose collectives stay.
        context: the machine, with what the new ranks need of it.
    """
    target = graph
    for change in staying:
        target = _with_change(target, ask, along, change)
    if target is graph:
        return Resized(graph=graph)
    now = replace(context, anchor=None)
    moved = retimed(graph, now, now, changed=target)
    return Resized(
        graph=moved.graph,
        assumptions=moved.assumptions,
        known_errors=moved.known_errors,
    )


def _with_change(graph: TaskGraph, ask: Ask, along: Int64, change: Change) -> TaskGraph:
    factor = bytes_factor(ask.before, ask.target, change.along)
    moves = ask.before.degrees != ask.target.degrees
    if factor == 1 and change.before == change.after and not moves:
        return graph
    calls = graph.collectives
    mine = along == AXES.index(change.along)
    whole = mine & (calls.members_expected == change.before)
    expected = np.where(whole, change.after, calls.members_expected).astype(np.int32)
    sized = mine & (calls.size_bytes > 0)
    size = np.where(sized, np.rint(calls.size_bytes * factor), calls.size_bytes).astype(np.int64)
    lacking = calls.members_seen < calls.members_expected
    seen = np.where(lacking, np.minimum(calls.members_seen, expected), expected)
    groups = graph.groups
    if moves:
        of_axis = set(calls.group[whole].tolist())
        groups = tuple(
            _moved(group, ask, change) if number in of_axis else group
            for number, group in enumerate(groups)
        )
    return replace(
        graph,
        groups=groups,
        world_size=ask.target.degrees.world,
        collectives=replace(
            calls,
            size_bytes=size,
            members_expected=expected,
            members_seen=np.where(whole, seen, calls.members_seen).astype(np.int32),
        ),
    )


def _moved(group: Group, ask: Ask, change: Change) -> Group:
    ranks = ranks_along(ask.target, change.along, change.after)
    return replace(group, ranks=ranks, size=change.after)
