"""Steps of each file: recorded as `ProfilerStep#N`, else inferred where the period is clear.

A period is clear where it is met at least three times in a row, each time between half and twice
the median of all; what comes before or behind such a run is left out. The stretch before the first
or after the last mark is a step only where it and all others are within a quarter of the median.
Tried in this order: annotations by which engines and trainers mark an iteration, the ends of
`Optimizer.step#`, annotations of a forward pass, outermost rows of the launching thread that come
round in order.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.normalise.correlate import Links
from ingest.normalise.gather import Gathered
from ingest.vocab import RuntimeKind

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

RECORDED = r"^ProfilerStep#[0-9]{1,18}$"
_ITERATION = (
    r"^(?:execute_(?:\d+_)?(?:context|model|generation|new|diffusion)|step\[|gpu_model_runner"
    r"|(?:train(?:ing)?|decode|prefill|global|engine)?[ _-]?(?:step|iter(?:ation)?)[ _#:-]*\d*$)"
)
_OPTIMIZER = r"^Optimizer\.step#"
_FORWARD = r"^(?:## forward ##|forward_backward|DistributedDataParallel\.forward)$"
_BEGINS_A_MODEL = r"^aten::embedding$|GraphLaunch"
_WAITS = r"^aten::(?:item|_local_scalar_dense)$"
_DIGITS = re.compile(r"[\d(\[]")
_FEWEST = 3
_LONGEST = 2.0
_ROUNDED = 0.25
_INSIDE = 0.1
_BLOCKING = (RuntimeKind.DEVICE_SYNC, RuntimeKind.STREAM_SYNC, RuntimeKind.EVENT_SYNC)


class _Windows(NamedTuple):
    thread: int
    bounds_ns: Int64
    """Step k is [bounds[k], bounds[k + 1])."""


def steps(gathered: Gathered, links: Links, ts: Int64) -> pl.DataFrame:
    """The steps of all files.

    Args:
        gathered: the rows.
        links: their launching calls.
        ts: starts of all slices on the common clock.
    """
    frames = [_recorded(gathered, ts)]
    with_steps = set(frames[0]["trace_id"].to_list())
    for trace_id in range(len(gathered.files)):
        if trace_id not in with_steps:
            rows = _File(gathered, links, ts, trace_id)
            found = next((one for how in _WAYS for one in how(rows)), None)
            if found is not None:
                frames.append(_inferred(gathered, trace_id, found))
    return pl.concat(frames)


def _recorded(gathered: Gathered, ts: Int64) -> pl.DataFrame:
    is_step = gathered.is_category("user_annotation") & gathered.name_matches(RECORDED)
    ids = np.flatnonzero(is_step)
    number = [int(gathered.name_text(row).removeprefix("ProfilerStep#")) for row in ids.tolist()]
    ranks = np.array([file.rank for file in gathered.files], np.int64)
    trace = gathered.trace[ids]
    whole = (gathered.repair[ids] == 0) & ~_cut_off(gathered, ids) & ~_bare(gathered, ids)
    return pl.DataFrame(
        {
            "trace_id": trace,
            "rank": ranks[trace],
            "step": pl.Series(number, dtype=pl.Int64),
            "ts": ts[ids],
            "dur": gathered.dur[ids],
            "utid": gathered.utid[ids],
            "source": pl.Series(["ProfilerStep"] * len(ids), dtype=pl.String),
            "complete": whole,
        }
    )


def _cut_off(gathered: Gathered, ids: Int64) -> Bool:
    """Last steps of files that end before their events do."""
    whole = np.array([file.parsed.complete for file in gathered.files], bool)
    trace = gathered.trace[ids]
    last: Bool = np.zeros(len(ids), bool)
    last[[np.flatnonzero(trace == one)[-1] for one in np.unique(trace)]] = True
    last &= ~whole[trace]
    return last


def _bare(gathered: Gathered, ids: Int64) -> Bool:
    """Steps in which the file shows no operator and no call, unless all of them are like that.

    `prof.step()` opens a step that `prof.stop()` closes some microseconds later: no step was run.
    """
    start, end = gathered.ts[ids], gathered.ts[ids] + gathered.dur[ids]
    bare = np.zeros(len(ids), bool)
    shows_work = gathered.category_matches("cpu_op|runtime|driver")
    for one in np.unique(gathered.trace[ids]):
        mine = np.flatnonzero(gathered.trace[ids] == one)
        first, last = np.searchsorted(gathered.trace, [one, one + 1])
        work_ns = np.sort(gathered.ts[first:last][shows_work[first:last]])
        inside = np.searchsorted(work_ns, end[mine]) - np.searchsorted(work_ns, start[mine])
        bare[mine] = (inside == 0) & bool((inside > 0).any())
    return bare


def _inferred(gathered: Gathered, trace_id: int, windows: _Windows) -> pl.DataFrame:
    n = len(windows.bounds_ns) - 1
    return pl.DataFrame(
        {
            "trace_id": np.full(n, trace_id, np.int32),
            "rank": np.full(n, gathered.files[trace_id].rank, np.int64),
            "step": np.arange(n),
            "ts": windows.bounds_ns[:-1],
            "dur": np.diff(windows.bounds_ns),
            "utid": np.full(n, windows.thread, np.int32),
            "source": ["inferred"] * n,
            "complete": np.ones(n, np.bool_),
        }
    )


class _File:
    """The host rows of one file, and moments at which its steps may begin."""

    def __init__(self, gathered: Gathered, links: Links, ts: Int64, trace_id: int) -> None:
        first, last = np.searchsorted(gathered.trace, [trace_id, trace_id + 1]).tolist()
        self.part = slice(first, last)
        self.gathered, self.links = gathered, links
        self.ts, self.end = ts[self.part], ts[self.part] + gathered.dur[self.part]
        self.utid, self.name = gathered.utid[self.part], gathered.name[self.part]
        self.on_device = gathered.on_device[self.part]

    def named(self, pattern: str) -> Bool:
        """Rows whose name a regular expression finds something in."""
        found: Bool = self.gathered.words.names.matching(pattern)[self.name]
        return found

    def of_category(self, pattern: str) -> Bool:
        """Rows whose category a regular expression finds something in."""
        category = self.gathered.category[self.part]
        found: Bool = self.gathered.words.categories.matching(pattern)[category]
        return found

    def marks(self, pattern: str) -> Iterator[tuple[int, Int64]]:
        """Annotations of one thread whose names agree up to the first number."""
        found = np.flatnonzero(self.named(pattern) & self.of_category("^user_annotation$"))
        numbers, place = np.unique(self.name[found], return_inverse=True)
        texts = self.gathered.words.names.texts
        words = [_DIGITS.split(texts[one], maxsplit=1)[0] for one in numbers.tolist()]
        kinds = np.unique(words, return_inverse=True)[1][place] if words else place
        keys, sizes = np.unique(np.stack([self.utid[found], kinds]), axis=1, return_counts=True)
        for at in np.argsort(-sizes, kind="stable").tolist():
            thread, kind = keys[:, at].tolist()
            yield thread, found[(self.utid[found] == thread) & (kinds == kind)]

    def stretch(self, thread: int) -> tuple[int, int]:
        """First start and last end of the rows of a thread."""
        mine = self.utid == thread
        return int(self.ts[mine].min()), int(self.end[mine].max())

    def windows(self, thread: int, moments: Int64, *, ends: bool) -> _Windows | None:
        """Steps between moments; also before the first or after the last one where it fits."""
        if len(moments) < _FEWEST:
            return None
        moments = _even_run(moments)
        lengths = np.diff(moments)
        median = float(np.median(lengths))
        start, end = self.stretch(thread)
        if np.abs(lengths - median).max() <= _ROUNDED * median:
            if ends and abs(moments[0] - start - median) <= _ROUNDED * median:
                moments = np.concatenate([[start], moments])
            elif not ends and abs(end - moments[-1] - median) <= _ROUNDED * median:
                moments = np.concatenate([moments, [end]])
        return _Windows(thread, moments) if len(moments) > _FEWEST and median > 0 else None


def _even_run(moments: Int64) -> Int64:
    """The longest run of moments with distances between half and twice the median of all."""
    lengths = np.diff(moments)
    median = float(np.median(lengths))
    fits = (lengths * _LONGEST >= median) & (lengths <= _LONGEST * median)
    uneven = np.concatenate([[-1], np.flatnonzero(~fits), [len(lengths)]])
    longest = int(np.argmax(np.diff(uneven)))
    return moments[uneven[longest] + 1 : uneven[longest + 1] + 1]


def _by_annotation(pattern: str) -> Callable[[_File], Iterator[_Windows]]:
    def found(rows: _File) -> Iterator[_Windows]:
        for thread, marks in rows.marks(pattern):
            outer = marks[np.concatenate([[True], rows.ts[marks[1:]] >= rows.end[marks[:-1]]])]
            if (one := rows.windows(thread, rows.ts[outer], ends=False)) is not None:
                yield one

    return found


def _by_optimizer(rows: _File) -> Iterator[_Windows]:
    """A step ends with the last call of its optimizer; a tenth of the longest gap is inside one."""
    for thread, marks in rows.marks(_OPTIMIZER):
        ends = np.maximum.accumulate(rows.end[marks])
        gaps = rows.ts[marks[1:]] - ends[:-1]
        if not len(gaps):
            continue
        last = np.concatenate([gaps > _INSIDE * gaps.max(), [True]])
        if (one := rows.windows(thread, ends[last], ends=True)) is not None:
            yield one


def _by_order(rows: _File) -> Iterator[_Windows]:
    """Outermost rows of the launching thread that come round in the same order.

    A round must start a model (an embedding, or the launch of a graph) and wait for the device: the
    layers of one pass repeat as well, but do not do both.
    """
    gathered, links, part = rows.gathered, rows.links, rows.part
    called = links.call[part][rows.on_device]
    called = called[called >= 0]
    if not len(called):
        return
    thread = int(np.bincount(gathered.utid[called]).argmax())
    kind = links.runtime_kind[part]
    wanted = (rows.utid == thread) & (rows.of_category("^cpu_op$") | (kind > 0))
    top = np.flatnonzero(wanted)
    behind = np.concatenate([[True], rows.ts[top[1:]] >= np.maximum.accumulate(rows.end[top])[:-1]])
    names = rows.name[top]
    model = rows.named(_BEGINS_A_MODEL)[top]
    waits = np.isin(kind[top], _BLOCKING) | rows.named(_WAITS)[top]
    for place in _rounds(names, behind):
        first, last = int(place[0]), int(place[-1])
        inside = (np.add.reduceat(one[first:last], place[:-1] - first) for one in (model, waits))
        if all((count > 0).all() for count in inside):
            one = rows.windows(thread, rows.ts[top[place]], ends=False)
            if one is not None:
                yield one


def _rounds(names: NDArray[np.int32], outermost: Bool) -> Iterator[Int64]:
    """Places of an outermost name between which the same names follow, the rarest name first."""
    top = np.flatnonzero(outermost)
    order = top[np.argsort(names[top], kind="stable")]
    cuts = np.flatnonzero(np.diff(names[order])) + 1
    for place in sorted(np.split(order, cuts), key=len):
        lengths = np.diff(place)
        if len(place) <= _FEWEST or (lengths != lengths[0]).any():
            continue
        rounds = names[place[0] : place[-1]].reshape(len(lengths), -1)
        if (rounds == rounds[0]).all():
            yield place


_WAYS: tuple[Callable[[_File], Iterator[_Windows]], ...] = (
    _by_annotation(_ITERATION),
    _by_optimizer,
    _by_annotation(_FORWARD),
    _by_order,
)
