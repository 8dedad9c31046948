"""Decoding of whole JSON texts, which the lexer leaves to a real parser."""

import json
import re

import msgspec

BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for text that is no JSON, or not of the type asked for."""

decode_top = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
decode_any = msgspec.json.Decoder().decode
check_json = msgspec.json.Decoder(float_hook=str).decode
"""For text that has to be JSON, whatever it holds: numbers that no double holds are legal."""


def members(text: bytes) -> int:
    """Members of an object that is known to be one, repeated keys among them."""
    pairs: list[object] = json.loads(text, object_pairs_hook=list, parse_int=str, parse_float=str)
    return len(pairs)


_EVENT_INSIDE = re.compile(rb'\{\s*"ph"\s*:\s*"\w"\s*,\s*"(?:cat|id|name|pid|ts)"\s*:')


def holds_event(text: bytes) -> bool:
    """Behind the first byte another event begins, as the profiler writes it.

    Arguments hold none, so it was swallowed when the text around it was damaged.
    """
    return _EVENT_INSIDE.search(text, 1) is not None
