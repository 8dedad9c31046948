"""Two runs -> their comparison."""

from collections.abc import Iterator, Sequence

from ingest.units import format_ms
from replay.graph import thresholds
from whatif.compare import causes as told
from whatif.compare.account import Account, Leaf, Part, account
from whatif.compare.contract import (
    CollectiveChange,
    Comparability,
    Diff,
    Group,
    LongStep,
    PartChange,
    RankChange,
    Run,
)
from whatif.compare.gate import Limit, judge
from whatif.compare.match import EXACT, How, Match, match
from whatif.compare.noise import noise_ns
from whatif.compare.side import Side
from whatif.report.view import gpu_names, trace_facts

NAMED = 3
"""Groups in the verdict."""
LEAST_NAMED = 0.05
"""A group is named there that makes up so much of the difference."""
LEAST_OF_STEP = 0.002
"""Where the difference is noise: one beyond its own noise with so much of the step."""
WELL_MATCHED = 0.9
"""Confidence is high where so much of the time is found again by name and place."""
POORLY_MATCHED = 0.5
POOR_GRADES = ("C", "D")


def diff(a: Side, b: Side, limit: Limit | None = None) -> Diff:
    """Compare two runs.

    Args:
        a: the baseline.
        b: the run that is judged.
        limit: how much slower it may be; None is no gate.
    """
    of_a, of_b = account(a), account(b)
    n_steps = (len(of_a.steps_ns), len(of_b.steps_ns))
    matches = match(of_a.leaves, of_b.leaves, by_class=gpu_names(a.graph) != gpu_names(b.graph))
    causes = told.causes(matches, n_steps)
    groups = told.groups(causes, matches, n_steps)
    change_ns = of_b.step_ns - of_a.step_ns
    noise = noise_ns(of_a.steps_ns, of_b.steps_ns)
    noise = None if noise is None else round(noise)
    is_noise = noise is not None and abs(change_ns) <= noise
    return Diff(
        sentence=_sentence(of_a.step_ns, change_ns, noise, groups),
        a=run_of(a),
        b=run_of(b),
        change_ns=change_ns,
        change_frac=change_ns / of_a.step_ns if of_a.step_ns else None,
        noise_ns=noise,
        is_noise=is_noise,
        explained_frac=_explained(change_ns, told.unnamed_ns(groups)),
        parts=_parts(
            {part: of_a.part_ns(part) for part in Part}, {part: of_b.part_ns(part) for part in Part}
        ),
        groups=groups,
        causes=causes,
        collectives=tuple(_collectives(of_a.leaves, of_b.leaves)),
        ranks=tuple(_ranks(a, b, of_a, of_b)),
        long_steps=(*_long_steps("a", a), *_long_steps("b", b)),
        comparability=_comparability(a, b, of_a, of_b, matches),
        gate=None if limit is None else judge(limit, change_ns, of_a.step_ns, noise),
    )


def run_of(side: Side) -> Run:
    """What both kinds of comparison say of a run."""
    times = side.baseline.replayed
    return Run(
        name=side.name,
        trace=trace_facts(side.graph, side.facts, len(side.failed)),
        has_device=side.facts.has_device,
        grade=side.baseline.trust.grade,
        step_ns=int(times.mean_ns),
        steps_ns=tuple(times.per_step_ns.tolist()),
    )


def _explained(change_ns: int, unnamed_ns: int) -> float | None:
    if not change_ns:
        return None
    return max(1 - abs(unnamed_ns) / abs(change_ns), 0.0)


def _sentence(step_ns: int, change_ns: int, noise: int | None, groups: Sequence[Group]) -> str:
    """The verdict, with the groups that make most of the difference."""
    if not change_ns:
        return "no difference: both steps take " + format_ms(step_ns)
    share = f" ({_share(change_ns, step_ns)})" if step_ns else ""
    size = f"{format_ms(abs(change_ns))}{share} {'slower' if change_ns > 0 else 'faster'}"
    if noise is None or abs(change_ns) > noise:
        named = [
            one for one in groups[:NAMED] if abs(one.change_ns) >= LEAST_NAMED * abs(change_ns)
        ]
        return f"B is {size}{_listed(': ', named)}"
    told = [one for one in groups if one.noise_ns and abs(one.change_ns) > one.noise_ns]
    notable = [one for one in told if abs(one.change_ns) >= LEAST_OF_STEP * step_ns][:NAMED]
    beyond = _listed("; beyond noise by themselves: ", notable)
    return f"no difference beyond noise (±{format_ms(noise)}): B is {size}{beyond}"


