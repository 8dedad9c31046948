"""`replay completion`: the TAB key in bash, zsh and fish."""

from importlib.resources import files
from typing import Annotated, Any

import typer

from ingest.errors import UsageError
from replay.cli import console

SHELLS = ("bash", "zsh", "fish")


def completion(
    ctx: typer.Context,
    shell: Annotated[
        list[str],
        typer.Argument(metavar="bash|zsh|fish", help="The shell.", show_default=False),
    ],
    words: Annotated[
        bool,
        typer.Option("--words", hidden=True, help="Print what the last of the words may become."),
    ] = False,
) -> None:
    """Print what a shell needs for the TAB key.

    It completes commands, options, GPUs, named queries and trace files.

    \b
    eval "$(replay completion bash)"        in ~/.bashrc
    eval "$(replay completion zsh)"         in ~/.zshrc
    replay completion fish | source         in ~/.config/fish/config.fish
    """
    if words:
        console.show(_words(ctx.find_root().command, shell))
        return
    if len(shell) != 1 or shell[0] not in SHELLS:
        raise UsageError(
            f"`{' '.join(shell)}` is no shell that is known", hint=f"one of {', '.join(SHELLS)}"
        )
    script = files("replay.cli").joinpath("completion", f"replay.{shell[0]}")
    console.show(script.read_text(encoding="utf-8"))


def _words(app: Any, typed: list[str]) -> str:  # noqa: ANN401  (typer's own type)
    """One candidate a line, its meaning after a tab."""
    from replay.cli.candidates import candidates

    return "".join(f"{word.text}\t{word.meaning}\n" for word in candidates(typed, app.commands))
