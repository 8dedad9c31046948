"""What a notebook calls; each command of the command line is one call of it.

The calls themselves are in `replay.calls`, a module a subject.
"""

from ingest.pipeline import IngestOptions
from replay.calls.answered import analyse, examine
from replay.calls.compared import diff, side, verify
from replay.calls.described import Understood, describe
from replay.calls.exported import (
    Exported,
    ExportedTraces,
    export_chakra,
    export_tables,
    export_timeline,
)
from replay.calls.planned import plan
from replay.calls.program import program
from replay.calls.questions import Goal, levers, solve, sweep
from replay.calls.replayed import Replayed, replay_run
from replay.calls.reported import report
from replay.calls.stored import Stored, ingest, open_run, schema, sql
from replay.calls.window import DEFAULTS, UNCHANGED, WHOLE, Window
from whatif.compare.prediction import read_prediction
from whatif.plan.plan import Asked

__all__ = [
    "DEFAULTS",
    "UNCHANGED",
    "WHOLE",
    "Asked",
    "Exported",
    "ExportedTraces",
    "Goal",
    "IngestOptions",
    "Replayed",
    "Stored",
    "Understood",
    "Window",
    "analyse",
    "describe",
    "diff",
    "examine",
    "export_chakra",
    "export_tables",
    "export_timeline",
    "ingest",
    "levers",
    "open_run",
    "plan",
    "program",
    "read_prediction",
    "replay_run",
    "report",
    "schema",
    "side",
    "solve",
    "sql",
    "sweep",
    "verify",
]
