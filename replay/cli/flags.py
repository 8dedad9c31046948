"""What-ifs that come as words from elsewhere than a command line: read as that reads them."""

from collections.abc import Iterator, Sequence

from ingest.errors import UsageError, nearest
from replay.cli.asked import asked
from replay.cli.stack import Typed
from replay.cli.what_ifs import WHAT_IFS, scenario_of
from whatif.scenario import Scenario


def scenario_of_words(words: Sequence[str]) -> Scenario:
    """The scenario that options spell: `--nvlink`, `900GBps` or `--nvlink=900GBps`.

    Only what-ifs count: no option that reads or writes a file, none of the recorded machine.

    Raises:
        UsageError: no what-if, or its value is missing or malformed.
    """
    return scenario_of(list(_typed(words)))


def _typed(words: Sequence[str]) -> Iterator[Typed]:
    left = iter(words)
    for word in left:
        option, equals, value = word.partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--") or name not in WHAT_IFS:
            known = [f"--{name.replace('_', '-')}" for name in WHAT_IFS]
            raise UsageError(f"`{word}` is no what-if", hint=nearest(option, known))
        if _is_switch(name):
            if equals:
                raise UsageError(f"`{option}` takes no value", hint=f"write {option}")
            yield Typed(name, "True")
            continue
        if not equals:
            value = next(left, "")
        if not value or value.startswith("--"):
            raise UsageError(f"`{option}` has no value", hint=f"replay whatif --help has {option}")
        yield Typed(name, value)


def _is_switch(name: str) -> bool:
    option = asked().get(name)
    return option is not None and option.value is bool
