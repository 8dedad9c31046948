"""Findings -> the answer of the JSON contract."""

import msgspec

from ingest.units import Nanos
from replay.graph.arrays import TaskGraph
from replay.graph.facts import GraphFacts
from replay.results.fidelity import Baseline
from replay.results.judgement import Judged, by_rank, by_step
from replay.results.metrics import Breakdown
from replay.results.outliers import LongStep
from replay.results.stragglers import RankLateness
from replay.results.unexplained import Place, places
from whatif.jitter import Spread
from whatif.levers import Lever
from whatif.report.advice import advice
from whatif.report.answer import (
    Answer,
    BaselineFacts,
    BreakdownFacts,
    GrownPart,
    JitterFacts,
    JudgedFacts,
    LateRank,
    LongStepFacts,
    Parts,
    PlaceFacts,
    Prediction,
    RankFacts,
    RateFacts,
    ReadingFacts,
    ShortLever,
    TraceFacts,
    TrustFacts,
    UnprofiledFacts,
)
from whatif.report.findings import Findings
from whatif.report.flops import flops_after
from whatif.report.layout import layout_facts, memory_facts, rests_on_facts
from whatif.report.rates import accelerators, are_known, peak_of, rates, step_flops
from whatif.report.reading import RunReading
from whatif.study import Study
from whatif.unprofiled import Unprofiled

PLACES = 50
"""So many places of unexplained time are told, the largest."""


def answer_of(findings: Findings) -> Answer:
    """The contract's object; what no what-if was asked for is null."""
    graph, baseline = findings.graph, findings.baseline
    unchanged = Answer(
        trace=trace_facts(graph, findings.facts, len(findings.reading.failed)),
        trust=_trust(findings),
        baseline=BaselineFacts(
            measured_ns=baseline.measured.mean_ns,
            replayed_ns=baseline.replayed.mean_ns,
            strict_ns=findings.recorded.strict.mean_ns,
            unprofiled=_unprofiled(findings.unprofiled),
        ),
        prediction=None,
        ranks=_ranks(graph, baseline, None),
        breakdown=BreakdownFacts(baseline=_parts(findings.breakdown), predicted=None),
        reading=_reading(findings.run),
        rates=_rates(findings),
        levers=None if findings.levers is None else tuple(map(_lever, findings.levers)),
    )
    return predicted_on(unchanged, findings)


def predicted_on(unchanged: Answer, findings: Findings) -> Answer:
    """The answer for the study of the findings; what the unchanged run tells stays as it is."""
    study = findings.study
    if study is None:
        return unchanged
    return msgspec.structs.replace(
        unchanged,
        prediction=_prediction(study, findings.facts.made),
        ranks=_ranks(findings.graph, findings.baseline, study.rank_ns),
        breakdown=BreakdownFacts(
            baseline=unchanged.breakdown.baseline, predicted=_parts(study.predicted)
        ),
        rates=_rates(findings),
    )


def gpu_names(graph: TaskGraph) -> str | None:
    """The device of the ranks; several kinds are joined by a comma."""
    names = dict.fromkeys(info.gpu for info in graph.ranks if info.gpu is not None)
    return ", ".join(names) or None


def trace_facts(graph: TaskGraph, facts: GraphFacts, failed: int) -> TraceFacts:
    """What was read."""
    return TraceFacts(
        files=len(facts.files),
        files_failed=failed,
        ranks=tuple(info.rank for info in graph.ranks),
        world_size=graph.world_size,
        gpu=gpu_names(graph) if facts.has_device else None,
        events=facts.events,
        steps=graph.steps if graph.steps_recorded else (),
        clock_offset_ns={str(file.rank): file.clock_offset_ns for file in facts.files},
        made=facts.made,
    )


def _trust(findings: Findings) -> TrustFacts:
    graph, base = findings.graph, findings.recorded
    trust = base.trust
    return TrustFacts(
        grade=trust.grade,
        strict_error_frac=trust.strict_error_frac,
        explained_frac=trust.explained_frac,
        start_error_ns=trust.start_error_ns,
        unlinked_frac=trust.unlinked_frac,
        reasons=trust.reasons,
        issues=trust.issues,
        start_error_p90_ns=trust.start.p90_ns,
        host_path_frac=trust.host_path_frac,
        evidence_frac=trust.evidence,
        by_step=tuple(map(_judged, by_step(graph, base))),
        by_rank=tuple(map(_judged, by_rank(graph, base))),
        unexplained=tuple(
            _place(graph, place) for place in places(graph, base.schedule, base.path)[:PLACES]
        ),
        advice=tuple(advice(findings)),
    )


def _judged(one: Judged) -> JudgedFacts:
    return JudgedFacts(
        number=one.number,
        measured_ns=one.measured_ns,
        replayed_ns=one.replayed_ns,
        strict_ns=one.strict_ns,
        strict_error_frac=one.strict_error_frac,
        device_tasks=one.start.tasks,
        start_error_ns=one.start.median_ns,
        start_error_p90_ns=one.start.p90_ns,
        unexplained_ns=one.unexplained_ns,
    )


def _place(graph: TaskGraph, place: Place) -> PlaceFacts:
    slice_id = int(graph.tasks.slice_id[place.example_task])
    return PlaceFacts(
        what=place.what,
        name=place.name,
        op=place.op,
        lane=place.lane_role,
        edge=place.edge,
        ranks=place.ranks,
        steps=place.steps,
        count=place.count,
        on_path_ns=place.on_path_ns,
        total_ns=place.total_ns,
        largest_ns=place.largest_ns,
        example_rank=place.example_rank,
        example_slice_id=slice_id if slice_id >= 0 else None,
    )


