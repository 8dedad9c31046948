"""The door: a what-if that edits the target of a relayout."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ingest.errors import ScenarioError
from replay.graph.arrays import TaskGraph
from whatif.description.described import Described, Sure
from whatif.description.file import load_said
from whatif.description.infer import THE_FILE, describe
from whatif.models.shape import RunShape
from whatif.transforms.base import Applied, BeforeRelayout, Context
from whatif.transforms.machine import known
from whatif.transforms.relayout.parts import Ask
from whatif.transforms.relayout.rebuild import rebuilt
from whatif.transforms.relayout.structure import canonical

Edit = Callable[[RunShape], RunShape]
"""Target as it is -> as the what-if wants it."""


def relayout(
    graph: TaskGraph, context: Context, edit: Edit, label: Callable[[RunShape, RunShape], str]
) -> Applied:
    """Edit the target of the relayout and make its graph, unless the next what-if edits it too.

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
    same = canonical(target) == canonical(start.target)
    reason = _nothing(shown) if same and not (start.pending and target != start.target) else None
    noted = replace(start, target=target, pending=start.pending or not same)
    if context.relayout_follows or not noted.pending:
        after = replace(context, before_relayout=noted)
        return Applied(graph=graph, label=shown, context=after, no_effect=reason)
    if canonical(target) == canonical(start.described.shape):
        return _back(noted, shown)
    return _made(noted, shown, reason)


def _nothing(shown: str) -> str:
    return f"the run has that already, or nothing that it concerns ({shown})"


def _back(noted: BeforeRelayout, shown: str) -> Applied:
    """The run as it was before the first what-if about the layout."""
    as_was = replace(
        noted,
        changed=noted.graph,
        made=noted.described,
        pending=False,
        rests_on=None,
        memory=None,
    )
    return Applied(
        graph=noted.graph,
        label=shown,
        context=replace(noted.context, before_relayout=as_was, relayout_follows=False),
    )


def _made(noted: BeforeRelayout, shown: str, reason: str | None) -> Applied:
    """The run in the layout of the target."""
    now = known(noted.graph, noted.context)
    described, target = noted.described, noted.target
    result = rebuilt(noted.graph, Ask(described=described, target=target, context=now))
    samples = _samples(target) / max(_samples(described.shape), 1e-9)
    graph = result.graph
    return Applied(
        graph=graph,
        label=shown,
        context=replace(
            result.context,
            anchor=None,
            compute=None,
            before_replicas=None,
            recorded_latency_ns=None,
            relayout_follows=False,
            samples_factor=noted.context.samples_factor * samples,
            before_relayout=replace(
                noted,
                changed=graph,
                made=result.described,
                pending=False,
                rests_on=result.rests_on,
                memory=result.memory,
            ),
        ),
        assumptions=(*result.assumptions, *_guessed(described, target)),
        known_errors=result.known_errors,
        no_effect=reason,
    )


def _guessed(described: Described, target: RunShape) -> tuple[str, ...]:
    """Bytes of a parameter that rest on a guess, where parameters come to be gathered."""
    if target.degrees.zero <= described.shape.degrees.zero:
        return ()
    what = "elements.parameter"
    return tuple(
        f"parameters of {one.value} bytes are a guess ({one.evidence}); "
        f"--describe FILE says it: {what}"
        for one in described.findings
        if one.what == what and one.sure is Sure.GUESSED
    )


def _start(graph: TaskGraph, context: Context) -> BeforeRelayout:
    """Of what-ifs about the layout in a row the first one's run; else the run as it is here."""
    earlier = context.before_relayout
    if earlier is not None and earlier.changed is graph:
        return earlier
    described = _described(graph, context) if earlier is None else _still(earlier, graph)
    return BeforeRelayout(
        graph=graph,
        context=replace(context, before_relayout=None),
        described=described,
        target=described.shape,
        changed=graph,
        made=described,
    )


def _described(graph: TaskGraph, context: Context) -> Described:
    path = context.recorded.describe
    said = None if path is None else load_said(Path(path))
    return describe(graph, said, THE_FILE if path is None else path)


def _still(earlier: BeforeRelayout, graph: TaskGraph) -> Described:
    """What an earlier what-if about the layout made of the run still holds after the others.

    Raises:
        ScenarioError: one of them took tasks away or put some in.
    """
    if len(earlier.made.labels) != graph.n_tasks:
        raise ScenarioError(
            "between two what-ifs about the layout another one took tasks away or put some in",
            hint="put the what-ifs about degrees, batch and model side by side",
        )
    return earlier.made


def _samples(shape: RunShape) -> float:
    batch = shape.batch
    return shape.degrees.dp * batch.micro_batches * (batch.samples or 1.0)
