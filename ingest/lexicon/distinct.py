"""The distinct shapes and names of a run, shared by all files and threads."""

from collections.abc import Callable
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from ingest.lexicon.decoding import holds_event
from ingest.lexicon.shapes import Shape, is_text, is_value, understand

Bool = NDArray[np.bool_]


class Distinct:
    """Distinct texts, numbered; each is judged once, when it first comes."""

    def __init__(self, judge: Callable[[bytes], bool]) -> None:
        self.texts: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._judge = judge
        self._legal = np.zeros(64, np.bool_)

    def add(self, text: bytes) -> int:
        """Number of a text."""
        number = self._numbers.get(text)
        if number is None:
            number = len(self.texts)
            if number == len(self._legal):
                self._legal = np.concatenate([self._legal, np.zeros_like(self._legal)])
            self._legal[number] = self._judge(text)
            self.texts.append(text)
            self._numbers[text] = number
        return number

    def legal(self, numbers: NDArray[np.int64]) -> Bool:
        """Whether each is JSON; -1 (none) is."""
        found: Bool = self._legal[numbers] | (numbers < 0)
        return found


class Lexicon:
    """Names, shapes of events and shapes of arguments."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.understood: list[Shape] = []
        self.understood_args: list[Shape] = []
        self.names = Distinct(is_text)
        self.shapes = Distinct(lambda text: _take(self.understood, text, of_event=True))
        self.args = Distinct(
            lambda text: (
                _take(self.understood_args, text, of_event=False)
                or (is_value(text) and not holds_event(text))
            )
        )


_NO_KEYS = Shape({}, 0)


def _take(understood: list[Shape], text: bytes, *, of_event: bool) -> bool:
    shape = understand(text, of_event=of_event)
    understood.append(shape or _NO_KEYS)
    return shape is not None
