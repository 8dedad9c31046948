"""The only door to numba: the decorator under which plain loops over arrays become machine code.

Functions below it take arrays and plain numbers, use integers only, report by what they return,
and never raise, log or print. The compiled code is kept on disk beside the package (or in the
user's cache folder where that is read-only), so only the first run on a machine compiles.
"""

from collections.abc import Callable
from typing import Any

import numba

compiled: Callable[[Callable[..., Any]], Callable[..., Any]] = numba.njit(cache=True, nogil=True)
