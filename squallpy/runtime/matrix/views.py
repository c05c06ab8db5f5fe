"""Views of matrix programs as they are stored: all in one piece, updated in place, read as a whole or by rows.

A view answers `pass_over(u, v, xs, ys)`: the products view · x of all `xs` and viewᵀ · y of all `ys`, with the view as
it was, which then becomes view + u·v. Factors are arrays (n, k) and (k, m), in the numbers of the semiring.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from squallpy.base.semirings import ARITHMETIC, BOOLEAN, COUNTING, MAX_PLUS, MIN_PLUS, Semiring
from squallpy.runtime.kernels import bits, dense, semirings, symmetric, tropical

Array = npt.NDArray[Any]


class View(Protocol):
    """A stored matrix."""

    shape: tuple[int, int]

    @property
    def nbytes(self) -> int: ...

    def pass_over(
        self, u: Array | None, v: Array | None, xs: Sequence[Array], ys: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]: ...

    def read(self, rows: "slice | Array", cols: "slice | Array") -> Array: ...

    def add_at(self, rows: Array, cols: Array, values: Array) -> None: ...


def stored(values: Array, ring: Semiring, symmetrical: bool = False) -> View:
    """A view of these values; the array is the view's own from now on."""
    if ring is BOOLEAN:
        return BitView(values)
    if ring is MIN_PLUS or ring is MAX_PLUS:
        return ArrayView(values, partial(tropical.pass_over, greatest=ring is MAX_PLUS), ring.add)
    if ring is ARITHMETIC and symmetrical and len(values) > 1:
        return SymmetricView(values)
    if ring is ARITHMETIC or ring is COUNTING:
        return ArrayView(values, dense.pass_over, ring.add)
    return ArrayView(values, partial(semirings.pass_over, ring=ring), ring.add)


Kernel = Callable[[Array, Array, Array, Array, Array], tuple[Array, Array]]


class ArrayView:
    """Stored as an array in C order; the kernel does what a pass is, `add` is ⊕."""

    def __init__(self, values: Array, kernel: Kernel, add: np.ufunc) -> None:
        self._values = np.ascontiguousarray(values)
        self._kernel, self._add = kernel, add
        self.shape = (values.shape[0], values.shape[1])

    @property
    def nbytes(self) -> int:
        return self._values.nbytes

    def pass_over(
        self, u: Array | None, v: Array | None, xs: Sequence[Array], ys: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        x, y = _side_by_side(xs, self.shape[1], self._values), _side_by_side(ys, self.shape[0], self._values)
        left, right = _factors(u, v, self._values)
        mx, mty = self._kernel(self._values, left, right, x, y)
        return _apart(mx, xs), _apart(mty, ys)

    def read(self, rows: slice | Array, cols: slice | Array) -> Array:
        return self._values[rows, cols] if isinstance(rows, slice) else self._values[rows][:, cols]

    def add_at(self, rows: Array, cols: Array, values: Array) -> None:
        self._add.at(self._values, (rows, cols), values)


class SymmetricView(ArrayView):
    """Numbers of which only the lower triangle is kept up to date, until all are read."""

    def __init__(self, values: Array) -> None:
        super().__init__(values, dense.pass_over, np.add)
        self._complete = True

    def pass_over(
        self, u: Array | None, v: Array | None, xs: Sequence[Array], ys: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        both = [*xs, *ys]
        left, right = _factors(u, v, self._values)
        read = symmetric.pass_over(self._values, left, right, _side_by_side(both, self.shape[0], self._values))
        self._complete &= u is None
        parts = _apart(read, both)
        return parts[: len(xs)], parts[len(xs) :]

    def read(self, rows: slice | Array, cols: slice | Array) -> Array:
        if not self._complete:
            symmetric.complete(self._values)
            self._complete = True
        return super().read(rows, cols)


class BitView:
    """Truth values, 64 to a word."""

    def __init__(self, values: Array) -> None:
        self.shape = (values.shape[0], values.shape[1])
        self._bits = bits.pack(values.astype(bool, copy=False))

    @property
    def nbytes(self) -> int:
        return self._bits.nbytes

    def pass_over(
        self, u: Array | None, v: Array | None, xs: Sequence[Array], ys: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        n, m = self.shape
        left = _columns([u] if u is not None else [], n)
        right = _columns([v.T] if v is not None else [], m)
        mx, mty = bits.pass_over(self._bits, left, right, _columns(xs, m), _columns(ys, n))
        return _apart(bits.unpack(mx, n).T, xs), _apart(bits.unpack(mty, m).T, ys)

    def read(self, rows: slice | Array, cols: slice | Array) -> Array:
        return bits.unpack(np.ascontiguousarray(self._bits[rows]), self.shape[1])[:, cols]

    def add_at(self, rows: Array, cols: Array, values: Array) -> None:
        words = np.where(values, np.uint64(1) << (cols.astype(np.uint64) & np.uint64(63)), np.uint64(0))
        np.bitwise_or.at(self._bits, (rows, cols // 64), words)


def _side_by_side(parts: Sequence[Array], rows: int, like: Array) -> Array:
    """All columns in one array, each contiguous."""
    if len(parts) == 1:
        return parts[0]
    out = np.empty((rows, sum(part.shape[1] for part in parts)), like.dtype, order="F")
    at = 0
    for part in parts:
        out[:, at : at + part.shape[1]] = part
        at += part.shape[1]
    return out


def _factors(u: Array | None, v: Array | None, like: Array) -> tuple[Array, Array]:
    """U (n, k) and V (m, k), of no columns where nothing is added."""
    if u is None or v is None:
        return np.empty((like.shape[0], 0), like.dtype), np.empty((like.shape[1], 0), like.dtype)
    return u, v.T


def _apart(products: Array, parts: Sequence[Array]) -> list[Array]:
    ends = np.cumsum([part.shape[1] for part in parts], dtype=np.int64)
    return [products[:, end - part.shape[1] : end] for part, end in zip(parts, ends, strict=True)]


def _columns(parts: Sequence[Array], rows: int) -> Array:
    """All columns, packed."""
    if not parts:
        return np.zeros((0, bits.words(rows)), np.uint64)
    return bits.pack(np.ascontiguousarray(np.hstack(list(parts)).T))
