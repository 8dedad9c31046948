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
    ORDER BY s.id
"""
_ARGUMENTS = """
    WITH picked AS (
        SELECT
            s.id,
            TRY(json_extract_string(a.args, $paths::VARCHAR[])) AS word,
            TRY(json_extract(a.args, $paths::VARCHAR[])) AS text
        FROM slice AS s
        LEFT JOIN slice_args AS a ON a.id = s.id
        WHERE s.trace_id = $trace_id
    )
    SELECT {columns} FROM picked ORDER BY id
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
    host_step: NDArray[np.bool_]
    """Rows that are not a device's copy of an annotation."""


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
    """Rows in the order of the store; `index` counts from 1, for HTA takes 0 for "no event"."""
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
    return FileRows(frame=frame, host_step=(events["cat"] != "gpu_user_annotation")[keep])


def _arguments(
    store: Store, trace_id: int, specs: Sequence[AttributeSpec]
) -> dict[str, NDArray[Any]]:
    picked = ", ".join(_column(place, spec) for place, spec in enumerate(specs, start=1))
    paths = [f"$.{json.dumps(spec.raw_name)}" for spec in specs]
    query = _ARGUMENTS.format(columns=picked)
    found = store.arrays(query, {"trace_id": trace_id, "paths": paths})
    return {
        spec.name: _filled(values, spec) for spec, values in zip(specs, found.values(), strict=True)
    }


def _column(place: int, spec: AttributeSpec) -> str:
    """As HTA, which reads no hexadecimal stream numbers."""
    if spec.value_type in _CASTS:
        cast = _CASTS[spec.value_type]
        word = f"CASE WHEN word[{place}] NOT ILIKE '0x%' THEN word[{place}] END"
        return f"TRY_CAST({word} AS {cast}) AS c{place}"
    source = "word" if spec.value_type is ValueType.String else "text::VARCHAR[]"
    return f"({source})[{place}] AS c{place}"


def _filled(values: NDArray[Any], spec: AttributeSpec) -> NDArray[Any]:
    """Default values where nothing is recorded; objects decoded, each text once."""
    if spec.value_type in _CASTS:
        if values.dtype != object:
            return values
        numbers = [spec.default_value if value is None else value for value in values.tolist()]
        return np.array(numbers)
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
