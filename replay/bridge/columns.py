"""Rows of one file as HTA's columns, before it links and filters them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hta.configs.default_values import AttributeSpec, ValueType
from hta.configs.parser_config import DEFAULT_PARSE_VERSION, ParserConfig
from numpy.typing import NDArray

from ingest.store import Store
from replay.bridge.times import FileClock, exact_times, rounded_times

Int64 = NDArray[np.int64]

_EVENTS = """
    SELECT
        s.cat, s.name, p.pid, h.tid, s.ts, s.dur,
        k.id IS NOT NULL AS on_device, COALESCE(s.repair = 'unfinished', false) AS unfinished
    FROM slice AS s
    JOIN thread AS h ON h.utid = s.utid
    JOIN process AS p ON p.upid = h.upid
    LEFT JOIN kernel AS k ON k.id = s.id
    WHERE s.trace_id = $trace_id
    ORDER BY s.ts, s.correlation NULLS FIRST, s.id
"""
_ARGUMENTS = """
    WITH picked AS (
        SELECT
            s.id, s.ts, s.correlation,
            TRY(json_extract_string(a.args, $words::VARCHAR[])) AS word,
            TRY(json_extract(a.args, $objects::VARCHAR[])) AS object
        FROM slice AS s
        LEFT JOIN slice_args AS a ON a.id = s.id
        WHERE s.trace_id = $trace_id
    )
    SELECT {columns} FROM picked ORDER BY ts, correlation NULLS FIRST, id
"""
_COUNTERS = """
    SELECT DISTINCT UNNEST(json_keys(a.args)) AS name
    FROM slice_args AS a
    JOIN slice AS s ON s.id = a.id
    WHERE s.trace_id = $trace_id AND s.cat = 'cuda_profiler_range'
    ORDER BY name
"""
_EXAMPLES = """
    SELECT e.key AS name, ANY_VALUE(e.value::VARCHAR) AS example
    FROM slice_args AS a
    JOIN slice AS s ON s.id = a.id,
    json_each(a.args) AS e
    WHERE s.trace_id = $trace_id
    GROUP BY e.key
    ORDER BY e.key
"""
_CASTS = {ValueType.Int: "BIGINT", ValueType.Float: "DOUBLE"}
_DROPPED = ("", "Trace")
"""Categories of rows that HTA leaves out: none, and those of the profiler itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """Rows of one file that HTA keeps."""

    frame: pd.DataFrame
    """HTA's columns as far as the file itself tells them; `cat` and `name` are still words."""
    on_host: NDArray[np.bool_]
    """False for the device's copies of annotations and for device work."""


def specs_of(store: Store, trace_id: int, config: ParserConfig) -> list[AttributeSpec]:
    """Arguments that become columns: those of the configuration and performance counters."""
    specs = list(config.get_args())
    if config.parse_all_args:
        found = store.rows(_EXAMPLES.replace("$trace_id", "$1"), [trace_id])
        examples = pd.Series([{name: json.loads(example)} for name, example in found])
        known = config.get_all_available_args()
        specs = list(config.infer_attribute_specs(examples, known).values())
    named = {spec.name for spec in specs}
    counters = store.arrays(_COUNTERS, {"trace_id": trace_id})["name"].tolist()
    return specs + [
        AttributeSpec(name, name, ValueType.Int, -1, DEFAULT_PARSE_VERSION)
        for name in counters
        if name not in named
    ]


def file_rows(
    store: Store, clock: FileClock, specs: Sequence[AttributeSpec], *, round_like_hta: bool
) -> FileRows:
    """Rows by start, then in the order of calls; `index` counts them from 1.

    HTA takes 0 for "no event", and yet joins kernels without a call to the row of that index.
    """
    events = store.arrays(_EVENTS, {"trace_id": clock.trace_id})
    times = (rounded_times if round_like_hta else exact_times)(
        clock, events["ts"], events["dur"], events["on_device"]
    )
    n = len(events["ts"])
    columns: dict[str, Any] = {
        "index": np.arange(1, n + 1),
        "cat": events["cat"],
        "name": events["name"],
        "pid": _numbers_where_possible(events["pid"]),
        "tid": _numbers_where_possible(events["tid"]),
        "ts": times.ts,
        "dur": times.dur,
        "end": times.ts + times.dur,
        **_arguments(store, clock.trace_id, specs),
    }
    keep = ~np.isin(events["cat"].astype(str), _DROPPED) & ~events["unfinished"]
    frame = pd.DataFrame(columns, index=columns["index"])[keep]
    for name in frame.columns:
        if frame[name].dtype.kind == "i" and name not in ("ts", "dur", "end"):
            frame[name] = pd.to_numeric(frame[name], downcast="integer")
    on_host = ~events["on_device"] & (events["cat"] != "gpu_user_annotation")
    return FileRows(frame=frame, on_host=on_host[keep])


def _arguments(
    store: Store, trace_id: int, specs: Sequence[AttributeSpec]
) -> dict[str, NDArray[Any]]:
    """As HTA picks them; numbers that a file holds as text become numbers."""
    words = [spec for spec in specs if spec.value_type is not ValueType.Object]
    objects = [spec for spec in specs if spec.value_type is ValueType.Object]
    picked = [_word(place, spec) for place, spec in enumerate(words, start=1)]
    picked += [f"object[{place}]::VARCHAR AS o{place}" for place in range(1, len(objects) + 1)]
    paths = {"words": _paths(words), "objects": _paths(objects)}
    query = _ARGUMENTS.format(columns=", ".join(picked))
    found = store.arrays(query, {"trace_id": trace_id, **paths})
    columns = dict(zip((spec.name for spec in words + objects), found.values(), strict=True))
    for spec in words + objects:
        if spec.value_type not in _CASTS:
            columns[spec.name] = _filled(columns[spec.name], spec)
    return {spec.name: columns[spec.name] for spec in specs}


def _paths(specs: Sequence[AttributeSpec]) -> list[str]:
    return [f"$.{json.dumps(spec.raw_name)}" for spec in specs]


def _word(place: int, spec: AttributeSpec) -> str:
    """The SQL of a column; like HTA it takes a hexadecimal stream for none."""
    word = f"word[{place}]"
    if spec.value_type not in _CASTS:
        return f"{word} AS w{place}"
    kind = _CASTS[spec.value_type]
    decimal = f"TRY_CAST(CASE WHEN {word} NOT ILIKE '0x%' THEN {word} END AS {kind})"
    return f"COALESCE({decimal}, CAST({float(spec.default_value)!r} AS {kind})) AS w{place}"


def _filled(values: NDArray[Any], spec: AttributeSpec) -> NDArray[Any]:
    """Defaults where nothing is recorded; objects decoded, each text once."""
    decoded: dict[str | None, Any] = {None: spec.default_value}
    is_text = spec.value_type is ValueType.String
    filled = np.empty(len(values), object)
    for place, value in enumerate(values.tolist()):
        if value not in decoded:
            decoded[value] = value if is_text else json.loads(value)
        filled[place] = decoded[value]
    return filled


def _numbers_where_possible(words: NDArray[Any]) -> NDArray[Any]:
    """HTA keeps numbers as they are in the JSON; the store keeps their text."""
    known: dict[str, object] = {}
    numbers = np.empty(len(words), object)
    for place, word in enumerate(words.tolist()):
        if word not in known:
            known[word] = int(word) if word.removeprefix("-").isdecimal() else word
        numbers[place] = known[word]
    return numbers
