"""JSON Schemas that follow from the structs themselves: of scenario files and of answers.

`schema/NAME.schema.json` holds each, for editors and other programs. (`answer.schema.json` is
written by hand, as its fields have a history.)
"""

from pathlib import Path
from typing import Any

import msgspec

from whatif.report.description import DescribeAnswer
from whatif.report.levers import LeversAnswer
from whatif.report.plan import PlanAnswer
from whatif.report.solve import SolveAnswer
from whatif.report.sweep import SweepAnswer
from whatif.scenario import Scenario

FOLDER = Path(__file__).with_name("schema")
TITLES = {
    "scenario": "What-ifs of `replay TRACE... --scenario FILE`",
    "describe": "Answer of `replay describe TRACE... --json`",
    "levers": "Answer of `replay levers TRACE... --json`",
    "plan": "Answer of `replay plan TRACE... --json`",
    "sweep": "Answer of `replay sweep TRACE... --json`",
    "solve": "Answer of `replay solve TRACE... --json`",
}
STRUCTS: dict[str, type[msgspec.Struct]] = {
    "scenario": Scenario,
    "describe": DescribeAnswer,
    "levers": LeversAnswer,
    "plan": PlanAnswer,
    "sweep": SweepAnswer,
    "solve": SolveAnswer,
}


def schema_of(name: str) -> dict[str, Any]:
    """The schema of one kind of document."""
    return described(name, TITLES[name], STRUCTS[name])


def described(name: str, title: str, struct: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of a struct."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:trace-replay:{name}:1",
        "title": title,
        **msgspec.json.schema(struct),
    }


def schema_text(name: str) -> str:
    """The file of that schema."""
    return as_file(schema_of(name))


def as_file(schema: dict[str, Any]) -> str:
    """A schema as it lies beside the code."""
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"