def _share(change_ns: int, step_ns: int) -> str:
    """In per cent, or how many times as long where it is more than double."""
    if change_ns > step_ns:
        return f"{(step_ns + change_ns) / step_ns:,.1f}x as long"
    return f"{abs(change_ns) / step_ns:.1%}"


def _listed(head: str, named: Sequence[Group]) -> str:
    """The groups with their changes; empty without any."""
    told = [f"{one.change_ns / 1e6:+,.2f} ms {one.name}" for one in named]
    return f"{head}{', '.join(told)}" if told else ""


def _parts(a: dict[Part, int], b: dict[Part, int]) -> tuple[PartChange, ...]:
    return tuple(
        PartChange(part=part, a_ns=a[part], b_ns=b[part], change_ns=b[part] - a[part])
        for part in Part
    )


def _collectives(a: Sequence[Leaf], b: Sequence[Leaf]) -> Iterator[CollectiveChange]:
    """By kind, communicator and size, the one with most exposed time first."""
    of_a, of_b = _calls(a), _calls(b)
    rows = [
        _collective(key, of_a.get(key, {}), of_b.get(key, {})) for key in sorted({*of_a, *of_b})
    ]
    yield from sorted(rows, key=lambda row: -(row.exposed_a_ns + row.exposed_b_ns))


_Call = tuple[str, str, int]


def _calls(leaves: Sequence[Leaf]) -> dict[_Call, dict[Part, tuple[float, float, int]]]:
    """Per call: number, duration and exposed time of its transfers and of its waits."""
    found: dict[_Call, dict[Part, tuple[float, float, int]]] = {}
    for leaf in leaves:
        if leaf.key.part not in (Part.TRANSFER, Part.WAIT):
            continue
        call = found.setdefault((leaf.key.cause, leaf.key.group, leaf.key.size_bytes), {})
        count, raw, spent = call.get(leaf.key.part, (0.0, 0.0, 0))
        call[leaf.key.part] = (count + leaf.count, raw + leaf.raw_ns, spent + leaf.spent_ns)
    return found


def _collective(
    key: _Call, a: dict[Part, tuple[float, float, int]], b: dict[Part, tuple[float, float, int]]
) -> CollectiveChange:
    def calls(of: dict[Part, tuple[float, float, int]]) -> float | None:
        return max((count for count, _, _ in of.values()), default=None)

    def mean(of: dict[Part, tuple[float, float, int]], part: Part) -> float | None:
        number = calls(of)
        return of.get(part, (0.0, 0.0, 0))[1] / number if number else None

    return CollectiveChange(
        kind=key[0],
        communicator=key[1],
        size_bytes=key[2] if key[2] >= 0 else None,
        calls_a=calls(a),
        calls_b=calls(b),
        transfer_a_ns=mean(a, Part.TRANSFER),
        transfer_b_ns=mean(b, Part.TRANSFER),
        wait_a_ns=mean(a, Part.WAIT),
        wait_b_ns=mean(b, Part.WAIT),
        exposed_a_ns=sum(spent for _, _, spent in a.values()),
        exposed_b_ns=sum(spent for _, _, spent in b.values()),
    )


def _ranks(a: Side, b: Side, of_a: Account, of_b: Account) -> Iterator[RankChange]:
    """Ranks of both runs, by number."""
    places = {info.rank: place for place, info in enumerate(b.graph.ranks)}
    cost_a = {late.rank: late.cost_ns for late in a.reading.late.ranks}
    cost_b = {late.rank: late.cost_ns for late in b.reading.late.ranks}
    for place, info in enumerate(a.graph.ranks):
        if info.rank not in places:
            continue
        other, rank = places[info.rank], info.rank
        before_ns, after_ns = cost_a.get(rank, 0), cost_b.get(rank, 0)
        notable_ns = thresholds.STRAGGLER_FRAC * of_b.step_ns
        yield RankChange(
            rank=rank,
            step_a_ns=int(a.baseline.replayed.rank_mean_ns(place)),
            step_b_ns=int(b.baseline.replayed.rank_mean_ns(other)),
            parts=_parts(of_a.ranks[place].parts_ns, of_b.ranks[other].parts_ns),
            caused_wait_a_ns=before_ns,
            caused_wait_b_ns=after_ns,
            is_new_straggler=after_ns > notable_ns and after_ns > 2 * before_ns,
        )


def _long_steps(run: str, side: Side) -> Iterator[LongStep]:
    for long in side.reading.long_steps:
        yield LongStep(run=run, step=long.step, step_ns=long.step_ns, median_ns=long.median_ns)


