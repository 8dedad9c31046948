"""The only door to numba: compiled loops over arrays, and bytes by address where arrays are slow.

Functions under `compiled` take arrays and plain numbers, use integers only, report by what they
return, and never raise, log or print. The compiled code is kept on disk beside the package (or in
the user's cache folder where that is read-only), so only the first run on a machine compiles.

`byte_at`, `word_at` and their like read and write memory by address, for compiled code only. An
array that is handed from one compiled function to another has its references counted at every
call, which cost the reader of traces two thirds of its speed; an address has none. Whoever uses
them keeps the arrays alive and stays inside.
"""

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

compiled: Callable[[Callable[..., Any]], Callable[..., Any]] = numba.njit(cache=True, nogil=True)

_intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = intrinsic
_BYTE, _WORD = ir.IntType(8), ir.IntType(64)


def _byte_at(typing, address):  # noqa: ARG001  (the compiler's protocol)
    def build(context, builder, signature, args):  # noqa: ARG001
        pointer = builder.inttoptr(args[0], _BYTE.as_pointer())
        return builder.zext(builder.load(pointer), _WORD)

    return types.int64(types.int64), build


def _word_at(typing, address):  # noqa: ARG001
    def build(context, builder, signature, args):  # noqa: ARG001
        pointer = builder.inttoptr(args[0], _WORD.as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(types.int64), build


def _put_byte(typing, address, value):  # noqa: ARG001
    def build(context, builder, signature, args):  # noqa: ARG001
        pointer = builder.inttoptr(args[0], _BYTE.as_pointer())
        builder.store(builder.trunc(args[1], _BYTE), pointer)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), build


def _put_word(typing, address, value):  # noqa: ARG001
    def build(context, builder, signature, args):  # noqa: ARG001
        pointer = builder.inttoptr(args[0], _WORD.as_pointer())
        builder.store(args[1], pointer, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), build


def _low_zeros(typing, word):  # noqa: ARG001
    def build(context, builder, signature, args):  # noqa: ARG001
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), build


byte_at: Callable[[Any], Any] = _intrinsic(_byte_at)
"""The byte at an address, as a 64-bit number."""
word_at: Callable[[Any], Any] = _intrinsic(_word_at)
"""Eight bytes from an address on, little-endian; the address need not be aligned."""
put_byte: Callable[[Any, Any], None] = _intrinsic(_put_byte)
"""Write one byte: address, value."""
put_word: Callable[[Any, Any], None] = _intrinsic(_put_word)
"""Write eight bytes, little-endian: address (any), value."""
low_zeros: Callable[[Any], Any] = _intrinsic(_low_zeros)
"""How many bits at the low end of a word are zero; 64 for zero."""
