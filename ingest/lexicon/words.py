"""The words of a run: categories, names, threads and values that rows hold as numbers."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ingest.lexicon.columns import Keys, RowNumbers, Values
from ingest.lexicon.distinct import Lexicon
from ingest.lexicon.shapes import Shape, decoded, filled
from ingest.lexicon.tables import RowTable

Int64 = NDArray[np.int64]

OLD_CATEGORIES: Mapping[str, str] = {
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "User annotation": "user_annotation",
    "PythonFunction": "python_function",
    "async": "ac2g",
}
_VARIES = -2
EVENT_KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id")
ARGS_KEYS = (
    "correlation", "External id", "external id", "device", "stream", "context", "queued", "bytes",
    "memory bandwidth (GB/s)", "grid", "block", "registers per thread", "shared memory",
    "blocks per SM", "warps per SM", "est. achieved occupancy %", "priority", "graph id",
    "graph node id", "cuda_sync_kind", "wait_on_stream", "wait_on_cuda_event_id",
    "wait_on_cuda_event_record_corr_id", "Sequence number", "Fwd thread id", "Record function id",
    "Ev Idx", "Input Dims", "Input type", "Input Strides", "Concrete Inputs", "kernel_backend",
    "Device Type", "Device Id", "Addr", "Bytes", "Total Allocated", "Total Reserved",
    "Collective name", "Python id", "Python parent id", "Python module id",
)  # fmt: skip


class Texts:
    """Distinct texts, numbered from 0 in the order in which they came."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Number of a text."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def matching(self, pattern: str, first: int = 0) -> NDArray[np.bool_]:
        """Which of them, from a number on, a regular expression finds something in."""
        search = re.compile(pattern).search
        fresh = self.texts[first:]
        return np.fromiter((search(one) is not None for one in fresh), np.bool_, len(fresh))


class Words:
    """What the rows of a run hold as numbers; grows as files are read."""

    def __init__(self) -> None:
        self.lexicon = Lexicon()
        self.values = Values()
        self.events = Keys(EVENT_KEYS, self.values)
        self.arguments = Keys(ARGS_KEYS, self.values)
        self.categories = Texts()
        self.names = Texts()
        self.threads: list[tuple[str, str]] = []
        self._threads = RowTable(2)
        self.distinct_arguments = RowTable(1)
        self._n_events = 0
        self._n_args = 0
        self._name_of = np.zeros(0, np.int64)
        self.arguments.add(Shape({}, 0))  # row 0 stands for no arguments
        self._codes: dict[str, Int64] = {}

    def catch_up(self) -> None:
        """Take up what the lexers have met since."""
        with self.lexicon.lock:
            events = self.lexicon.understood[self._n_events :]
            args = self.lexicon.understood_args[self._n_args :]
            names = self.lexicon.names.texts[len(self._name_of) :]
            legal = self.lexicon.names.legal(
                np.arange(len(self._name_of), len(self._name_of) + len(names))
            )
        for shape in events:
            self.events.add(shape)
        for shape in args:
            self.arguments.add(shape)
        self._n_events += len(events)
        self._n_args += len(args)
        if names:
            fresh = [
                self.names.add(msgspec.json.decode(b'"' + text + b'"')) if is_legal else -1
                for text, is_legal in zip(names, legal.tolist(), strict=True)
            ]
            self._name_of = np.concatenate([self._name_of, np.array(fresh, np.int64)])

    def name_numbers(self, names: Int64, rows: RowNumbers) -> Int64:
        """Numbers of names; what is no text is written as text, what is absent is empty."""
        found = self._name_of[names] if len(self._name_of) else np.full(len(names), -1, np.int64)
        odd = np.flatnonzero(names < 0)
        if len(odd):
            objects = self.events.objects("name", rows.pick(odd))
            found[odd] = [self.names.add(text(one)) for one in objects]
        return found

    def codes(self, key: str, rows: RowNumbers, code: Callable[[Any], int]) -> Int64:
        """A code for what a key of the event holds; asked once where all rows of a shape agree."""
        known = self._codes.get(key, np.zeros(0, np.int64))
        if len(known) < self._n_events:
            fresh = np.arange(len(known), self._n_events)
            constant = self.events.constants(key, fresh)
            fresh_codes = [_VARIES if one is Keys else code(one) for one in constant]
            known = self._codes[key] = np.concatenate([known, np.array(fresh_codes, np.int64)])
        found = known[rows.shapes]
        varying = np.flatnonzero(found == _VARIES)
        if len(varying):
            values = self.events.ids(key, rows.pick(varying))
            distinct, place = np.unique(values, return_inverse=True)
            found[varying] = np.array([code(self.values[one]) for one in distinct.tolist()])[place]
        return found

    def category(self, value: object) -> int:
        """Number of a category as it is written."""
        return self.categories.add(text(value))

    def modern(self, categories: Int64) -> Int64:
        """Numbers of today's names of categories."""
        for word in list(self.categories.texts):
            self.categories.add(OLD_CATEGORIES.get(word, word))
        today = [OLD_CATEGORIES.get(word, word) for word in self.categories.texts]
        table = np.array([self.categories.add(word) for word in today], np.int64)
        found: Int64 = table[categories]
        return found

    def thread_numbers(self, rows: RowNumbers) -> Int64:
        """Numbers of threads, which are pairs of pid and tid."""
        parts, first, count = self.events.fields(("pid", "tid"), rows)
        found = self._threads.number(parts, first, count, rows.numbers)
        while len(self.threads) < len(self._threads):
            self.threads.append(self._thread(len(self.threads)))
        return found

    def _thread(self, number: int) -> tuple[str, str]:
        pid, tid = self.values.split(self._threads.words(number), 2)
        return text(pid), text(tid)

    def names_collective(self, shapes: Int64) -> NDArray[np.bool_]:
        """Whether arguments of each shape name a collective."""
        return self.arguments.has("Collective name", shapes + 1)

    def python_places(self, shape: int) -> list[int | None]:
        """Places (from 1) of a frame's id, parent and module among the numbers of arguments."""
        keys = ("Python id", "Python parent id", "Python module id")
        return [self.arguments.whole_place(key, shape + 1) for key in keys]

    def arguments_text(self, shape: int, numbers: Int64) -> bytes:
        """Arguments as they are written."""
        return filled(self.lexicon.args.texts[shape], numbers.tolist())

    def arguments_of(self, shape: int, numbers: Int64) -> Mapping[str, object]:
        """Arguments, decoded; empty where there are none."""
        found = decoded(self.arguments_text(shape, numbers)) if shape >= 0 else {}
        return found if isinstance(found, dict) else {}


def text(value: object) -> str:
    """Text, and anything else as text; nothing for what is absent."""
    return "" if value is None else value if isinstance(value, str) else str(value)
