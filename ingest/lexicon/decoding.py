"""Decoding of whole JSON texts, which the lexer leaves to a real parser."""

import msgspec

BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for text that is no JSON, or not of the type asked for."""

decode_top = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
decode_any = msgspec.json.Decoder().decode
