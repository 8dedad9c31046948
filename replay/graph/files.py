"""What the store says of the trace files of a run."""

from collections.abc import Sequence

from ingest.errors import UsageError
from ingest.store import Store
from replay.graph.arrays import RankInfo
from replay.graph.facts import FileFacts
from replay.graph.recorded import SQL


def chosen_files(store: Store, ranks: tuple[int, ...] | None) -> tuple[FileFacts, ...]:
    """The files of the chosen ranks (all by default), by rank.

    Raises:
        UsageError: a chosen rank has no file.
    """
    columns = store.arrays_from_file(SQL / "trace.sql", {})
    names = list(columns)
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    files = [_file_facts(dict(zip(names, row, strict=True))) for row in rows]
    if ranks is None:
        return tuple(files)
    present = {file.rank for file in files}
    missing = sorted(set(ranks) - present)
    if missing:
        raise UsageError(
            f"no file holds rank {', '.join(map(str, missing))}",
            hint=f"ranks in these files: {', '.join(map(str, sorted(present)))}",
        )
    return tuple(file for file in files if file.rank in ranks)


def rank_infos(files: Sequence[FileFacts], host_slowdowns: Sequence[float]) -> tuple[RankInfo, ...]:
    """The part of the facts that scenarios ask for."""
    return tuple(
        RankInfo(
            rank=file.rank,
            gpu=file.gpu,
            devices_seen=file.devices_seen,
            host=file.host,
            host_slowdown=slowdown,
        )
        for file, slowdown in zip(files, host_slowdowns, strict=True)
    )


def world_size(files: Sequence[FileFacts]) -> int | None:
    """Number of ranks of the job; None when no file says."""
    return max((file.world_size for file in files if file.world_size is not None), default=None)


def _file_facts(row: dict[str, object]) -> FileFacts:
    return FileFacts(
        trace_id=_whole(row["trace_id"]),
        rank=_whole(row["rank"]),
        world_size=_recorded(row["world_size"]),
        rank_source=_text(row["rank_source"]) or "",
        host=_text(row["host"]),
        gpu=_text(row["gpu"]),
        devices_seen=_whole(row["n_devices"]),
        events=_whole(row["n_events"]),
        clock_offset_ns=_whole(row["clock_offset_ns"]),
        clock_uncertainty_ns=_recorded(row["clock_uncertainty_ns"]),
        device_clock_offset_ns=_whole(row["device_clock_offset_ns"]),
        complete=bool(row["complete"]),
        steps_recorded=_whole(row["steps_recorded"]),
        has_shapes=bool(row["has_shapes"]),
        has_stacks=bool(row["has_stacks"]),
        has_sync_events=bool(row["has_sync_events"]),
        clock_drift_ppm=_real(row["clock_drift_ppm"]),
        clock_base_rank=_whole(row["clock_base_rank"]),
        clock_samples=_whole(row["clock_samples"]),
        clock_method=_text(row["clock_method"]) or "alone",
        launch_skew_ns=_whole(row["launch_skew_ns"]),
        made_by=_text(row["made_by"]) or "",
    )


def _whole(value: object) -> int:
    assert isinstance(value, int), "the query fills missing numbers"
    return value


def _real(value: object) -> float:
    assert isinstance(value, float), "the query fills missing numbers"
    return value


def _recorded(value: object) -> int | None:
    number = _whole(value)
    return number if number >= 0 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
