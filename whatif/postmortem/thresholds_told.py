"""The rules of findings as data: what each looks for and from where on, read from the rules."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTold:
    """One threshold of a rule, or a rule without any."""

    rule: str
    """Its key."""
    about: str
    """What it looks for."""
    threshold: str = ""
    """Name of the constant; empty where the rule has none."""
    value: float | None = None
    reason: str = ""


def rules_told(rules: Sequence[Callable[..., Any]]) -> tuple[RuleTold, ...]:
    """Rules in their order, one entry for each number in capitals that has its reason below it.

    A rule named `rule` is known by its module, any other by its own name.
    """
    return tuple(told for rule in rules for told in _told(rule))


def _told(rule: Callable[..., Any]) -> Iterator[RuleTold]:
    module = sys.modules[rule.__module__]
    is_file = rule.__name__ == "rule"
    key = module.__name__.rpartition(".")[2] if is_file else rule.__name__
    about = _first_line(module.__doc__ if is_file else rule.__doc__)
    reasons = _reasons(module) if is_file else {}
    numbers = {name: value for name, value in _numbers(module).items() if name in reasons}
    if not numbers:
        yield RuleTold(rule=key, about=about)
    for name, value in numbers.items():
        yield RuleTold(rule=key, about=about, threshold=name, value=value, reason=reasons[name])


def _numbers(module: ModuleType) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in vars(module).items()
        if name.isupper()
        and not name.startswith("_")
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
    }


def _reasons(module: ModuleType) -> dict[str, str]:
    """The string under each assignment of the module, as one line."""
    try:
        body = ast.parse(inspect.getsource(module)).body
    except OSError:
        return {}
    found = {}
    for statement, below in pairwise(body):
        if (name := _assigned(statement)) and (text := _text(below)):
            found[name] = " ".join(text.split())
    return found


def _assigned(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    return ""


def _text(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        value = statement.value.value
        return value if isinstance(value, str) else ""
    return ""


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0]
