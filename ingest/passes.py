"""The passes over the rows of a run, in order: gather, link, clocks, collectives."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ingest.issues import LOG_LIMIT
from ingest.lexicon.words import Words
from ingest.memory import give_back
from ingest.normalise.align import MemberState
from ingest.normalise.clashes import Clash
from ingest.normalise.correlate import link
from ingest.normalise.device_repairs import device_rows, repair_device_times
from ingest.normalise.device_times import to_host_clock
from ingest.normalise.gather import Gathered, OfRows, TraceFile, gather
from ingest.normalise.meetings import RunCollectives, find_collectives
from ingest.normalise.out_of_step import out_of_step
from ingest.normalise.steps import RECORDED
from ingest.normalise.tables import Rows


def normalise(files: Sequence[TraceFile], words: Words) -> Rows:
    """The passes in order: gather, link, device clock, collectives, rank clocks."""
    gathered = gather(files, words)
    give_back()
    links = link(gathered)
    logs = [file.parsed.log for file in files]
    for trace_id, log in enumerate(logs):
        log.count("zero_correlation", int(links.zero_correlation[trace_id]))
        log.count("unlinked", int(links.unlinked[trace_id]))
        log.count("crossing_slices", int(gathered.crossing[trace_id]))
    unusable = gathered.name_matches("^ProfilerStep#") & ~gathered.name_matches(RECORDED)
    unusable &= gathered.is_category("user_annotation")
    for trace_id, number in enumerate(np.bincount(gathered.trace[unusable], minlength=len(logs))):
        logs[trace_id].count("step_number_unusable", int(number))
    device = device_rows(gathered)
    ids = device["id"].to_numpy()
    device_of = OfRows(ids, device["device"].fill_null(-1).to_numpy())
    stream_of = OfRows(ids, device["stream"].fill_null(-1).to_numpy())
    repair_device_times(gathered, links, logs)
    times = to_host_clock(gathered, links, device_of, logs)
    collectives = find_collectives(gathered, links, times.ts, stream_of)
    _log_unmatched(collectives, files)
    clocks = collectives.matched.clocks
    ts = clocks.corrected(times.ts, gathered.trace)
    moved_ns = int(ts.min()) if len(ts) else 0
    return Rows(
        gathered=replace_origin(gathered, moved_ns) if moved_ns else gathered,
        links=links,
        times=times,
        collectives=collectives,
        ts=ts - moved_ns if moved_ns else ts,
        origin_moved_ns=moved_ns,
        device=device,
    )


_UNMATCHED_ISSUE = {
    MemberState.ABSENT: "collective_partner_absent",
    MemberState.UNCOVERED: "collective_unmatched",
}


def _log_unmatched(collectives: RunCollectives, files: Sequence[TraceFile]) -> None:
    """Count the members that stayed alone; those out of step with their place and both ranks."""
    matched = collectives.matched
    for unmatched in matched.unmatched:
        if unmatched.state is not MemberState.DESYNC:
            position = next(i for i, file in enumerate(files) if file.rank == unmatched.rank)
            files[position].parsed.log.count(_UNMATCHED_ISSUE[unmatched.state], unmatched.members)
    members = collectives.described.members
    shown: list[Clash] = []
    for file, clashes in _by_file(members.file, matched.clashes).items():
        shown += clashes[:LOG_LIMIT]
        files[file].parsed.log.count("collective_desync", len(clashes[LOG_LIMIT:]))
    for odd in out_of_step(members, matched.groups, shown):
        files[odd.file].parsed.log.at(
            "collective_desync",
            byte_offset=None,
            excerpt=odd.told,
            action="not matched with what the other ranks have there",
        )


def _by_file(file: NDArray[np.int64], clashes: Sequence[Clash]) -> dict[int, list[Clash]]:
    found: dict[int, list[Clash]] = {}
    for clash in clashes:
        found.setdefault(int(file[clash.row]), []).append(clash)
    return found


def replace_origin(gathered: Gathered, moved_ns: int) -> Gathered:
    """The same rows with an origin that is `moved_ns` later."""
    return replace(gathered, origin_ns=gathered.origin_ns + moved_ns, ts=gathered.ts - moved_ns)
