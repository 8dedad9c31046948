"""What could stand next on the command line: commands, options, their values, trace files."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, get_args

TRACES = re.compile(r"\.(json|json\.gz|gz|zst|duckdb)$")
SCENARIOS = re.compile(r"\.ya?ml$")
ANY = re.compile("")


class Word(NamedTuple):
    """A candidate; folders end in a slash, since more may follow."""

    text: str
    meaning: str = ""


def candidates(words: Sequence[str], commands: Mapping[str, Any]) -> list[Word]:
    """All that the last word may grow into.

    Args:
        words: after `replay`; the last is the one being typed, and may be empty.
        commands: the app's, by name: typer's own objects.
    """
    *typed, current = words or [""]
    before = [word for word in typed if word != "="]  # bash parts `--gpu=H200` into three words
    current = "" if current == "=" else current
    if not before and current.startswith("-"):
        return _beginning(current, [Word("--help"), Word("--version")])
    if not before:
        return _first(current, commands)
    name, rest = (before[0], before[1:]) if before[0] in commands else ("whatif", before)
    return _within(commands[name], rest, current)


def _first(current: str, commands: Mapping[str, Any]) -> list[Word]:
    """Commands, and traces, since those need no verb."""
    known = [Word(name, command.get_short_help_str(60)) for name, command in commands.items()]
    return [*_beginning(current, known), *_files(current, TRACES)]


def _within(command: Any, before: Sequence[str], current: str) -> list[Word]:  # noqa: ANN401  (typer's)
    """Options, or values of the option or argument that is being typed."""
    kinds = _kinds(command.callback)
    options = {
        option: one for one in command.params for option in one.opts if option.startswith("-")
    }
    waiting, places = _walked(before, options)
    if waiting is not None:
        return _values(waiting.name, kinds[waiting.name], current)
    if current.startswith("-") and "--" not in before:
        told = [
            Word(option, one.help or "")
            for option, one in options.items()
            if option.startswith("--") and not one.hidden
        ]
        return _beginning(current, [*told, Word("--help")])
    arguments = [one for one in command.params if not one.opts[0].startswith("-")]
    if not arguments:
        return []
    here = arguments[min(places, len(arguments) - 1)]
    return _values(here.name, kinds[here.name], current, of=command.name)


def _walked(before: Sequence[str], options: Mapping[str, Any]) -> tuple[Any, int]:
    """The option whose value is being typed, if any, and how many arguments stand before."""
    waiting, places, is_over = None, 0, False
    for word in before:
        if waiting is not None:
            waiting = None
        elif word == "--" and not is_over:
            is_over = True
        elif word.startswith("-") and not is_over:
            found = options.get(word)
            waiting = found if found is not None and not found.is_flag else None
        else:
            places += 1
    return waiting, places


def _kinds(function: Callable[..., None]) -> dict[str, type]:
    """Type of one value of each parameter: `Path` of `list[Path] | None`."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    return {one.name: _one(one.annotation) for one in parameters}


def _one(annotation: Any) -> type:  # noqa: ANN401  (any type expression)
    inner = [part for part in get_args(annotation) if isinstance(part, type) or get_args(part)]
    inner = [part for part in inner if part is not type(None)]
    return _one(inner[0]) if inner else annotation


def _values(name: str, kind: type, current: str, *, of: str = "") -> list[Word]:
    """Values of an option or argument; none where they are numbers or free text."""
    known = NAMED.get(f"{of} {name}") or NAMED.get(name)
    if known is not None:
        return _beginning(current, known())
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _beginning(current, [Word(str(value.value)) for value in kind])
    wanted = FILES.get(name) or (ANY if kind is Path else None)
    return _files(current, wanted) if wanted else []


def _devices() -> list[Word]:
    from whatif.models.hardware import catalog

    return [Word(_short(one), one.name) for one in catalog().accelerators]


def _links() -> list[Word]:
    from whatif.models.hardware import catalog

    return [Word(_short(one), one.name) for one in catalog().links]


def _devices_and_links() -> list[Word]:
    return [*_devices(), *_links()]


def _short(entry: Any) -> str:  # noqa: ANN401  (device or link)
    """The shortest name without blanks, as it needs no quotes."""
    names: list[str] = [name for name in (entry.name, *entry.aliases) if " " not in name]
    return min(names, key=len) if names else str(entry.name)


def _queries() -> list[Word]:
    from replay.queries.load import names

    return [Word(name) for name in names()]


NAMED: Mapping[str, Callable[[], list[Word]]] = {
    "gpu": _devices,
    "base_gpu": _devices,
    "query": _queries,
    "hardware name": _devices_and_links,
    "queries name": _queries,
}
"""Parameters whose values have names; of one command only where that stands before."""
FILES = {
    "traces": TRACES,
    "trace": TRACES,
    "first": TRACES,
    "files": SCENARIOS,
    "program": ANY,
}
"""Arguments that are files; options are where their type is a path."""


def _files(current: str, wanted: re.Pattern[str]) -> list[Word]:
    """Folders, and files of the wanted kind, in the folder that is being typed."""
    folder, slash, start = current.rpartition("/")
    try:
        found = sorted(Path(f"{folder}{slash}" or ".").expanduser().iterdir())
    except OSError:
        return []
    return [Word(f"{folder}{slash}{text}") for text in _entries(found, start, wanted)]


def _entries(found: Sequence[Path], start: str, wanted: re.Pattern[str]) -> Iterator[str]:
    for path in found:
        is_meant = path.name.startswith(start) and (start or not path.name.startswith("."))
        if is_meant and path.is_dir():
            yield f"{path.name}/"
        elif is_meant and wanted.search(path.name):
            yield path.name


def _beginning(current: str, words: Sequence[Word]) -> list[Word]:
    """Those that go on from what is typed, whatever its capitals."""
    return [word for word in words if word.text.lower().startswith(current.lower())]
