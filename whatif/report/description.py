"""`replay describe` as data (the JSON contract, `schema/describe.schema.json`) and in words."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

import msgspec
import numpy as np

from replay.graph.arrays import TaskGraph
from replay.graph.facts import GraphFacts
from whatif.description.described import Described, Finding
from whatif.models.shape import RunShape
from whatif.parallelism import Role, amount_told
from whatif.report.answer import TraceFacts
from whatif.report.columns import aligned
from whatif.report.text import numbers
from whatif.report.view import trace_facts

_RANKS_SHOWN = 28
_LEAST_EVIDENCE = 40


class FindingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One field of the run as it was understood."""

    what: str
    """Field of a description: `degrees.tp`, `model.layers`; `kind`."""
    value: str
    confidence: str
    """`given`, `named`, `measured`, `guessed` or `unknown`, the surest first."""
    evidence: str


class CommunicatorFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a communicator is for."""

    name: str
    axis: str
    size: int
    ranks: tuple[int, ...]
    """Empty where they were not recorded."""
    calls_per_step: float
    bytes_per_step: float | None
    """Sizes as nccl-tests counts them, of the calls of all ranks in the files, each once; null
    where some are not recorded."""
    transfer_ns_per_step: float
    """Of the same calls, without waiting."""
    confidence: str
    evidence: str


class StageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline stage."""

    stage: int
    ranks: tuple[int, ...]
    """In the files."""
    layers: tuple[int, ...]


class DescribeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What `replay describe TRACE --json` prints."""

    schema_version: int = 1
    trace: TraceFacts
    kind: str
    layout: str
    shape: RunShape
    """What a description has: fields that are left out have their defaults or are not known."""
    findings: tuple[FindingFacts, ...]
    communicators: tuple[CommunicatorFacts, ...]
    stages: tuple[StageFacts, ...]
    """Of a pipeline; one stage is none."""
    doubts: tuple[str, ...]


def describe_answer(
    graph: TaskGraph, facts: GraphFacts, described: Described, files_failed: int
) -> DescribeAnswer:
    """The contract's object."""
    return DescribeAnswer(
        trace=trace_facts(graph, facts, files_failed),
        kind=str(described.kind),
        layout=layout_words(described.shape),
        shape=described.shape,
        findings=tuple(_finding(one) for one in described.findings),
        communicators=tuple(_communicators(graph, described.layout.roles)),
        stages=tuple(_stages(described)),
        doubts=tuple(dict.fromkeys(described.doubts)),
    )


def layout_words(shape: RunShape) -> str:
    """`dp 8 (ZeRO 3) x tp 2 (sequence) x pp 4`."""
    degrees = shape.degrees
    zero = f" (ZeRO {degrees.zero}{_hybrid(degrees.shard)})" if degrees.zero else ""
    schedule = f" ({shape.options.schedule})" if degrees.pp > 1 else ""
    parts = (
        (degrees.dp, f"dp {degrees.dp}{zero}"),
        (degrees.tp, f"tp {degrees.tp}" + (" (sequence parallel)" if degrees.sp else "")),
        (degrees.cp, f"cp {degrees.cp} ({degrees.cp_kind})"),
        (degrees.pp, f"pp {degrees.pp}{schedule}"),
    )
    told = " x ".join(text for degree, text in parts if degree > 1) or "one rank"
    return told + (f", ep {degrees.ep}" if degrees.ep > 1 else "")


def _hybrid(shard: int | None) -> str:
    return "" if shard is None else f" over {shard}"


def _finding(one: Finding) -> FindingFacts:
    return FindingFacts(
        what=one.what, value=one.value, confidence=str(one.sure), evidence=one.evidence
    )


def _communicators(graph: TaskGraph, roles: Sequence[Role]) -> Iterator[CommunicatorFacts]:
    tasks, calls = graph.tasks, graph.collectives
    counted = (tasks.collective >= 0) & (tasks.step >= 0) & ~tasks.fixed
    mine = np.unique(tasks.collective[counted])
    steps = len(graph.steps)
    for number, (group, role) in enumerate(zip(graph.groups, roles, strict=True)):
        ours = mine[calls.group[mine] == number]
        sizes = calls.size_bytes[ours]
        described = group.description not in ("", "undefined")
        yield CommunicatorFacts(
            name=(group.description if described else group.name) or "without a name",
            axis=str(role.axis),
            size=role.size,
            ranks=group.ranks,
            calls_per_step=len(ours) / steps,
            bytes_per_step=float(sizes.sum()) / steps if (sizes >= 0).all() else None,
            transfer_ns_per_step=float(calls.transfer_ns[ours].sum()) / steps,
            confidence=str(role.confidence),
            evidence=role.evidence,
        )


