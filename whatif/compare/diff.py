"""Two runs -> their comparison."""

from collections.abc import Iterator, Sequence

from ingest.units import format_ms
from replay.graph import thresholds
from whatif.compare import causes as told
from whatif.compare.account import account
from whatif.compare.comparability import comparability
from whatif.compare.contract import (
    CollectiveChange,
    Diff,
    Group,
    LongStep,
    PartChange,
    RankChange,
    Run,
)
from whatif.compare.gate import Limit, judge
from whatif.compare.leaves import Account, Leaf, Part
from whatif.compare.match import match
from whatif.compare.noise import noise_ns
from whatif.compare.side import Side
from whatif.report.view import gpu_names, trace_facts

NAMED = 3
"""Groups in the verdict."""
LEAST_NAMED = 0.05
"""A group is named there that makes up so much of the difference."""
LEAST_OF_STEP = 0.002
"""Where the difference is noise: one beyond its own noise with so much of the step."""


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
        comparability=comparability(a, b, of_a, of_b, matches),
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
