"""What-if options in the order in which they were typed, because they stack."""

import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand

KEY = "replay.typed"
WORDS = "replay.words"


class Typed(NamedTuple):
    """One occurrence of an option."""

    name: str
    """Parameter name: `network_scale` for `--network-scale`."""
    value: str


class StackedCommand(TyperCommand):
    """A command that also remembers the order of its options.

    Typer hands over each option by itself and so forgets that `--remove` stood before `--scale`.
    The parser knows, and it is the parser of the command itself: abbreviations, `--a=b` and `--`
    mean here what they mean there.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own type
        """Keep words and order in `ctx.meta`, then parse as usual."""
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[WORDS] = tuple(args)
        ctx.meta[KEY] = tuple(_in_order(values, [str(parameter.name) for parameter in order]))
        return super().parse_args(ctx, args)


def _in_order(values: dict[str, Any], names: list[str]) -> Iterator[Typed]:
    left = {name: iter(value) for name, value in values.items() if isinstance(value, list)}
    for name in names:
        value = next(left[name]) if name in left else values[name]
        yield Typed(name, str(value))


def typed(context: typer.Context) -> tuple[Typed, ...]:
    """The options of this call, in the order typed."""
    order: tuple[Typed, ...] = context.meta[KEY]
    return order


def command_line(context: typer.Context) -> str:
    """This call as it can be typed again."""
    words: tuple[str, ...] = context.meta[WORDS]
    return shlex.join(["replay", str(context.info_name), *words])