def _stages(described: Described) -> Iterator[StageFacts]:
    if described.shape.degrees.pp == 1:
        return
    for stage, layers in enumerate(described.stage_layers):
        ranks = [rank for rank, place in described.stage_of_rank.items() if place == stage]
        yield StageFacts(stage=stage, ranks=tuple(sorted(ranks)), layers=layers)


def render_description(answer: DescribeAnswer, width: int) -> str:
    """For people: what the run is, each line with what it rests on."""
    sections = (
        list(_head(answer, width)),
        list(_findings(answer, width)),
        list(_communicator_lines(answer, width)),
        list(_stage_lines(answer)),
        list(_doubt_lines(answer, width)),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _head(answer: DescribeAnswer, width: int) -> Iterator[str]:
    trace = answer.trace
    of = f" of {trace.world_size:,}" if trace.world_size else ""
    noun = "rank" if len(trace.ranks) == 1 else "ranks"
    steps = f"steps {numbers(trace.steps)}" if trace.steps else "no steps recorded"
    text = f"{noun} {numbers(trace.ranks)}{of}, {trace.gpu or 'no GPU rows'}, {steps}"
    yield from wrap(f"run      {text}", width, subsequent_indent=" " * 9)
    if trace.made:
        yield from wrap(
            f"made     {trace.made.removeprefix('made ')}", width, subsequent_indent=" " * 9
        )
    yield f"kind     {answer.kind}"
    yield f"layout   {answer.layout}"


def _findings(answer: DescribeAnswer, width: int) -> Iterator[str]:
    rows = [(one.what, one.value, one.confidence) for one in answer.findings]
    lines = list(aligned([("what", "value", "known as"), *rows], "<><"))
    indent = max(map(len, lines)) + 2
    room = max(width - indent, _LEAST_EVIDENCE)
    yield f"{lines[0]:<{indent}}because"
    for line, one in zip(lines[1:], answer.findings, strict=True):
        folded = wrap(one.evidence, room, break_on_hyphens=False) or [""]
        yield f"{line:<{indent}}{folded[0]}".rstrip()
        for more in folded[1:]:
            yield " " * indent + more


def _communicator_lines(answer: DescribeAnswer, width: int) -> Iterator[str]:
    used = [one for one in answer.communicators if one.calls_per_step]
    if used:
        cells = [
            (
                one.name,
                one.axis,
                f"{one.size:,}",
                _ranks(one.ranks),
                f"{one.calls_per_step:,.4g}",
                _amount(one),
                one.confidence,
            )
            for one in used
        ]
        titles = ("communicator", "axis", "size", "ranks", "calls", "per step", "known by")
        lines = list(aligned([titles, *cells], "<<><>><"))
        yield lines[0]
        for line, one in zip(lines[1:], used, strict=True):
            yield line
            yield from wrap(one.evidence, width, initial_indent="    ", subsequent_indent="    ")
    idle = len(answer.communicators) - len(used)
    if idle:
        yield f"{idle:,} {'more ' if used else ''}without a call in the steps"


def _amount(one: CommunicatorFacts) -> str:
    if one.bytes_per_step is None:
        return amount_told(one.transfer_ns_per_step, "ns")
    return amount_told(one.bytes_per_step, "bytes")


def _ranks(ranks: tuple[int, ...]) -> str:
    text = numbers(ranks) or "-"
    return text if len(text) <= _RANKS_SHOWN else f"{text[: _RANKS_SHOWN - 1]}…"


def _stage_lines(answer: DescribeAnswer) -> Iterator[str]:
    if answer.stages:
        rows = [
            (str(one.stage), numbers(one.ranks) or "not in the files", numbers(one.layers) or "-")
            for one in answer.stages
        ]
        yield from aligned([("stage", "ranks", "layers"), *rows], "><<")


def _doubt_lines(answer: DescribeAnswer, width: int) -> Iterator[str]:
    for place, doubt in enumerate(answer.doubts):
        head = f"{'doubts' if place == 0 else '':<9}- "
        yield from wrap(
            doubt, width, initial_indent=head, subsequent_indent=" " * 11, break_on_hyphens=False
        )
