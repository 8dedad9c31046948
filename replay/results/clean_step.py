"""The step without the profiler, where whoever recorded the trace measured it."""

from pathlib import Path

from ingest.store import Store
from ingest.units import Nanos

SQL = Path(__file__).parent / "sql"


def measured_without_profiler(store: Store) -> Nanos | None:
    """Mean step that `replay capture` wrote into the files; None where no file has one."""
    found = store.arrays_from_file(SQL / "unprofiled_step.sql", {})["step_ns"]
    return Nanos(int(found[0])) if len(found) else None
