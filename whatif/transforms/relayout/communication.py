"""Collectives that come, go, or change members and sizes with another layout."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from msgspec.structs import replace as edited

from ingest.errors import ScenarioError
from ingest.vocab import CollectiveKind
from replay.graph.arrays import Bool, Int64
from whatif.models import gloo
from whatif.models.collectives import model
from whatif.models.exchanges.volume import Along
from whatif.tape.insert import inserted, without
from whatif.tape.inserting.rows import Insertions
from whatif.tape.segments import Tape
from whatif.transforms.relayout.exchanges.accumulated import with_parameters
from whatif.transforms.relayout.exchanges.axes import (
    AXES,
    STATE,
    Change,
    along_of,
    changes,
)
from whatif.transforms.relayout.exchanges.inside import Site, inside
from whatif.transforms.relayout.exchanges.links import Links, links_of
from whatif.transforms.relayout.exchanges.resize import resized
from whatif.transforms.relayout.exchanges.state import state
from whatif.transforms.relayout.exchanges.units import units_of
from whatif.transforms.relayout.exchanges.wrapping import without_wrapping
from whatif.transforms.relayout.offloaded import offloaded
from whatif.transforms.relayout.parts import Ask, Part

_MEGA = 1e6


def recommunicated(tape: Tape, ask: Ask) -> Part:
    """The tape with the collectives of the new layout, but for those between stages.

    Those of an axis that stays keep their measured times, scaled by the model's ratio where their
    members, places or sizes change; those of an axis that goes take no time; those that come take
    the model's time, as the run's own calls compare with it.

    Raises:
        ScenarioError: the run does not tell their sizes, or the links that they cross.
    """
    if ask.before.degrees == ask.target.degrees and _same_sizes(ask):
        return Part(tape=tape)
    _refuse_apart(ask)
    ask = _with_parameters(ask, tape)
    updated = offloaded(tape, ask)
    tape = updated.tape
    found = changes(ask.before, ask.target)
    along = along_of(tape.graph, ask.described.layout, ask.before)
    links = links_of(tape.graph, ask.context)
    staying = [change for change in found if change.stays]
    kept = resized(tape.graph, ask, along, staying, links.context)
    leaving = _of_axes(along, [change.along for change in found if change.leaves])
    changed = without(replace(tape, graph=kept.graph), leaving)
    changed, wrapping = without_wrapping(
        changed, [change.along for change in found if change.leaves]
    )
    additions = _additions(changed, ask, links, found)
    return Part(
        tape=inserted(changed, additions),
        assumptions=(
            *_come_told(additions),
            *_gone_told(leaving, found),
            *wrapping,
            *updated.assumptions,
            *_every_told(ask),
            *(links.told if additions else ()),
            *kept.assumptions,
            *_models_told(additions, links),
        ),
        known_errors=tuple(dict.fromkeys([*kept.known_errors, *_errors(additions, links)])),
    )


def _refuse_apart(ask: Ask) -> None:
    """Replicas that share state cannot go on for steps by themselves."""
    if ask.target.options.sync_every > 1 and ask.target.degrees.zero:
        raise ScenarioError(
            f"replicas share state (ZeRO stage {ask.target.degrees.zero}): none can train alone",
            hint="--zero 0 before it gives each its own",
        )


def _every_told(ask: Ask) -> tuple[str, ...]:
    every = ask.target.options.sync_every
    if every in {1, ask.before.options.sync_every}:
        return ()
    return (
        f"local SGD: parameters are averaged every {every} steps, behind the optimizer; each step "
        f"shown has 1/{every} of it. What that does to the training is not asked",
    )


def _with_parameters(ask: Ask, tape: Tape) -> Ask:
    model = with_parameters(ask.target.model, tape.graph, tape.labels)
    if model is ask.target.model:
        return ask
    before = edited(ask.before, model=edited(ask.before.model, parameters=model.parameters))
    return replace(
        ask,
        described=replace(ask.described, shape=before),
        target=edited(ask.target, model=model),
    )


def _same_sizes(ask: Ask) -> bool:
    """Nothing that collectives depend on changes."""
    return (
        ask.before.batch == ask.target.batch
        and ask.before.elements == ask.target.elements
        and ask.before.options == ask.target.options
        and ask.before.model == ask.target.model
    )


def _of_axes(along: Int64, axes: Sequence[Along]) -> Bool:
    return np.isin(along, [AXES.index(axis) for axis in axes])


def _additions(
    tape: Tape, ask: Ask, links: Links, found: tuple[Change, ...]
) -> tuple[Insertions, ...]:
    """What comes in, the axes inside a replica first: their sums precede exchanges of gradients."""
    coming = [change for change in found if change.comes]
    if not coming:
        return ()
    site = Site(ask=ask, tape=tape, units=units_of(tape), links=links)
    additions = [
        addition
        for change in coming
        if change.along not in STATE
        for addition in inside(site, change)
    ]
    additions += state(site, tuple(change for change in coming if change.along in STATE))
    return tuple(additions)


def _gone_told(leaving: Bool, found: tuple[Change, ...]) -> tuple[str, ...]:
    if not leaving.any():
        return ()
    axes = " and ".join(str(change.along) for change in found if change.leaves)
    return (f"{int(leaving.sum()):,} recorded collectives along {axes} go, with their launches",)


def _come_told(additions: tuple[Insertions, ...]) -> tuple[str, ...]:
    """One sentence per axis, kind and size: how many, how large, how long."""
    found: dict[tuple[str, int, int, str], list[tuple[int, float]]] = {}
    for addition in additions:
        if len(addition.after):
            each = round(float(addition.size_bytes.mean()))
            where = "beside the computation" if addition.beside else "in its way"
            kind = CollectiveKind(addition.kind).name.lower().replace("_", "-")
            key = (f"{kind}s ({addition.name.split()[0]})", each, addition.group.size, where)
            ms = float(addition.transfer_ns.mean()) / _MEGA
            found.setdefault(key, []).append((len(np.unique(addition.key)), ms))
    return tuple(
        f"new: {sum(count for count, _ in alike):,} {name} of {size / _MEGA:,.3g} MB among "
        f"{members}, {alike[0][1]:,.3g} ms each by the model, {where}"
        for (name, size, members, where), alike in found.items()
    )


def _models_told(additions: tuple[Insertions, ...], links: Links) -> tuple[str, ...]:
    if not additions:
        return ()
    if links.on_host:
        return (gloo.SOURCE,)
    factors = (links.inside_factor, links.between_factor)
    if factors == (1.0, 1.0):
        return (model.SOURCE,)
    shown = " and ".join(f"x{factor:.2f}" for factor in dict.fromkeys(factors))
    return (model.SOURCE, f"new collectives as the run's own compare with the model ({shown})")


def _errors(additions: tuple[Insertions, ...], links: Links) -> tuple[str, ...]:
    if not additions:
        return ()
    return (gloo.KNOWN_ERROR if links.on_host else ABSOLUTE_ERROR,)


ABSOLUTE_ERROR = (
    "transfers that were not recorded: by the model alone, whose range for them holds nine of ten "
    "public sweeps"
)
