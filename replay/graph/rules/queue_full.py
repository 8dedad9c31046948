"""A launch returns when its stream's queue has a place for it."""

from ingest.vocab import EdgeKind
from replay.graph.lags import Typical
from replay.graph.layout import Parts
from replay.graph.rules.base import Found, edge_list


def queue_full(parts: Parts) -> Found:
    """Edges from the start of the work that frees the place to the wait inside the call.

    The call's own cost follows the wait. Only on streams whose queue came near its limit.
    """
    queues = parts.queues
    edges = edge_list(
        parts.layout.first_of_device[queues.device_row],
        parts.host_tasks.queue_task,
        lag_ns=0,
        kind=EdgeKind.QUEUE_FULL,
        from_start=True,
    )
    limit = Typical(lag_ns=0, samples=queues.samples, is_default=queues.samples == 0)
    return Found(
        edges=edges,
        lags={f"queue_full ({queues.limit:,} places)": limit} if queues.limit else {},
        contradicted=queues.contradicted,
    )
