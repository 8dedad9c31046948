"""The door: a what-if that edits the target of a relayout."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from replay.graph.arrays import TaskGraph
from whatif.description.file import load_said
from whatif.description.infer import THE_FILE, describe
from whatif.models.shape import RunShape
from whatif.transforms.base import Applied, BeforeRelayout, Context
from whatif.transforms.machine import known
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.rebuild import rebuilt

Edit = Callable[[RunShape], RunShape]
"""Target as it is -> as the what-if wants it."""


def relayout(
    graph: TaskGraph, context: Context, edit: Edit, label: Callable[[RunShape, RunShape], str]
) -> Applied:
    """Edit the target of the relayout and make its graph.

    Args:
        graph: as the stack has left it.
        context: of the stack.
        edit: what the what-if changes.
        label: the change as it was understood, from the target before and after.

    Raises:
        ScenarioError: the run cannot have that layout, or does not tell enough for it.
    """
    start = _start(graph, context)
    target = edit(start.target)
    shown = label(start.target, target)
    if target == start.target:
        reason = f"the run has that already ({shown})"
        return Applied(graph=graph, label=shown, context=context, no_effect=reason)
    if target == start.described.shape:
        back = replace(
            start.context,
            before_relayout=replace(
                start, target=target, changed=start.graph, rests_on=None, memory=None
            ),
        )
        return Applied(graph=start.graph, label=shown, context=back)
    now = known(start.graph, start.context)
    made = rebuilt(start.graph, Ask(described=start.described, target=target, context=now))
    samples = _samples(target) / max(_samples(start.described.shape), 1e-9)
    return Applied(
        graph=made.graph,
        label=shown,
        context=replace(
            now,
            anchor=None,
            compute=None,
            samples_factor=start.context.samples_factor * samples,
            before_relayout=replace(
                start,
                target=target,
                changed=made.graph,
                rests_on=made.rests_on,
                memory=made.memory,
            ),
        ),
        assumptions=made.assumptions,
        known_errors=made.known_errors,
    )


def _start(graph: TaskGraph, context: Context) -> BeforeRelayout:
    """Of what-ifs about the layout in a row the first one's run; else the run as it is here."""
    earlier = context.before_relayout
    if earlier is not None and earlier.changed is graph:
        return earlier
    path = context.recorded.describe
    said = None if path is None else load_said(Path(path))
    described = describe(graph, said, THE_FILE if path is None else path)
    return BeforeRelayout(
        graph=graph,
        context=context,
        described=described,
        target=described.shape,
        changed=graph,
    )


def _samples(shape: RunShape) -> float:
    batch = shape.batch
    return shape.degrees.dp * batch.micro_batches * (batch.samples or 1.0)