def _unprofiled(given: Unprofiled | None) -> UnprofiledFacts | None:
    if given is None:
        return None
    return UnprofiledFacts(step_ns=given.step_ns, host_factor=given.host_factor)


def _prediction(study: Study, made: str) -> Prediction:
    assumptions = (*([made] if made else ()), *study.assumptions)
    return Prediction(
        step_ns=study.step_ns,
        low_ns=study.low_ns,
        high_ns=study.high_ns,
        speedup=study.speedup,
        scenario=study.labels,
        assumptions=assumptions,
        no_effect=study.no_effect,
        jitter=_jitter(study.jitter),
        name=study.name,
        samples_factor=study.samples_factor,
        known_errors=study.known_errors,
        rests_on=rests_on_facts(study.rests_on),
        memory=memory_facts(study.memory),
        layout=layout_facts(study.layout),
    )


def _jitter(drawn: Spread | None) -> JitterFacts | None:
    if drawn is None:
        return None
    return JitterFacts(
        samples=drawn.samples,
        p50_ns=drawn.p50_ns,
        p95_ns=drawn.p95_ns,
        ranks_as_chance=drawn.ranks_as_chance,
    )


def _ranks(
    graph: TaskGraph, baseline: Baseline, predicted_ns: tuple[Nanos | None, ...] | None
) -> tuple[RankFacts, ...]:
    return tuple(
        RankFacts(
            rank=info.rank,
            measured_ns=baseline.measured.rank_mean_ns(place),
            replayed_ns=baseline.replayed.rank_mean_ns(place),
            predicted_ns=None if predicted_ns is None else predicted_ns[place],
        )
        for place, info in enumerate(graph.ranks)
    )


def _parts(parts: Breakdown) -> Parts:
    return Parts(
        compute_ns=parts.compute_ns,
        exposed_comm_ns=parts.exposed_comm_ns,
        exposed_memcpy_ns=parts.exposed_memcpy_ns,
        idle_ns=parts.idle_ns,
        exposed_wait_ns=parts.exposed_wait_ns,
    )


def _reading(run: RunReading) -> ReadingFacts:
    bound = run.bound
    return ReadingFacts(
        bound_by=str(bound.by),
        bound_rank=bound.rank,
        path_frac={cause.name.lower(): share for cause, share in bound.path_frac.items()},
        idle_frac=bound.idle_frac,
        idle_launch_frac=bound.idle_launch_frac,
        idle_input_frac=bound.idle_input_frac,
        cpu_ahead_ns={str(rank): ahead_ns for rank, ahead_ns in bound.ahead_ns.items()},
        cpu_ahead_steps=bound.ahead_steps,
        outside_wait_ns=run.late.outside_wait_ns,
        outside_wait_high_ns=run.late.outside_wait_high_ns,
        stragglers=tuple(_late_rank(late) for late in run.late.ranks if late.meetings),
        long_steps=tuple(_long_step(long) for long in run.long_steps),
    )


def _late_rank(late: RankLateness) -> LateRank:
    return LateRank(
        rank=late.rank,
        others=late.others,
        collectives=late.meetings,
        times_last=late.times_last,
        times_resolved=late.times_resolved,
        late_ns=late.late_ns,
        caused_wait_ns=late.caused_wait_ns,
        own_wait_ns=late.own_wait_ns,
        cost_ns=late.cost_ns,
        causes={cause.name.lower(): wait_ns for cause, wait_ns in late.causes.items()},
    )


def _long_step(long: LongStep) -> LongStepFacts:
    return LongStepFacts(
        step=long.step,
        step_ns=long.step_ns,
        median_ns=long.median_ns,
        grown=tuple(
            GrownPart(
                cause=more.cause.name.lower(),
                name=more.name,
                rank=more.rank,
                spent_ns=more.spent_ns,
                usual_ns=more.usual_ns,
            )
            for more in long.grown
        ),
    )


def _lever(lever: Lever) -> ShortLever:
    return ShortLever(
        flag=lever.flag_text, why=lever.why, step_ns=lever.step_ns, saving_ns=lever.saving_ns
    )


def _rates(findings: Findings) -> RateFacts | None:
    study, recorded = findings.study, findings.flops
    base, unprofiled = findings.baseline, findings.unprofiled
    step_ns = base.measured.mean_ns if unprofiled is None else base.replayed.mean_ns
    step_ns = step_ns if study is None else study.step_ns
    graph = findings.graph if study is None else study.graph
    factor = 1.0 if study is None else study.samples_factor
    workload = findings.workload.times(factor)
    recorded = flops_after(recorded, findings.graph, graph) if study is not None else recorded
    machine = accelerators(graph, has_device=findings.facts.has_device)
    if not are_known(workload, recorded, machine):
        return None
    found = rates(workload, step_ns, machine, recorded)
    flops = step_flops(workload, recorded, machine)
    peak = peak_of(machine, flops)
    is_recorded = flops is not None and flops.is_recorded
    return RateFacts(
        step_ns=step_ns,
        tokens_per_s=found.tokens_per_s,
        samples_per_s=found.samples_per_s,
        mfu_frac=found.mfu_frac,
        peak_flops_per_s=None if peak is None else peak.flops_per_s,
        peak_dtype=None if peak is None else peak.dtype,
        gpus=None if machine is None else machine.count,
        gpus_assumed="" if machine is None else machine.assumed,
        run_s=found.run_s,
        gpu_hours=found.gpu_hours,
        flops_per_step=None if flops is None else flops.per_step,
        flops_gpus=None if flops is None else flops.devices,
        flops_covered_frac=recorded.covered_frac if is_recorded else None,
        flops_dtype_frac=recorded.by_dtype if is_recorded else None,
    )
