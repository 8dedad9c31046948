"""The options of `replay sweep` -> a grid of scenarios."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import NamedTuple

from ingest.errors import UsageError
from replay.cli.asked import Asked, asked
from replay.cli.lists import NONE, values_of
from replay.cli.stack import Typed
from replay.cli.what_ifs import scenario_in
from whatif.scenario import load_scenario
from whatif.sweep import Point


class Axis(NamedTuple):
    """One occurrence of an option, and the values that it takes."""

    asked: Asked
    label: str
    """Name on the axis: the option, and for a factor its selector."""
    values: tuple[str, ...]


WHOLE_MACHINE = "gpu"
"""Brings its link along, so that a link asked for before it would change nothing."""


def axes_of(order: Sequence[Typed]) -> list[Axis]:
    """What-if options as typed, each with its values; accelerators come first.

    Raises:
        UsageError: a malformed list, or none of the options is a list.
    """
    known = asked()
    axes = [_axis(known[name], text) for name, text in order if name in known]
    if not any(len(axis.values) > 1 for axis in axes):
        raise UsageError(
            "nothing to sweep over: no what-if has several values that differ",
            hint="for example --nvlink 450:1800:4, or --network-scale 1,2,4",
        )
    return _told_apart(sorted(axes, key=lambda axis: axis.asked.name != WHOLE_MACHINE))


def _axis(option: Asked, text: str) -> Axis:
    values = values_of(option, text)
    where, equals, _ = text.rpartition("=") if "=" in option.metavar else ("", "", "")
    return Axis(option, f"{option.option[2:]}{f' {where}' if equals else ''}", values)


def _told_apart(axes: list[Axis]) -> list[Axis]:
    """Two axes of one name get numbers."""
    labels = [axis.label for axis in axes]
    return [
        axis._replace(label=f"{axis.label} ({labels[: at + 1].count(axis.label)})")
        if labels.count(axis.label) > 1
        else axis
        for at, axis in enumerate(axes)
    ]


def points_of(axes: Sequence[Axis], most: int) -> list[Point]:
    """All combinations; options stack in the order of their axes.

    Raises:
        UsageError: more than `most` of them, or a value that its option does not take.
        ScenarioError: a scenario file is wrong.
    """
    count = prod(len(axis.values) for axis in axes)
    if count > most:
        sizes = " x ".join(str(len(axis.values)) for axis in axes if len(axis.values) > 1)
        raise UsageError(
            f"a grid of {sizes} = {count:,} points is more than {most:,}",
            hint=f"fewer values, or --most {count}",
        )
    return list(_points(axes))


def _points(axes: Sequence[Axis]) -> Iterator[Point]:
    swept = [len(axis.values) > 1 for axis in axes]
    load = cache(load_scenario)  # each file once, not at every point
    for values in product(*(axis.values for axis in axes)):
        order = [
            Typed(axis.asked.name, value)
            for axis, value in zip(axes, values, strict=True)
            if value != NONE
        ]
        at = {
            axis.label: value.rpartition("=")[2] if "=" in axis.asked.metavar else value
            for axis, value, shown in zip(axes, values, swept, strict=True)
            if shown
        }
        yield Point(at=at, scenario=scenario_in(order, load))
