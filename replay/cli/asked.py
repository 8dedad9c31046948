"""The what-if options of `replay whatif`, for the other commands that ask what-ifs.

They are read off that command's own parameters, so that a what-if is written down once.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

import typer

from replay.cli.cmd_whatif import whatif

NO_WHAT_IFS = frozenset(
    {
        *("ctx", "traces", "steps", "ranks", "unprofiled_step", "window"),
        *("format_", "json", "strict", "no_cache", "cache_dir", "save_scenario"),
        *("tokens_per_step", "samples_per_step", "flops_per_step", "steps_total", "jitter"),
    }
)
"""Parameters of `replay whatif` that say which run, how it is read and what is printed."""


OWN_HARDWARE = "own_hardware"
"""The catalog that what-ifs are understood by; no what-if either, yet every command takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A what-if option."""

    name: str
    """Of the parameter: `network_scale`."""
    option: str
    """As typed: `--network-scale`."""
    metavar: str
    """What its value is: RATE, X, N, SELECTOR=FACTOR."""
    value: type
    """Of one value: str, int, float, Path, or bool for a flag."""


def _what_ifs() -> list[inspect.Parameter]:
    parameters = inspect.signature(whatif, eval_str=True).parameters
    return [found for name, found in parameters.items() if name not in NO_WHAT_IFS]


def asked() -> dict[str, Asked]:
    """Every what-if option, by the name of its parameter."""
    return {found.name: _asked(found) for found in _what_ifs() if found.name != OWN_HARDWARE}


def _asked(found: inspect.Parameter) -> Asked:
    _, option = get_args(found.annotation)
    return Asked(
        name=found.name,
        option=f"--{found.name.replace('_', '-')}",
        metavar=option.metavar or "",
        value=_one_value(found),
    )


def _one_value(found: inspect.Parameter) -> type:
    """`int` of `list[int] | None`."""
    kind: Any = get_args(found.annotation)[0]
    kinds = [some for some in get_args(kind) if some is not type(None)]
    kind = kinds[0] if kinds and get_origin(kind) is not list else kind
    one: type = get_args(kind)[0] if get_origin(kind) is list else kind
    return one


def with_what_ifs(command: Callable[..., None], *, several: bool) -> Callable[..., None]:
    """The command with those options after its own; it reads them by `typed(ctx)`.

    Args:
        command: gets none of them as arguments.
        several: each option may hold a list or a range, so that its value is any text.
    """
    own = inspect.signature(command, eval_str=True)
    more = [_lists(found) if several else found for found in _what_ifs()]
    first = [found for found in own.parameters.values() if found.default is found.empty]
    last = [found for found in own.parameters.values() if found.default is not found.empty]

    def with_all(**given: Any) -> None:  # noqa: ANN401  (arguments of any command)
        from whatif.models.hardware import extended_by

        with extended_by(given[OWN_HARDWARE]):
            command(**{name: value for name, value in given.items() if name in own.parameters})

    taken = set(own.parameters)
    together = [*first, *(found for found in more if found.name not in taken), *last]
    with_all.__signature__ = own.replace(parameters=together)  # type: ignore[attr-defined]
    with_all.__annotations__ = {found.name: found.annotation for found in together}
    with_all.__name__, with_all.__doc__ = command.__name__, command.__doc__
    return with_all


def _lists(found: inspect.Parameter) -> inspect.Parameter:
    """The same option with text for its value, as often as wanted; a flag stays one."""
    if _one_value(found) is bool or found.name == OWN_HARDWARE:
        return found
    _, option = get_args(found.annotation)
    lists = typer.Option(metavar=f"{option.metavar}…", help=option.help)
    return found.replace(annotation=Annotated[list[str] | None, lists])
