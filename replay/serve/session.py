"""One run that was read and replayed once, and answers what-ifs from memory."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ingest.errors import UsageError
from replay.api import levers, program
from replay.calls.answered import on_base
from replay.results.bound import input_frac, path_shares
from replay.results.critical_path import CriticalPath, critical_path
from replay.serve.contract import (
    Ask,
    Knobs,
    KnobState,
    PathShares,
    RunInfo,
    States,
    Written,
)
from replay.serve.knobs import Trial, knobs_of
from replay.serve.turns import Turns
from whatif.many import Ranges
from whatif.recorded import Recorded
from whatif.report.answer import Answer
from whatif.report.findings import Findings
from whatif.report.levers import LeversAnswer
from whatif.report.reading import bound_sentence
from whatif.report.view import answer_of, predicted_on
from whatif.scenario import Scenario, scenario_text
from whatif.study import Studies, Study
from whatif.transforms.registry import asks_for_machine

Parse = Callable[[Sequence[str]], Scenario]
"""Reads words of a command line; raises a UserError where they are no what-ifs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How the run was opened."""

    name: str
    """The traces as typed."""
    command: str
    """`replay TRACE...` with the options that say which part of the run counts."""
    start: Scenario
    """What the page begins with; its base is that of all answers."""


class Session:
    """Answers from memory; any thread may ask, replays of answers take turns."""

    def __init__(self, findings: Findings, asked: Asked, parse: Parse) -> None:
        """Begin.

        Args:
            findings: of the unchanged run, on the base of the scenario that the page begins with.
            asked: how the run was opened.
            parse: the command line's own reading of what-ifs.
        """
        self._findings = findings
        self._asked = asked
        self._parse = parse
        self._unchanged = answer_of(findings)
        self._studies = Studies(findings.graph, findings.baseline)
        self._last: tuple[Scenario, Study] | None = None
        self._turns = Turns()
        self._slow = Turns()
        self._states: tuple[KnobState, ...] | None = None
        self._in_loader_frac = input_frac(findings.graph, findings.fetching)

    def run(self) -> RunInfo:
        """The run, before any what-if."""
        unchanged, found = self._unchanged, self._findings
        return RunInfo(
            program=program(),
            name=self._asked.name,
            trace=unchanged.trace,
            grade=unchanged.trust.grade,
            measured_ns=unchanged.baseline.measured_ns,
            replayed_ns=unchanged.baseline.replayed_ns,
            bound=bound_sentence(found.run, has_device=found.facts.has_device),
            start=words_of(self._asked.start),
        )

    def begin(self) -> None:
        """Answer what the page begins with, so that its first answer is quick.

        Raises:
            ScenarioError: it does not fit the run.
        """
        self.what_if(Ask(flags=words_of(self._asked.start), ranges=Ranges.STEPS))

    def knobs(self) -> Knobs:
        """The knobs of this run; `states` tells which can do something for it."""
        return Knobs(knobs=knobs_of(self._findings.graph, self._base))

    def states(self, ask: Ask) -> States:
        """Which knobs can do something on top of a scenario.

        What can do something for the unchanged run is not tried again: another what-if that hides
        it may be taken back.

        Raises:
            UserError: the flags are no what-ifs, or do not fit the run.
            SupersededError: the page has asked anew.
        """
        graph, baseline = self._findings.graph, self._findings.baseline
        scenario, unchanged = self._scenario(ask), Scenario(base=self._base)
        with self._slow.turn(_states_of(ask.page)) as go_on:
            trial = Trial(graph, baseline, self._parse, go_on)
            if self._states is None:
                self._states = trial.states(knobs_of(graph, self._base), unchanged)
            if not scenario.transforms:
                return States(states=self._states)
            idle = {state.key for state in self._states if not state.can_act}
            knobs = [knob for knob in knobs_of(graph, self._base) if knob.key in idle]
            again = {state.key: state for state in trial.states(knobs, scenario)}
        return States(states=tuple(again.get(state.key, state) for state in self._states))

    def what_if(self, ask: Ask) -> Answer:
        """What `replay TRACE FLAGS --json` prints.

        Raises:
            UserError: the flags are no what-ifs, or do not fit the run.
            SupersededError: the page has asked anew.
        """
        scenario, ranges = self._scenario(ask), _ranges(ask.ranges)
        self._slow.overtake(_states_of(ask.page))
        if not scenario.transforms:
            with self._turns.turn(ask.page):
                return self._unchanged
        with self._turns.turn(ask.page) as go_on:
            study = self._studies.of(scenario, is_bounded=ranges is Ranges.FULL, between=go_on)
            self._last = (scenario, study)
        told = on_base(study, self._findings.unprofiled)
        return predicted_on(self._unchanged, replace(self._findings, study=told))

    def path(self, ask: Ask) -> PathShares:
        """What the critical path is made of, before and after.

        Raises:
            UserError: as `what_if`.
            SupersededError: as `what_if`.
        """
        found, scenario = self._findings, self._scenario(ask)
        before = self._shares(found.baseline.path)
        if not scenario.transforms:
            return PathShares(baseline=before, predicted=None)
        with self._turns.turn(f"path {ask.page}" if ask.page else ""):
            study = self._studied(scenario)
        after = self._shares(critical_path(study.graph, study.schedule), study)
        return PathShares(baseline=before, predicted=after)

    def levers(self, ask: Ask) -> LeversAnswer:
        """What every lever would give on top of a scenario, as `replay levers` tells it.

        Raises:
            UserError: as `what_if`.
            SupersededError: as `what_if`.
        """
        scenario = self._scenario(ask)
        with self._slow.turn(f"levers {ask.page}" if ask.page else ""):
            return levers(self._findings, scenario)

    def written(self, ask: Ask) -> Written:
        """The scenario as a command and as a file.

        Raises:
            UserError: the flags are no what-ifs.
        """
        scenario = self._scenario(ask)
        needs_base = any(map(asks_for_machine, scenario.transforms))
        base = scenario.base.flags if needs_base and scenario.base.is_given else ""
        parts = (self._asked.command, base, shlex.join(ask.flags))
        return Written(
            command=" ".join(part for part in parts if part), yaml=scenario_text(scenario)
        )

    @property
    def _base(self) -> Recorded:
        return self._asked.start.base

    def _scenario(self, ask: Ask) -> Scenario:
        return Scenario(base=self._base, transforms=self._parse(ask.flags).transforms)

    def _studied(self, scenario: Scenario) -> Study:
        """The last study where it is of this scenario, else a short one."""
        if self._last is None or self._last[0] != scenario:
            self._last = (scenario, self._studies.of(scenario, is_bounded=False))
        return self._last[1]

    def _shares(self, path: CriticalPath, study: Study | None = None) -> dict[str, float]:
        graph = self._findings.graph if study is None else study.graph
        found = path_shares(graph, path, self._in_loader_frac)
        return {cause.name.lower(): share for cause, share in found.items()}


def words_of(scenario: Scenario) -> tuple[str, ...]:
    """The what-ifs of a scenario as words of a command line."""
    return tuple(
        word for change in scenario.transforms for word in change.flag.split(" ", maxsplit=1)
    )


def _states_of(page: str) -> str:
    """What a page wants to know of its knobs is idle as soon as one of them is turned."""
    return f"states {page}" if page else ""


def _ranges(text: str) -> Ranges:
    try:
        return Ranges(text)
    except ValueError:
        raise UsageError(f"`{text}` is no range", hint=f"one of {', '.join(Ranges)}") from None