def _comparability(
    a: Side, b: Side, of_a: Account, of_b: Account, matches: Sequence[Match]
) -> Comparability:
    by_how: dict[How, int] = dict.fromkeys(How, 0)
    for how, spent_ns in told.found_again(matches):
        by_how[how] += spent_ns
    total_ns = max(sum(by_how.values()), 1)
    exact = sum(by_how[how] for how in EXACT) / total_ns
    lone = (by_how[How.NEW] + by_how[How.GONE]) / total_ns
    is_same_kind = of_a.has_device == of_b.has_device
    reasons = tuple(_reasons(a, b, exact, is_same_kind=is_same_kind))
    return Comparability(
        is_same_gpu=gpu_names(a.graph) == gpu_names(b.graph),
        is_same_ranks=_rank_numbers(a) == _rank_numbers(b),
        is_same_kind=is_same_kind,
        matched_frac=exact,
        renamed_frac=max(1 - exact - lone, 0.0),
        lone_frac=lone,
        confidence=_confidence(a, b, exact, is_same_kind=is_same_kind),
        reasons=reasons,
    )


def _rank_numbers(side: Side) -> tuple[int, ...]:
    return tuple(info.rank for info in side.graph.ranks)


def _confidence(a: Side, b: Side, exact: float, *, is_same_kind: bool) -> str:
    grades = {side.baseline.trust.grade for side in (a, b)}
    if not is_same_kind or exact < POORLY_MATCHED or "D" in grades:
        return "low"
    recorded = a.graph.steps_recorded and b.graph.steps_recorded
    if exact < WELL_MATCHED or not recorded or grades & {*POOR_GRADES}:
        return "medium"
    return "high"


def _reasons(a: Side, b: Side, exact: float, *, is_same_kind: bool) -> Iterator[str]:
    """What differs between the runs, or weakens the comparison."""
    if not is_same_kind:
        yield "one run has device rows and the other has none: their parts are not the same things"
    gpus = [gpu_names(side.graph) or "a GPU that is not named" for side in (a, b)]
    if gpus[0] != gpus[1] and is_same_kind:
        yield f"other GPUs: {gpus[0]} against {gpus[1]}"
    yield from _other_size(a, b)
    recorded = [side.graph.steps_recorded for side in (a, b)]
    if not any(recorded):
        yield "no steps recorded: each recording counts as one step, whatever it holds"
    elif not all(recorded):
        yield "only one run has recorded steps: the other counts as one, whatever it holds"
    elif min(len(side.graph.steps) for side in (a, b)) == 1:
        both = max(len(side.graph.steps) for side in (a, b)) == 1
        yield f"{'each' if both else 'one'} run has a single step: its noise is not known"
    if exact < WELL_MATCHED:
        yield f"{exact:.0%} of the time is found again by name and place, the rest by less or not"
    yield from _of_one_or_both(a, b)
    yield from _other_recording(a, b)


def _of_one_or_both(a: Side, b: Side) -> Iterator[str]:
    """Weaknesses of the recordings themselves."""
    poor = [run for run, side in (("A", a), ("B", b)) if side.baseline.trust.grade in POOR_GRADES]
    grades = "/".join(dict.fromkeys(_grade(side) for side in (a, b) if _grade(side) in POOR_GRADES))
    if poor:
        yield f"trust in the replay of {' and of '.join(poor)} is {grades}"
    lone = [run for run, side in (("A", a), ("B", b)) if _lacks_members(side)]
    if lone:
        yield (
            f"members of collectives are not in the files of {' and of '.join(lone)}: what is "
            "transfer and what waiting for them is told by the fastest of equal calls"
        )


def _grade(side: Side) -> str:
    return side.baseline.trust.grade


def _lacks_members(side: Side) -> bool:
    calls = side.graph.collectives
    return bool((calls.members_seen < calls.members_expected).any())


def _other_size(a: Side, b: Side) -> Iterator[str]:
    ranks = [len(side.graph.ranks) for side in (a, b)]
    worlds = [side.graph.world_size for side in (a, b)]
    if worlds[0] != worlds[1] and None not in worlds:
        yield f"other jobs: {worlds[0]} ranks against {worlds[1]}"
    if ranks[0] != ranks[1]:
        yield f"files of {ranks[0]} ranks against {ranks[1]}"
    elif _rank_numbers(a) != _rank_numbers(b):
        yield "files of other ranks"


def _other_recording(a: Side, b: Side) -> Iterator[str]:
    """Options of the profiler that cost time on the host."""
    files = [side.facts.files for side in (a, b)]
    for words, recorded in (
        ("input shapes", [any(file.has_shapes for file in each) for each in files]),
        ("Python stacks", [any(file.has_stacks for file in each) for each in files]),
    ):
        if recorded[0] != recorded[1]:
            with_them = "A" if recorded[0] else "B"
            yield f"only {with_them} was recorded with {words}, which cost time on its host"
