"""Names -> classes of device tasks and kinds of runtime calls; the rules are data."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from ingest.vocab import KernelClass, RuntimeKind

KERNEL_RULES = Path(__file__).with_name("classify.yaml")
RUNTIME_RULES = Path(__file__).with_name("runtime_calls.yaml")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Both make the same of a text; the one in C takes a tenth of the time."""

_LONGEST = 8_192
"""Characters that rules see of a name: real ones have up to 5,160; time grows with the square."""

_SUFFIX = re.compile(r"(_v\d+|_ptsz|_ptds|_spt)+$")
_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|\s*\[clone [^\]]*\]")
_MANGLED = re.compile(r"_Z(?:TS)?N?K?(?=\d)")
_LENGTH = re.compile(r"\d+")
_BRACKET = re.compile(r"[<>()]")


@dataclass(frozen=True, slots=True)
class _KernelRule:
    kind: KernelClass
    pattern: re.Pattern[str]
    on_function: bool
    """Whether it looks at the kernel's own name only."""


def classify_kernels(names: Sequence[str]) -> NDArray[np.int8]:
    """Class of each kernel name; OTHER where no rule matches.

    Reductions of ATen carry `reduce` in their names and are compute: the rules for communication
    ask for a library or a known custom kernel, never for the word alone.
    """
    return np.array([_class_of(name) for name in names], np.int8)


def runtime_kinds(names: Sequence[str]) -> NDArray[np.int8]:
    """Kind of each runtime or driver call; OTHER where no rule matches."""
    return np.array([_kind_of(name) for name in names], np.int8)


@cache
def _kernel_rules() -> tuple[_KernelRule, ...]:
    rules = yaml.load(KERNEL_RULES.read_text(encoding="utf-8"), Loader=_LOADER)
    return tuple(
        _KernelRule(
            KernelClass[rule["class"].upper()],
            re.compile(rule.get("function") or rule["name"], re.IGNORECASE),
            "function" in rule,
        )
        for rule in rules
    )


@cache
def _runtime_rules() -> tuple[tuple[RuntimeKind, re.Pattern[str]], ...]:
    rules = yaml.load(RUNTIME_RULES.read_text(encoding="utf-8"), Loader=_LOADER)
    return tuple((RuntimeKind[rule["kind"].upper()], re.compile(rule["match"])) for rule in rules)


def _class_of(name: str) -> KernelClass:
    name = name[:_LONGEST]
    function = _function_of(name)
    return next(
        (
            rule.kind
            for rule in _kernel_rules()
            if rule.pattern.search(function if rule.on_function else name)
        ),
        KernelClass.OTHER,
    )


@cache
def _kind_of(name: str) -> RuntimeKind:
    call = _SUFFIX.sub("", name)
    return next(
        (kind for kind, pattern in _runtime_rules() if pattern.match(call)), RuntimeKind.OTHER
    )


def _function_of(name: str) -> str:
    """The kernel's own name: namespaces kept; return type, template and call arguments left out.

    Arguments name types of other libraries: `vllm::_typeConvert` is no convolution and
    `flashinfer::QuantizationSFLayout` no attention.
    """
    bare = _ANONYMOUS.sub("", name)
    if mangled := _MANGLED.match(bare):
        return _demangled(bare, mangled.end()) or bare
    outside = _outside_brackets(bare).strip()
    if not outside:
        return bare
    return outside if outside == bare else outside.split()[-1]


def _demangled(name: str, at: int) -> str:
    """Leading identifiers of an Itanium name (`2at6native3foo` -> `at::native::foo`)."""
    parts = []
    while length := _LENGTH.match(name, at):
        at = length.end() + int(length[0])
        parts.append(name[length.end() : at])
    return "::".join(parts)


def _outside_brackets(name: str) -> str:
    """What stands in no bracket; a `>` inside a parenthesis is an operator and closes nothing."""
    kept, opened, last = [], list[str](), 0
    for bracket in _BRACKET.finditer(name):
        if not opened:
            kept.append(name[last : bracket.start()])
        if bracket[0] in "<(":
            opened.append(bracket[0])
        elif bracket[0] == ">":
            if opened and opened[-1] == "<":
                opened.pop()
        else:
            while opened and opened.pop() != "(":
                pass
        last = bracket.end()
    return "".join(kept) + ("" if opened else name[last:])
