"""What people say of a run: a YAML file that overrules what the trace tells, field by field."""

from pathlib import Path
from typing import Any

from ingest.errors import ScenarioError
from whatif.documents import as_struct, read_yaml
from whatif.models.shape import RunShape

Said = dict[str, Any]
"""The fields that were written, nested as in `RunShape`."""


def load_said(path: Path) -> Said:
    """Read and check a description.

    Raises:
        UsageError: the file cannot be read.
        ScenarioError: it is wrong.
    """
    document = read_yaml(path, "a description")
    if not isinstance(document, dict):
        raise ScenarioError(f"{path}: no description", hint="fields: model, degrees, batch, …")
    as_struct(document, RunShape, str(path))
    return document
