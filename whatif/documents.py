"""YAML files that people write: read, turned into structs, and mistakes named by their place."""

import re
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml
from msgspec import Struct

from ingest.errors import ScenarioError, UsageError, UserError, nearest

_S = TypeVar("_S", bound=Struct)
_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<field>[^`]*)`")


def read_yaml(path: Path, what: str) -> object:
    """The document of a file.

    Args:
        path: of the file.
        what: it is meant to be, with its article: `a scenario`.

    Raises:
        UsageError: the file cannot be read.
        ScenarioError: it is no YAML.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", hint="is the path right?") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: no text in UTF-8", hint=f"{what} is a YAML file") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        raise ScenarioError(f"{path}{place}: no YAML: {problem}") from error


def as_struct(item: object, struct: type[_S], place: str) -> _S:
    """A part of a document as a struct.

    Raises:
        ScenarioError: it does not fit; the message begins with `place` and names the field.
    """
    try:
        return msgspec.convert(item, struct)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{place}: {error}", hint=_field_hint(str(error), struct)) from error
    except UserError as error:
        raise ScenarioError(f"{place}: {error}", hint=error.hint) from error


def _field_hint(message: str, struct: type[Struct]) -> str:
    fields = list(struct.__struct_encode_fields__)
    if not fields:
        return "this what-if has no fields but `kind`"
    if unknown := _UNKNOWN_FIELD.search(message):
        return nearest(unknown["field"], fields)
    return f"fields: {', '.join(fields)}"
