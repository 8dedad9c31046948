"""Tracks of streams and links, and the gaps of devices."""

from collections.abc import Mapping

import numpy as np

from ingest.vocab import TaskKind
from replay.graph.arrays import Int64, Lane
from replay.results.idle import CAUSES, SHORT, Idle, idle_of
from replay.results.timeline.events import Args, Slices, joined, slices, text_of
from replay.results.timeline.rows import TimelineRows
from replay.results.timeline.told import SHORT_NAME, Told, labels_of, only_replay, row_args

_CATEGORY: Mapping[int, str] = {
    TaskKind.KERNEL: "kernel",
    TaskKind.ARRIVE: "kernel",
    TaskKind.MEMCPY: "gpu_memcpy",
    TaskKind.MEMSET: "gpu_memset",
}


def device_slices(
    lane: Lane, ids: Int64, rows: TimelineRows, told: Told, *, with_parts: bool
) -> Slices:
    """Work of a stream or link; members of collectives run from their arrival on.

    Args:
        lane: a stream or a link.
        ids: its tasks.
        rows: the recording.
        told: of the version.
        with_parts: also, inside members of collectives, what is waiting and what is transfer.
    """
    tasks, schedule = told.version.graph.tasks, told.version.schedule
    kind = tasks.kind[ids]
    whole = ids[(kind != TaskKind.TRANSFER) & np.isin(kind, list(_CATEGORY))]
    member = tasks.kind[whole] == TaskKind.ARRIVE
    start_ns = schedule.start_ns[whole]
    end_ns = schedule.end_ns[np.where(member, whole + 1, whole)]
    categories = [_CATEGORY[number] for number in tasks.kind[whole].tolist()]
    stands_for = tasks.slice_id[whole]
    parts = [
        slices(
            start_ns,
            end_ns,
            labels_of(told, whole),
            rows.categories(stands_for, np.array(categories, object)),
            task=whole,
            marked=told.critical[whole] | (member & told.critical[whole + member]),
            args=lambda places: row_args(rows, told, stands_for[places], whole[places], lane),
        )
    ]
    if with_parts:
        parts += _parts(whole[member], told)
    return joined(parts)


def _parts(arrive: Int64, told: Told) -> list[Slices]:
    """Waiting for the other members, then the transfer."""
    schedule = told.version.schedule
    began_ns, end_ns = schedule.start_ns[arrive], schedule.end_ns[arrive + 1]
    go_ns = np.clip(schedule.start_ns[arrive + 1], began_ns, end_ns)
    inner = np.ones(len(arrive), np.int64)
    found = []
    for label, lo_ns, hi_ns in (
        ("wait for members", began_ns, go_ns),
        ("transfer", go_ns, end_ns),
    ):
        keep = np.flatnonzero(hi_ns > lo_ns)
        found.append(
            slices(
                lo_ns[keep],
                hi_ns[keep],
                np.full(len(keep), label, object),
                "collective_part",
                rank=inner[keep],
                marked=told.critical[arrive[keep] + 1] & (label == "transfer"),
                args=lambda places, keep=keep: only_replay(  # type: ignore[misc]
                    told.texts(arrive[keep[places]] + 1)
                ),
            )
        )
    return found


def idle_slices(told: Told, rank: int) -> dict[int, Slices]:
    """Gaps of each device of a rank inside the steps, by cause; short gaps are left out."""
    idle = told.idle
    found = {}
    for device in np.unique(idle.device[idle.rank == rank]).tolist():
        mine = idle_of(idle, (idle.rank == rank) & (idle.device == device) & (idle.cause != SHORT))
        label = np.array([CAUSES[code].replace("_", " ") for code in mine.cause.tolist()], object)
        found[device] = slices(
            mine.ts_ns, mine.ts_ns + mine.dur_ns, label, "idle", args=_gap_args(told, mine)
        )
    return found


def _gap_args(told: Told, gaps: Idle) -> Args:
    """Shares of a gap by cause, the task after it, and what took longest before."""

    def name(task: int) -> str | None:
        return told.name(task)[:SHORT_NAME] if task >= 0 else None

    def one(place: int) -> str:
        shares = enumerate(gaps.shares_ns[place].tolist())
        return text_of(
            {
                "shares_ns": {CAUSES[code]: share for code, share in shares if share},
                "next": name(int(gaps.next_task[place])),
                "longest": name(int(gaps.culprit[place])),
            }
        )

    return lambda places: list(map(one, places.tolist()))
