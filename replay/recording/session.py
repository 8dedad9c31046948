"""One recording in one process: from the first step to the file. It never breaks the training."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .head import compress
from .notes import Note
from .place import Place, place, reserve
from .profiling import another_is_on, make_profiler, wait_for_devices
from .settings import MEASURED_STEPS, SETTLING_STEPS, Settings
from .spoken import costs
from .stopwatch import Stopwatch, Timed, clean_step

VERSION = 1
"""Of the head that is written."""


def write(profiler: Any, settings: Settings) -> Path:  # noqa: ANN401  (torch's, of any version)
    """The file of a profiler that has recorded, compressed, with what is asked as its head.

    Raises:
        OSError: no place, or no right to write.
    """
    own = place()
    raw = reserve(Path(settings.folder), own.rank)
    profiler.export_chrome_trace(str(raw))
    head = {"version": VERSION, "rank": own.rank, "metadata": dict(settings.metadata)}
    return compress(raw, head, _missing_info(own))


def _missing_info(own: Place) -> dict[str, Any]:
    """Rank and size of the job where the profiler could not know them."""
    if own.is_initialised or own.world_size == 1:
        return {}
    return {"distributedInfo": {"rank": own.rank, "world_size": own.world_size}}


def tell(text: str) -> None:
    """A line on stderr."""
    sys.stderr.write(f"replay capture: {text}\n")


class Session:
    """Count steps, run the profiler over some of them, measure those around, write one file.

    Whatever goes wrong is told once on stderr, and from then on nothing more is done.
    """

    def __init__(self, settings: Settings, *, telling: Callable[[str], None] = tell) -> None:
        self._settings = settings
        self._tell = telling
        self._pid = os.getpid()
        self._is_running = False
        self._is_refused = False
        self._done = 0
        self._profiler: Any = None
        self._raw: Path | None = None
        self._place = Place(0, 1, is_initialised=False)
        self._writing_ns = 0
        self._watch = Stopwatch(settle=wait_for_devices)
        self._host_watch = Stopwatch(settle=lambda: None)
        self._timed: dict[str, Timed] = {}
        self.path: Path | None = None
        """The trace, once it is written."""
        self.reason = ""
        """Why there is none, or less than asked."""
        self.advice = ""
        """What would record something; empty where nobody knows."""

    def start(self) -> None:
        """The first step begins now."""
        self._guarded(self._start)

    def step(self) -> None:
        """A step has ended, and the next begins."""
        if self._is_running and os.getpid() == self._pid:
            self._guarded(self._step)

    def give_way(self, other: object) -> None:
        """Another profiler is about to start: torch has one at a time, the program's own first."""
        if other is self._profiler or self._raw is not None or os.getpid() != self._pid:
            return
        self._is_running, self._is_refused = False, True
        self.reason = "the program starts a profiler of its own"
        self.advice = "Switch it off to record here, or give its traces to replay."
        self._tell(f"not recording: {self.reason}")
        self._drop_profiler()

    def close(self) -> None:
        """Write what there is; later calls of anything do nothing."""
        if self._is_running and os.getpid() == self._pid:
            self._guarded(self._close)

    @property
    def note(self) -> Note:
        """What became of it."""
        file = "" if self.path is None else str(self.path)
        return Note(
            rank=self._place.rank,
            steps=self._done,
            file=file,
            reason=self.reason,
            advice=self.advice,
        )

    def _guarded(self, action: Callable[[], None]) -> None:
        """Any error at all: the training must go on, whatever torch's version raises."""
        try:
            action()
        except Exception as error:
            self._is_running = False
            self.reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            self._tell(f"recording given up, the program goes on: {self.reason}")
            self._drop_profiler()
            self._keep_what_is_written()

    def _keep_what_is_written(self) -> None:
        """A file that could not be compressed is a trace all the same; an empty one is none."""
        raw = self._raw
        if raw is None or not raw.exists():
            return
        if raw.stat().st_size:
            self.path = raw
        else:
            raw.unlink()

    def _drop_profiler(self) -> None:
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        profiler.on_trace_ready = None
        try:
            profiler.stop()
        except Exception as error:
            self._tell(f"the profiler could not be stopped: {error}")

    def _start(self) -> None:
        if self._is_refused:
            return
        self._place = place()
        ranks = self._settings.ranks
        if ranks is not None and self._place.rank not in ranks:
            self.reason = "this rank is not asked for"
            return
        self._profiler = make_profiler(self._settings, ready=self._export)
        self._profiler.start()
        self._is_running = True
        self._mark()

    def _step(self) -> None:
        asked = self._settings
        self._done += 1
        self._measure()
        if self._profiler is not None:
            self._require_no_other()
            self._profiler.step()
            if self._done == asked.needed:
                self._drop_profiler()
        self._mark()
        if self._done == asked.needed + SETTLING_STEPS + MEASURED_STEPS:
            self._close()

    def _require_no_other(self) -> None:
        """Ours must not start while another is on: ending it then would end the other.

        Raises:
            RuntimeError: one is on.
        """
        begins = self._done in {self._settings.skip, self._settings.skip + self._settings.warmup}
        if begins and another_is_on():
            self._profiler = None
            raise RuntimeError("another profiler is on")

    def _measure(self) -> None:
        """Stop the watches whose steps end here, before the profiler changes what it does."""
        asked, done = self._settings, self._done
        if done == asked.skip and asked.measured_before:
            self._timed["before"] = self._watch.stop(asked.measured_before)
        elif done == asked.needed:
            self._timed["while"] = self._host_watch.stop(asked.steps)
        elif done == asked.needed + SETTLING_STEPS + MEASURED_STEPS:
            self._timed["after"] = self._watch.stop(MEASURED_STEPS)

    def _mark(self) -> None:
        """Start the watches whose steps begin here, after the profiler has changed."""
        asked, done = self._settings, self._done
        if done == asked.skip - asked.measured_before and asked.measured_before:
            self._watch.start()
        elif done == asked.skip + asked.warmup:
            self._host_watch.start()
        elif done == asked.needed + SETTLING_STEPS:
            self._watch.start()

    def _export(self, profiler: Any) -> None:  # noqa: ANN401  (torch's, of any version)
        """The profiler has recorded: the file is written plain, as what follows may be cut off."""
        began_ns = time.perf_counter_ns()
        self._place = place()
        self._raw = reserve(Path(self._settings.folder), self._place.rank)
        profiler.export_chrome_trace(str(self._raw))
        self._writing_ns = time.perf_counter_ns() - began_ns

    def _close(self) -> None:
        self._is_running = False
        profiler, self._profiler = self._profiler, None
        if profiler is not None:
            profiler.stop()
        if self._raw is None:
            self.reason = (
                f"it ended after {self._done} steps; recording begins after "
                f"{self._settings.skip + self._settings.warmup}"
            )
            self.advice = (
                f"--skip {self._settings.skip}, --warmup {self._settings.warmup} and --steps "
                f"{self._settings.steps} take {self._settings.needed} steps after the first; "
                f"{self._done} were there. Make them smaller."
            )
            if not self._settings.notes:
                self._tell(f"nothing recorded: {self.reason}")
            return
        if self._done < self._settings.needed:
            recorded = self._done - self._settings.skip - self._settings.warmup
            self.reason = f"it ended with {recorded} of {self._settings.steps} steps recorded whole"
        head = self._head()
        self.path = compress(self._raw, head, _missing_info(self._place))
        if self._place.rank == min(self._settings.ranks or (0,)):
            self._tell(f"{self.path} is written; {costs([head])}")

    def _head(self) -> dict[str, Any]:
        asked = self._settings
        clean = clean_step(self._timed.get("before"), self._timed.get("after"))
        head: dict[str, Any] = {
            "version": VERSION,
            "rank": self._place.rank,
            "first_step": asked.skip + asked.warmup,
            "steps": max(min(self._done - asked.skip - asked.warmup, asked.steps), 0),
            "step_ns": {name: timed.mean_ns for name, timed in self._timed.items()},
            "writing_ns": self._writing_ns,
            "metadata": dict(asked.metadata),
        }
        if clean is not None:
            head["unprofiled_step_ns"] = clean.mean_ns
            head["unprofiled_steps"] = clean.steps
        return head
