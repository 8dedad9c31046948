"""JSON Schemas of the comparisons, which follow from their structs: `schema/NAME.schema.json`."""

from pathlib import Path
from typing import Any

import msgspec

from whatif.compare.contract import Diff
from whatif.compare.verify import Verification
from whatif.report.schemas import as_file, described

FOLDER = Path(__file__).with_name("schema")
STRUCTS: dict[str, tuple[str, type[msgspec.Struct]]] = {
    "diff": ("Answer of `replay diff A B --json`", Diff),
    "verify": ("Answer of `replay verify PREDICTION TRACE --json`", Verification),
}


def schema_of(name: str) -> dict[str, Any]:
    """The schema of one kind of comparison."""
    title, struct = STRUCTS[name]
    return described(name, title, struct)


def schema_text(name: str) -> str:
    """The file of that schema."""
    return as_file(schema_of(name))
