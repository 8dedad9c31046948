"""Counting steps in a program that says nothing, once torch is loaded."""

import atexit
import functools
import os
import weakref
from collections.abc import Callable
from typing import Any

from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim import Optimizer

from .notes import Note, write_note
from .profiling import before_any_starts, may_not_step
from .session import Session, tell
from .settings import FORWARD, Settings


def count_steps(settings: Settings) -> None:
    """Watch the optimizer or the model of this process; torch is loaded.

    Whatever goes wrong is told, and the program goes on.
    """
    try:
        may_not_step()  # what this torch lacks shows here, not in the first step
        steps = _Steps(settings)
        if settings.counted == FORWARD:
            steps.watch_forward()
        else:
            steps.watch_optimizer()
        before_any_starts(steps.session.give_way)
        atexit.register(steps.finish)
        write_note(settings.notes, Note())
    except Exception as error:  # the program must go on, whatever this torch lacks
        tell(f"not recording: {type(error).__name__}: {error}")


class _Steps:
    """Ends of steps: of the first optimizer that steps, or of the first model that is called."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.session = Session(settings)
        self._pid = os.getpid()
        self._counted: Callable[[], object | None] = lambda: None
        self._is_started = False
        self._is_inside = False
        self._is_broken = False
        self._hindrance = ""

    def watch_optimizer(self) -> None:
        """Of every optimizer made from now on.

        torch wraps `step` of each class that is made, in the range `Optimizer.step#…`. A hook after
        the step (`register_optimizer_step_post_hook`) would be called inside that range, and the
        steps of the trace would end within it; so this goes around.
        """
        inner = Optimizer.profile_hook_step

        def counting(function: Callable[..., Any]) -> Callable[..., Any]:
            step = inner(function)

            @functools.wraps(step)
            def counted(optimizer: Any, *args: Any, **named: Any) -> Any:  # noqa: ANN401  (any optimizer's)
                if self._is_inside:  # a step that calls that of its parent class
                    return step(optimizer, *args, **named)
                self._is_inside = True
                try:
                    outcome = step(optimizer, *args, **named)
                finally:
                    self._is_inside = False
                self._safely(lambda: self._optimizer_stepped(optimizer))
                return outcome

            return counted

        Optimizer.profile_hook_step = staticmethod(counting)

    def _optimizer_stepped(self, optimizer: Any) -> None:  # noqa: ANN401  (of torch)
        """Where several optimizers take turns, only the first counts, as long as it lives."""
        counted = self._counted()
        if counted is None:
            self._counted = weakref.ref(optimizer)
        elif counted is not optimizer:
            return
        self._ended()

    def watch_forward(self) -> None:
        self._handle = register_module_forward_pre_hook(self._forward_begins)

    def _forward_begins(self, module: Any, *_: object) -> None:  # noqa: ANN401  (of torch)
        """The first module that is called is the outermost: from now on only that is watched."""
        self._handle.remove()
        module.register_forward_hook(self._forward_ended)

    def _forward_ended(self, *_: object) -> None:
        self._safely(self._ended)

    def _safely(self, action: Callable[[], None]) -> None:
        """Any error at all is told once, and then nothing is watched: the program goes on."""
        if self._is_broken:
            return
        try:
            action()
        except Exception as error:
            self._is_broken = True
            self._hindrance = f"{type(error).__name__}: {error}"
            tell(f"steps are no longer counted, the program goes on: {self._hindrance}")

    def _ended(self) -> None:
        if os.getpid() != self._pid:
            return
        hindrance = may_not_step()
        if hindrance:
            self._hindrance = hindrance
        elif self._is_started:
            self.session.step()
        else:
            self._is_started = True
            self.session.start()

    def finish(self) -> None:
        """The process ends."""
        if os.getpid() != self._pid:
            return
        self.session.close()
        note = self.session.note
        if not self._is_started and not note.reason:
            note = self._nothing_seen()
        try:
            write_note(self._settings.notes, note)
        except OSError as error:
            tell(f"no note of this process: {error}")

    def _nothing_seen(self) -> Note:
        """No step ever ended."""
        if self._hindrance:
            advice = "Use replay.capture in the script, and call its step() where a step ends."
            return Note(reason=self._hindrance, advice=advice)
        if self._settings.counted == FORWARD:
            return Note(reason="no forward pass of a module was seen")
        return Note(
            reason="no optimizer was seen",
            advice="Without an optimizer (inference): --step-is forward. Where its step is "
            "compiled or inside a CUDA graph: replay.capture in the script.",
        )
