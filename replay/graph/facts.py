"""What is known about a run beside its graph: files, clocks, evidence, oddities."""

from dataclasses import dataclass

from ingest.vocab import EdgeKind, Evidence
from replay.graph.lags import Typical


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """One trace file."""

    trace_id: int
    rank: int
    world_size: int | None
    rank_source: str
    host: str | None
    gpu: str | None
    devices_seen: int
    events: int
    clock_offset_ns: int
    clock_uncertainty_ns: int | None
    device_clock_offset_ns: int
    complete: bool
    steps_recorded: int = 0
    """`ProfilerStep` windows of the file, whole or not."""
    has_shapes: bool = True
    """Input shapes of operators were recorded."""
    has_stacks: bool = True
    """Python frames were recorded."""
    has_sync_events: bool = True
    """Rows of category `cuda_sync` were recorded."""
    clock_drift_ppm: float = 0.0
    clock_base_rank: int | None = None
    """Rank to whose clock this file's is brought; its own where nothing ties it to another."""
    clock_samples: int = 0
    """Collectives that the offset rests on."""
    clock_method: str = "alone"
    launch_skew_ns: int = 0
    """How much before its call the earliest device row began, before it was moved."""
    made_by: str = ""
    """The program that made the file up, as it says itself; empty of a recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFacts:
    """Counts that decide how far the graph can be trusted."""

    files: tuple[FileFacts, ...]
    edges: dict[tuple[EdgeKind, Evidence], int]
    contradicted: dict[str, int]
    """Dependencies not made, by rule."""
    lags: dict[str, Typical]
    unlinked_frac: float
    """Share of device tasks whose launching call is not recorded."""
    members: int
    members_matched: int
    """Members of collectives that at least two files share."""
    members_complete: int
    """Members of collectives of which every member is in the files."""
    issues: dict[str, int]
    """Oddities of the data of severity notice and above, by name."""
    has_device: bool
    moved_ns: int
    """Device time moved by repairs (kernels before their launch), in ns of task time."""
    steps_left_out: int = 0
    """Whole recorded steps that are not in the longest run of steps that all files share."""
    streams_held: int = 0
    """Streams whose first task waited for work that was launched before the recording began."""
    out_of_step: tuple[str, ...] = ()
    """Collectives that are another operation on another rank, in words (the first of each file)."""

    @property
    def events(self) -> int:
        """Events over all files."""
        return sum(file.events for file in self.files)

    @property
    def made(self) -> str:
        """Who made files that were not recorded, in a sentence; empty where all were recorded."""
        makers = [file.made_by for file in self.files if file.made_by]
        if not makers:
            return ""
        some = len(makers) < len(self.files)
        which = f"{len(makers):,} of {len(self.files):,} files " if some else ""
        return (
            f"{which}made by {', '.join(dict.fromkeys(makers))}, not "
            "recorded: times that are called measured are those of models"
        )

    def evidence_share(self, evidence: Evidence) -> float:
        """Share of an evidence among the edges without program order."""
        counted = {
            key: count for key, count in self.edges.items() if key[0] != EdgeKind.PROGRAM_ORDER
        }
        total = sum(counted.values())
        of_kind = sum(count for key, count in counted.items() if key[1] == evidence)
        return of_kind / total if total else 0.0
