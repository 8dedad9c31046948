"""What people say of a run: a YAML file that overrules what the trace tells, field by field."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from textwrap import wrap
from typing import Any

import msgspec

from ingest.errors import ScenarioError
from whatif.description.described import Finding, Sure
from whatif.documents import as_struct, read_yaml
from whatif.models.shape import Degrees, RunShape
from whatif.models.transformer.parameters import contradicts_experts

Said = dict[str, Any]
"""The fields that were written, nested as in `RunShape`."""

_COMMENT_WIDTH = 100
_NOT_SURE = (Sure.GUESSED, Sure.UNKNOWN)
_SEEN = (
    "degrees.tp",
    "degrees.sp",
    "degrees.cp",
    "degrees.pp",
    "degrees.dp",
    "degrees.zero",
    "degrees.ep",
    "batch.micro_batches",
    "options.recompute",
)
"""Of these the usual value is what was seen where nothing is told: no communicator, no work."""


def load_said(path: Path) -> Said:
    """Read and check a description.

    Raises:
        UsageError: the file cannot be read.
        ScenarioError: it is wrong.
    """
    document = read_yaml(path, "a description")
    if not isinstance(document, dict):
        raise ScenarioError(f"{path}: no description", hint="fields: model, degrees, batch, …")
    said = {section: fields for section, fields in document.items() if fields is not None}
    as_struct(said, RunShape, str(path))
    return said


def said_over(shape: RunShape, said: Said | None, place: str) -> RunShape:
    """The shape with what a person says in place of what was found.

    Raises:
        ScenarioError: the fields do not fit one another; names the place.
    """
    if not said:
        return shape
    found: dict[str, Any] = msgspec.to_builtins(shape)
    both = {name: {**found.get(name, {}), **said.get(name, {})} for name in {*found, *said}}
    return as_struct(both, RunShape, place)


def refuse_contradictions(
    shape: RunShape,
    said: Said | None,
    place: str,
    *,
    world_size: int,
    layers_seen: int,
    counted: int | None = None,
) -> None:
    """Refuse what the run shows to be otherwise.

    Args:
        shape: as said and found.
        said: the fields that were written.
        place: of the description, for the message.
        world_size: ranks of the run.
        layers_seen: layers that were told apart in its files; 0 where none were.
        counted: parameters by the gradients of the run; None: not known, or there are experts.

    Raises:
        ScenarioError: the degrees make another number of ranks, there are more layers to see, or
            fewer parameters than experts have.
    """
    degrees = shape.degrees
    if (said or {}).get("degrees") and degrees.world != world_size:
        raise ScenarioError(
            f"{place}, at `$.degrees`: {_product(degrees)} = {degrees.world:,} ranks, but the run "
            f"has {world_size:,}",
            hint="tp x cp x pp x dp is the number of ranks; say all that the trace misreads",
        )
    if counted is not None and contradicts_experts(shape.model, counted):
        raise ScenarioError(
            f"{place}, at `$.model.experts`: {shape.model.experts:,}, but the run reduces "
            f"{counted:,} gradients, as many as a model without experts has",
            hint="a what-if puts none in: a run that has some tells, or `replay synth` makes one",
        )
    layers = shape.model.layers
    if (said or {}).get("model", {}).get("layers") and layers and layers_seen > layers:
        raise ScenarioError(
            f"{place}, at `$.model.layers`: {layers:,}, but {layers_seen:,} layers are in the run",
            hint="replay describe TRACE shows how layers were told apart",
        )
    if degrees.shard and degrees.dp % degrees.shard:
        raise ScenarioError(
            f"{place}, at `$.degrees.shard`: {degrees.shard} does not divide dp {degrees.dp}",
            hint="groups of replicas that share state are of one size",
        )


def _product(degrees: Degrees) -> str:
    factors = [(name, getattr(degrees, name)) for name in ("tp", "cp", "pp", "dp")]
    return " x ".join(f"{name} {value}" for name, value in factors if value > 1) or "dp 1"


def description_text(shape: RunShape, findings: Sequence[Finding]) -> str:
    """A description to edit and give back: every field, with what it rests on above it.

    Fields that are not known stand as comments, and so do guesses: a file says what is sure.
    """
    why = {finding.what: finding for finding in findings}
    lines = [
        "# What the run is. Edit what is misread, and give it back with --describe FILE.",
        "# Fields that are commented out are guesses, usual values, or not known.",
    ]
    for section in shape.__struct_fields__:
        lines += ["", f"{section}:"]
        part = getattr(shape, section)
        usual = msgspec.structs.asdict(type(part)())
        for name, value in msgspec.structs.asdict(part).items():
            what = f"{section}.{name}"
            lines += _field(
                name, value, why.get(what), is_usual=value == usual[name] and what not in _SEEN
            )
    return "\n".join(lines) + "\n"


def _field(name: str, value: object, why: Finding | None, *, is_usual: bool) -> list[str]:
    lines = []
    if why is None and is_usual and value is not None:
        return [f"  # {name}: {_scalar(value)}  # usual: the trace does not tell"]
    if why is not None:
        mark = "  # "
        told = f"{why.sure}: {why.evidence}"
        lines = wrap(told, _COMMENT_WIDTH, initial_indent=mark, subsequent_indent=mark)
    if value is None:
        return [*lines, f"  # {name}:"]
    if why is not None and why.sure in _NOT_SURE:
        return [*lines, f"  # {name}: {_scalar(value)}"]
    return [*lines, f"  {name}: {_scalar(value)}"]


def _scalar(value: object) -> str:
    """As YAML reads it back; every text is quoted, which JSON's way of quoting suits."""
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return msgspec.json.encode(value).decode()
