"""Passes: forward and backward of each micro-batch, in the strokes of a rank."""

from dataclasses import dataclass

import numpy as np

from ingest.vocab import Phase
from replay.graph.arrays import Bool, Int8, Int32, Int64
from whatif.description.doing import Doing
from whatif.description.strokes import Strokes
from whatif.models.places import Part, Pass

_SHORT_FRAC = 0.05
"""Part of the longest forward below which a stretch of forward strokes is none: flags, copies."""
_MORE_FRAC = 0.2
"""Part of the strokes of a pass in which it may differ from another of its step."""
_MOST_AHEAD = 4
"""Exchanges before the first work of the model that may be its own: FSDP gathers two parts ahead.
More are those of a whole step: parameters that other ranks updated."""
_HEAVY_FRAC = 0.01
"""Part of its forward from which a stroke on the host is work of the model."""
SENDS, RECEIVES = 1, 2
"""Of messages: a send ends the pass before it, a receive begins the one behind it."""
_WEIGHTY = (Doing.PRODUCT, Doing.ATTENTION, Doing.SOFTMAX)
_OF_THE_MODEL = (Doing.PRODUCT, Doing.ATTENTION, Doing.NORM, Doing.EMBEDDING)
_WEIGHTLESS = (
    *(Doing.EXCHANGE, Doing.MESSAGE, Doing.COPY, Doing.GRADIENT, Doing.NOTHING, Doing.OPTIMIZER),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """What of a step each stroke is in; columns with one row per stroke."""

    direction: Int8
    """Pass: NONE, FORWARD, BACKWARD, RECOMPUTE."""
    part: Int8
    """ENTRY, SYNC, OPTIMIZER and EXIT where the place in the step says it; else OTHER."""
    forward: tuple[Int64, ...]
    """Strokes of each forward pass, in order."""
    backward: tuple[Int64, ...]
    """Strokes of each stretch of backward between two messages, in order."""


def passes_of(strokes: Strokes, named: Int32, messages: Int8) -> Passes:
    """Find them.

    Args:
        strokes: of one rank.
        named: layer of each stroke by its module; -1 where none is named.
        messages: SENDS or RECEIVES of strokes between stages of a pipeline; 0 of others.
    """
    phase = _filled(strokes)
    found = _Found(strokes, phase, messages)
    stretches = _stretches(strokes.step, phase)
    of_forward = [found.weigh(one) for one in stretches if phase[one[0]] == Phase.FORWARD]
    least_ns = _SHORT_FRAC * max(of_forward, default=0)
    for step in np.unique(strokes.step).tolist():
        mine = [one for one in stretches if strokes.step[one[0]] == step]
        kept = [
            phase[one[0]] == Phase.BACKWARD
            or (phase[one[0]] == Phase.FORWARD and found.weigh(one) > least_ns)
            for one in mine
        ]
        found.take_step(mine, kept, named)
    return found.passes()


class _Found:
    """Collects what the steps hold."""

    def __init__(self, strokes: Strokes, phase: Int8, messages: Int8) -> None:
        self._strokes, self._phase, self._messages = strokes, phase, messages
        self._weight_ns = _weights(strokes, phase)
        self._direction = np.zeros(len(strokes), np.int8)
        self._part = np.zeros(len(strokes), np.int8)
        self._part[phase == Phase.OPTIMIZER] = Part.OPTIMIZER
        self._forward: list[Int64] = []
        self._backward: list[Int64] = []

    def weigh(self, stretch: Int64) -> int:
        """Time of the model's work in it."""
        return int(self._weight_ns[stretch].sum())

    def take_step(self, stretches: list[Int64], kept: list[bool], named: Int32) -> None:
        """Sort the stretches of one step."""
        places = np.flatnonzero(kept)
        open_backward: list[Int64] = []
        first = True
        for at, stretch in enumerate(stretches):
            kind = self._phase[stretch[0]]
            if kept[at] and kind == Phase.FORWARD:
                whole = self._entered(stretch) if first else stretch
                sent, inner, received = self._trimmed(whole)
                if open_backward:
                    open_backward.append(sent)
                else:
                    inner = np.concatenate([sent, inner])
                self._close(open_backward)
                first = False
                later = places[places > at]
                if not len(later):
                    inner, received = np.concatenate([inner, received]), received[:0]
                self._direction[inner] = Pass.FORWARD
                self._forward += self._split(inner, named)
                if len(received):
                    open_backward.append(received)
            elif kept[at]:
                first = False
                open_backward.append(stretch)
            elif kind != Phase.OPTIMIZER:
                self._put_crumb(stretch, at, places, stretches, open_backward)
        self._close(open_backward)

    def _trimmed(self, stretch: Int64) -> tuple[Int64, Int64, Int64]:
        """Sends of the backward before it, the forward, receives of the backward behind it."""
        heavy = np.flatnonzero(self._weight_ns[stretch] > 0)
        messages = self._messages[stretch]
        if not len(heavy) or not messages.any():
            return stretch[:0], stretch, stretch[:0]
        sends = np.flatnonzero(messages[: heavy[0]] == SENDS)
        begin = int(sends[-1]) + 1 if len(sends) else 0
        receives = np.flatnonzero(messages[heavy[-1] :] == RECEIVES)
        end = int(heavy[-1] + receives[0]) if len(receives) else len(stretch)
        return stretch[:begin], stretch[begin:end], stretch[end:]

    def _put_crumb(
        self,
        stretch: Int64,
        at: int,
        places: Int64,
        stretches: list[Int64],
        open_backward: list[Int64],
    ) -> None:
        """Small things of forward's kind: where they lie in the step says what they are."""
        after = places[places > at]
        if not (places < at).any():
            self._part[stretch] = Part.ENTRY
        elif len(after) and self._phase[stretches[after[0]][0]] == Phase.BACKWARD:
            open_backward.append(stretch)
        else:
            done = any(
                self._phase[one[0]] == Phase.OPTIMIZER for one in stretches[: at]
            )  # fmt: skip
            self._part[stretch] = Part.EXIT if done else Part.SYNC

    def _entered(self, stretch: Int64) -> Int64:
        """Without what comes before the model: copies of data, masks on the host."""
        doing = self._strokes.doing[stretch]
        of_model = np.isin(doing, _OF_THE_MODEL)
        if not self._strokes.on_device:
            weight = self._weight_ns[stretch]
            of_model |= weight > _HEAVY_FRAC * weight.sum()
            begin = int(np.argmax(of_model)) if of_model.any() else 0
        else:
            first = int(np.argmax(of_model)) if of_model.any() else 0
            copies = np.flatnonzero(self._strokes.is_copy[stretch[:first]])
            copies = copies[doing[copies] == Doing.COPY]
            begin = int(copies[-1]) + 1 if len(copies) else 0
            gathers = np.flatnonzero(doing[:first] == Doing.EXCHANGE)
            if len(gathers) > _MOST_AHEAD:
                begin = max(begin, int(gathers[-1]) + 1)
        self._part[stretch[:begin]] = Part.ENTRY
        return stretch[begin:]

    def _close(self, open_backward: list[Int64]) -> None:
        if not open_backward:
            return
        whole = np.concatenate(open_backward)
        open_backward.clear()
        again = self._strokes.again[whole]
        self._direction[whole] = np.where(again, Pass.RECOMPUTE, Pass.BACKWARD)
        heavy = self._weight_ns[whole] > 0
        begins = _begins(_ends(self._messages[whole]), heavy)
        self._backward += [one for one in np.split(whole, begins) if len(one)]

    def _split(self, stretch: Int64, named: Int32) -> list[Int64]:
        """A stretch of forward at the begins of its passes."""
        heavy = self._weight_ns[stretch] > 0
        embeds = self._strokes.doing[stretch] == Doing.EMBEDDING
        light = heavy & ~embeds
        begins = set(_begins(_ends(self._messages[stretch]), light))
        fresh = sorted(set(_begins(embeds, light)) - {0})
        if self._are_alike(np.split(stretch, fresh)):
            begins |= set(fresh)
        # What a pass has before its first layer is its own.
        done = np.cumsum(light)
        known = {int(done[at - 1]) for at in begins if at}
        restarts = _begins(_restarts(named[stretch]), light)
        begins |= {at for at in restarts if at and int(done[at - 1]) not in known}
        pieces = np.split(stretch, sorted(begins - {0}))
        found: list[Int64] = []
        for piece in pieces:
            if found and not self._weight_ns[piece].any():
                found[-1] = np.concatenate([found[-1], piece])
            else:
                found.append(piece)
        return found

    def _are_alike(self, pieces: list[Int64]) -> bool:
        """The same work in each, but for what a first or last one may have more."""
        counts = [int((self._weight_ns[piece] > 0).sum()) for piece in pieces]
        tokens = [
            set(self._strokes.token[piece[self._weight_ns[piece] > 0]].tolist()) for piece in pieces
        ]
        return max(counts) - min(counts) <= _MORE_FRAC * max(counts) and all(
            len(one & tokens[0]) >= (1 - _MORE_FRAC) * len(tokens[0]) for one in tokens
        )

    def passes(self) -> Passes:
        """All that was found."""
        return Passes(
            direction=self._direction,
            part=self._part,
            forward=tuple(self._forward),
            backward=tuple(self._backward),
        )


def _filled(strokes: Strokes) -> Int8:
    """Phases; where none is recorded that of the stroke before, of the first one that after."""
    phase = strokes.phase.copy()
    if not (phase == Phase.BACKWARD).any():
        phase[phase == Phase.UNKNOWN] = Phase.FORWARD
        return phase
    known = np.flatnonzero(phase != Phase.UNKNOWN)
    at = np.searchsorted(known, np.arange(len(phase)), side="right") - 1
    before = known[np.maximum(at, 0)]
    after = known[np.minimum(at + 1, len(known) - 1)]
    same = (strokes.step[before] == strokes.step) & (at >= 0)
    filled: Int8 = phase[np.where(same, before, after)]
    return filled


def _stretches(step: Int32, phase: Int8) -> list[Int64]:
    """Longest runs of equal phase within a step."""
    if not len(phase):
        return []
    changes = np.flatnonzero((np.diff(phase) != 0) | (np.diff(step) != 0)) + 1
    return np.split(np.arange(len(phase)), changes)


def _weights(strokes: Strokes, phase: Int8) -> Int64:
    """Time of the model's work; calls wait, and copies and gradients are not of it.

    Where forward has products or attention only those count: sums over gradients are none.
    """
    weight_ns = np.where(np.isin(strokes.doing, _WEIGHTLESS), 0, strokes.dur_ns)
    weighty = np.isin(strokes.doing, _WEIGHTY)
    if (weighty & (phase == Phase.FORWARD)).any():
        return np.where(weighty, weight_ns, 0)
    longest_ns = int(weight_ns.max(initial=0))
    return np.where(weight_ns >= _HEAVY_FRAC * longest_ns, weight_ns, 0)


def _ends(messages: Int8) -> Bool:
    """Strokes that begin a pass: behind a send, or a receive."""
    behind = np.zeros(len(messages), bool)
    behind[1:] = messages[:-1] == SENDS
    begins: Bool = (behind & (messages != SENDS)) | (messages == RECEIVES)
    return begins


def _begins(stops: Bool, weighty: Bool) -> list[int]:
    """First stop of every group of stops that has weight before and behind it."""
    done = np.concatenate([[0], np.cumsum(weighty)])
    at = np.flatnonzero(stops)
    at = at[(done[at] > 0) & (done[at] < done[-1])]
    fresh = np.diff(done[at], prepend=0) > 0
    found: list[int] = at[fresh].tolist()
    return found


def _restarts(named: Int32) -> Bool:
    """Strokes of a lower layer than the layer named before."""
    known = np.flatnonzero(named >= 0)
    falls = np.zeros(len(named), bool)
    falls[known[1:][np.diff(named[known]) < 0]] = True
    return falls
