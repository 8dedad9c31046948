"""Every threshold of the graph rules and of the reading of a run, in one place.

DESIGN sections 2 and 3 give the evidence of the rules.
"""

SILENCE_NS = 200_000
"""A stretch of a thread shorter than this is never taken for a wait."""
HAND_OVER_RETURN_NS = 1_000_000
"""A thread that waited for another goes on at most this long after the other's last row."""
IMPLIED_RETURN_NS = 100_000
"""A thread that waited for device work goes on at most this long after its end."""
MEMBER_EARLY_NS = 1_500_000
MEMBER_LATE_NS = 300_000
"""A thread that waited for a host-side collective goes on between these times before and after
the end of its row: the row is closed after the waiting thread was woken (seen: -1,130 to
+180 us)."""
MEMBER_OFF_FRAC = 0.05
MEMBER_OFF_MOST_NS = 5_000_000
"""After a long stretch it may be that part of the stretch early or late, up to this, where at least
half of the stretches at the same place end so: where ranks have more threads than cores, threads
that waited 43, 65, 120 and 217 ms went on 0.4, 4.1, 3.4 and 0.9 ms after the row's end. (Sleep that
ends so by chance is not half of the sleep at its place.)"""
TELLING_OPERATOR_NS = 300_000
"""Operators on the host that last less tell little of what ran beside them."""
TWIN_OPERATORS = 3
TELLING_OVERLAP_NS = 20_000_000
"""Operators of one kind that ran alone, and as many beside a transfer, tell how much slower that
is; together they must have run for so long."""
SYNC_RETURN_NS = 60_000
"""Return lags above this are work of the call, not its return."""
UNEXPLAINED_NS = 1_000_000
"""A silent stretch longer than this needs a cause or a twin."""
TWIN_TOLERANCE_FRAC = 0.10
IDLE_DEVICE_NS = 5_000
"""A launch onto a device idle for at least this long shows the launch lag."""
LONE_LAUNCH_ROWS = 2
"""A call with more device rows than this launched a graph, whatever its name."""
GRAPH_GAP_NS = 20_000
"""A gap before a kernel of a CUDA graph that is longer than this needs a cause."""
GRAPH_GAP_SAMPLES = 2
"""Launches of one graph that must show the same gap before it counts as work not recorded."""
QUEUED_NS = 20_000
"""A task launched this long before it started shows the lag of its stream or event."""
FROM_TIME_RESIDUAL_NS = 50_000
"""A device task with a larger residual may have waited for an event that nothing else shows."""
FROM_TIME_LAG_NS = 5_000
"""Such a task started within this time after the end of what it waited for."""
UNRECORDED_EVENT_LAG_NS = 10_000
"""The same in files without event-record rows, whose profilers often round to 1 us."""
LONGEST_LAG_NS = 20_000
"""Stream and event lags above this lack a cause and are residuals."""
OVERLAP_NS = 10_000
"""Programmatic dependent launch overlaps neighbours of a stream by less than this."""
CLOCK_TOLERANCE_NS = 5_000
"""Host and device clocks of one file agree to this; an edge may contradict by no more."""
MEETING_TOLERANCE_NS = 1_000
"""A member whose transfer began this much before the last arrival did not wait for it."""
SHORT_GAP_NS = 5_000
"""Gaps of a stream below this are what one kernel after another costs: summed, not looked at."""
SM_FULL_RESIDUAL_NS = 50_000
"""A device task with a larger residual may have found the device full."""
SM_FULL_TAIL_NS = 600_000
"""The kernel that filled it ended within this time after the start: its last wave of blocks."""
SM_TAIL_SAMPLES = 3
"""Tails of a kernel, or of all, that give a typical one."""
QUEUE_NEAR = 900
"""A stream that held this many unstarted launches came near the size of its queue."""
QUEUE_LONG_CALL_NS = 100_000
"""A launch call longer than this, that deep, waited for a place."""
QUEUE_SAMPLES = 3
"""Long calls at one depth that show the size of the queue."""
SAMPLES = 8
"""Fewer samples than this give the default lag."""
FEW_SAMPLES = 3
"""So many can still show that a lag is shorter than its default; one or two would fit tasks."""
HAND_OVER_SAMPLES = 3

DEFAULT_QUEUE = 1_024
"""Places of a stream's queue where no long call shows them."""
DEFAULT_LAUNCH_NS = 2_000
DEFAULT_STREAM_NS = 1_500
DEFAULT_SM_TAIL_NS = 15_000
DEFAULT_EVENT_NS = 1_500
DEFAULT_LINK_NS = 50_000
DEFAULT_SYNC_NS = 5_000
DEFAULT_HAND_OUT_NS = 150_000
DEFAULT_HAND_BACK_NS = 70_000

LONG_STEP = 1.5
"""A step this many times the median is named."""
GROWN_FRAC = 0.1
"""What makes up less than this part of such a step's growth is not told."""
MOSTLY_FRAC = 0.5
"""A lateness is told by the cause (or name) that makes up at least this part of it."""
ONE_RANK_FRAC = 2 / 3
"""A critical path of which this part lies on one of several ranks is that rank's."""
STRAGGLER_FRAC = 0.01
"""Waiting for one rank is told where it costs the others more than this part of the step."""
MATRIX_COVERED_FRAC = 0.8
"""MFU is told from recorded shapes where they tell the FLOPs of this part of the time of matrix
products, convolution and attention."""
