"""Findings -> the answer of the JSON contract."""

from ingest.units import Nanos
from replay.graph.arrays import TaskGraph
from replay.graph.facts import GraphFacts
from replay.results.fidelity import Baseline, Trust
from replay.results.metrics import Breakdown
from whatif.report.answer import (
    Answer,
    BaselineFacts,
    BreakdownFacts,
    Parts,
    Prediction,
    RankFacts,
    TraceFacts,
    TrustFacts,
)
from whatif.report.findings import Findings
from whatif.study import Study


def answer_of(findings: Findings) -> Answer:
    """The contract's object; what no what-if was asked for is null."""
    graph, baseline, study = findings.graph, findings.baseline, findings.study
    return Answer(
        trace=_trace(graph, findings.facts, len(findings.reading.failed)),
        trust=_trust(baseline.trust),
        baseline=BaselineFacts(
            measured_ns=baseline.measured.mean_ns,
            replayed_ns=baseline.replayed.mean_ns,
            strict_ns=baseline.strict.mean_ns,
        ),
        prediction=None if study is None else _prediction(study),
        ranks=_ranks(graph, baseline, None if study is None else study.rank_ns),
        breakdown=BreakdownFacts(
            baseline=_parts(findings.breakdown),
            predicted=None if study is None else _parts(study.predicted),
        ),
    )


def gpu_names(graph: TaskGraph) -> str | None:
    """The device of the ranks; several kinds are joined by a comma."""
    names = dict.fromkeys(info.gpu for info in graph.ranks if info.gpu is not None)
    return ", ".join(names) or None


def _trace(graph: TaskGraph, facts: GraphFacts, failed: int) -> TraceFacts:
    return TraceFacts(
        files=len(facts.files),
        files_failed=failed,
        ranks=tuple(info.rank for info in graph.ranks),
        world_size=graph.world_size,
        gpu=gpu_names(graph) if facts.has_device else None,
        events=facts.events,
        steps=graph.steps if graph.steps_recorded else (),
        clock_offset_ns={str(file.rank): file.clock_offset_ns for file in facts.files},
    )


def _trust(trust: Trust) -> TrustFacts:
    return TrustFacts(
        grade=trust.grade,
        strict_error_frac=trust.strict_error_frac,
        explained_frac=trust.explained_frac,
        start_error_ns=trust.start_error_ns,
        unlinked_frac=trust.unlinked_frac,
        reasons=trust.reasons,
        issues=trust.issues,
    )


def _prediction(study: Study) -> Prediction:
    return Prediction(
        step_ns=study.step_ns,
        low_ns=study.low_ns,
        high_ns=study.high_ns,
        speedup=study.speedup,
        scenario=study.labels,
        assumptions=study.assumptions,
        no_effect=study.no_effect,
    )


def _ranks(
    graph: TaskGraph, baseline: Baseline, predicted_ns: tuple[Nanos, ...] | None
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
