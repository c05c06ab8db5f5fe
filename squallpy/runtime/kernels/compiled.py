"""How kernels are compiled: entry points once, ahead of the first row; what they call is inlined into them.

NB: numba's cache notices a change of a kernel's own file, not of what it inlines from others: `make clean` after such.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])

VECTOR, MATRIX = "int64[::1]", "int64[:, ::1]"
GIVEN_VECTOR = "Array(int64, 1, 'C', readonly=True)"  # given: never written, hence perhaps read-only as Arrow memory is
GIVEN_MATRIX = "Array(int64, 2, 'C', readonly=True)"


def kernel(signature: str) -> Callable[[_Function], _Function]:
    """An entry point, compiled for this signature at import or taken from the disk cache; runs without the GIL."""
    return cast(Callable[[_Function], _Function], njit(signature, cache=True, nogil=True))


def inlined(function: _Function) -> _Function:
    """A part of kernels."""
    return cast(_Function, njit(function))
