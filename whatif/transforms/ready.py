"""What had been launched at a moment of the recording: kernels of a stream, part of a host task.

A device task depends on what was launched before it, never on what was launched later. So a task
that is added as if launched at some moment may wait for all that had been launched then, and all
that was launched later may wait for it.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ingest.vocab import EdgeKind
from replay.graph.arrays import NONE, Bool, Int64, TaskGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The tasks of every lane in their recorded order."""

    graph: TaskGraph
    launched_ns: Int64
    """Per task: recorded end of the call that launched it, else its own start; never falls in a
    lane."""
    order: Int64
    """Tasks by lane and start."""
    first: Int64
    """Per lane: its first place in `order`; one more entry at the end."""
    place: Int64
    """Per task: its own place in `order`."""

    @classmethod
    def of(cls, graph: TaskGraph) -> "Ready":
        """Of the recorded times of a graph."""
        tasks = graph.tasks
        caller = np.maximum(tasks.caller, 0)
        called_ns = tasks.ts_ns[caller] + tasks.dur_ns[caller]
        called_ns = np.where(tasks.caller == NONE, tasks.ts_ns, called_ns)
        order = np.lexsort((tasks.ts_ns, tasks.lane))
        order = order[tasks.lane[order] >= 0].astype(np.int64)
        first = np.searchsorted(tasks.lane[order], np.arange(len(graph.lanes) + 1))
        launched_ns = np.zeros(graph.n_tasks, np.int64)
        for begin, end in pairwise(first.tolist()):
            mine = order[begin:end]
            launched_ns[mine] = np.maximum.accumulate(called_ns[mine])
        place = np.full(graph.n_tasks, NONE, np.int64)
        place[order] = np.arange(len(order))
        return cls(
            graph=graph,
            launched_ns=launched_ns,
            order=order,
            first=first.astype(np.int64),
            place=place,
        )

    def waited_kernels(self, arrival: int, moment_ns: int) -> list[tuple[int, int]]:
        """Kernels that a bucket ready at the moment waits for, and the lags after their ends, ns.

        Of the streams that the recorded arrival waits for, each the last one launched by then and
        not after the recorded one; that one itself where none had been launched, since what makes
        gradients cannot be missing.
        """
        edges = self.graph.edges
        found = []
        for edge in range(int(edges.start[arrival]), int(edges.start[arrival + 1])):
            if edges.kind[edge] != EdgeKind.EVENT_WAIT:
                continue
            recorded = int(edges.src[edge])
            earlier = self._up_to(recorded, moment_ns)
            kernel = int(earlier[-1]) if len(earlier) else recorded
            found.append((kernel, int(edges.lag_ns[edge])))
        return found

    def before_on_lane(self, arrival: int, moment_ns: int, left_out: Bool) -> int:
        """Last task of an arrival's lane before it that had been launched at the moment.

        Those left out do not count; -1 for none.
        """
        mine = self._up_to(arrival, moment_ns)
        earlier = mine[~left_out[mine]]
        return int(earlier[-1]) if len(earlier) else NONE

    def launch_lag_ns(self, arrival: int) -> int:
        """From the call that launched a recorded arrival to it; 0 where none did, or earlier."""
        edges = self.graph.edges
        mine = range(int(edges.start[arrival]), int(edges.start[arrival + 1]))
        launches = (EdgeKind.LAUNCH, EdgeKind.GRAPH_LAUNCH)
        return max(
            (int(edges.lag_ns[edge]) for edge in mine if edges.kind[edge] in launches), default=0
        )

    def others_later_ns(self, arrival: int) -> int:
        """How much later members that are not in the files arrived than this one was ready, ns.

        Ready by its launch and its kernels, whatever ran before it on its stream; 0 where the
        arrival waits for nobody outside.
        """
        tasks, edges = self.graph.tasks, self.graph.edges
        if not tasks.dur_ns[arrival]:
            return 0
        mine = np.arange(edges.start[arrival], edges.start[arrival + 1])
        mine = mine[edges.kind[mine] != EdgeKind.STREAM_ORDER]
        if not len(mine):
            return int(tasks.dur_ns[arrival])
        src = edges.src[mine]
        end_ns = tasks.ts_ns[src] + np.where(edges.from_start[mine], 0, tasks.dur_ns[src])
        ready_ns = int((end_ns + edges.lag_ns[mine]).max()) + int(tasks.residual_ns[arrival])
        return max(int(tasks.ts_ns[arrival] + tasks.dur_ns[arrival]) - ready_ns, 0)

    def _up_to(self, task: int, moment_ns: int) -> Int64:
        """Tasks of a task's lane, itself the last, that had been launched at the moment."""
        lane = int(self.graph.tasks.lane[task])
        mine = self.order[self.first[lane] : self.place[task] + 1]
        return mine[: int(np.searchsorted(self.launched_ns[mine], moment_ns, side="right"))]

    def running_at(self, lane: int, moment_ns: Int64) -> Int64:
        """Last task of a lane that began at or before each moment; -1 for none."""
        if lane == NONE:
            return np.full(len(moment_ns), NONE, np.int64)
        mine = self.order[self.first[lane] : self.first[lane + 1]]
        place = np.searchsorted(self.graph.tasks.ts_ns[mine], moment_ns, side="right") - 1
        return np.where(place >= 0, mine[np.maximum(place, 0)], NONE)

    def offset_ns(self, host: int, moment_ns: int) -> int:
        """How far into a host task a recorded moment lies, at the task's present length."""
        tasks = self.graph.tasks
        begin_ns = int(tasks.ts_ns[host])
        after = int(self.place[host]) + 1
        is_last = after == self.first[int(tasks.lane[host]) + 1]
        end_ns = moment_ns if is_last else int(tasks.ts_ns[self.order[after]])
        part = (moment_ns - begin_ns) / (end_ns - begin_ns) if end_ns > begin_ns else 1.0
        return round(min(max(part, 0.0), 1.0) * int(tasks.dur_ns[host]))
