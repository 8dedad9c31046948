"""JSON Schema of the report, as its structs say it; `schema/report.schema.json` holds it."""

from pathlib import Path

import msgspec

from whatif.postmortem.contract import SCHEMA_VERSION, Report

FILE = Path(__file__).with_name("schema") / "report.schema.json"


def schema_text() -> str:
    """The file."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:trace-replay:report:{SCHEMA_VERSION}",
        "title": "Post-mortem of `replay report TRACE... -o report.json`",
        **msgspec.json.schema(Report),
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"
