"""Views of matrix programs as they are stored: all in one piece, updated in place, read as a whole or by rows.

A view answers `pass_over(u, v, xs, ys)`: the products view · x of all `xs` and viewᵀ · y of all `ys`, with the view as
it was, which then becomes view + u·v. Factors are arrays (n, k) and (k, m), in the numbers of the semiring.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from squallpy.base.semirings import ARITHMETIC, BOOLEAN, COUNTING, MAX_PLUS, MIN_PLUS, Semiring, Value
from squallpy.runtime.kernels.matrix import boolean, dense, integer_products, semirings, symmetric, tropical
from squallpy.runtime.kernels.matrix.sweeps import columns_of, rows_of
from squallpy.runtime.matrix.packed_boolean import PackedMatrix

Array = npt.NDArray[Any]
_LOOK = 64  # rows by which most factors that pick nothing are told
Factor = Any  # an Array; of truth values it may be a PackedMatrix, too


class MatrixView(Protocol):
    """A stored matrix."""

    shape: tuple[int, int]

    @property
    def nbytes(self) -> int: ...

    def pass_over(
        self, u: Factor | None, v: Factor | None, xs: Sequence[Factor], ys: Sequence[Factor]
    ) -> tuple[list[Factor], list[Factor]]: ...

    def pruned(
        self, u: Factor, v: Factor, xs: Sequence[Factor] = (), ys: Sequence[Factor] = ()
    ) -> tuple[list[Factor], list[Factor], Factor, Factor]:
        """Pass over the view; return also the part of u and v that made a difference, where addition is idempotent."""
        ...

    def read(self, rows: "slice | Array", cols: "slice | Array") -> Array: ...

    def whole(self) -> Factor:
        """Return all values, in the form that triggers compute with."""
        ...

    def add_at(self, rows: Array, cols: Array, values: Array) -> None: ...


def store_view(values: Array, ring: Semiring, symmetrical: bool = False) -> MatrixView:
    """Store a copy of values as a view."""
    if ring is BOOLEAN:
        return BitView(boolean.pack(values.astype(bool, copy=False)), values.shape[1], symmetrical)
    room = rows_of(values.shape[0], values.shape[1], values.dtype)
    room[:] = values
    if ring is ARITHMETIC and symmetrical and len(values) > 1:
        return SymmetricView(room)
    return TropicalView(room, ring) if ring is MIN_PLUS or ring is MAX_PLUS else wrap_view(room, ring)


def wrap_view(values: Array, ring: Semiring) -> "ArrayView":
    """Wrap values, in C order and not Boolean, as a view without copying them."""
    if ring is MIN_PLUS or ring is MAX_PLUS:
        return ArrayView(values, partial(tropical.pass_over, greatest=ring is MAX_PLUS), ring)
    if ring is ARITHMETIC or ring is COUNTING:
        return ArrayView(values, dense.pass_over, ring)
    return ArrayView(values, partial(semirings.pass_over, ring=ring), ring)


Kernel = Callable[[Array, Array, Array, Array, Array], tuple[Array, Array]]


class ArrayView:
    """Stored as an array in C order; the kernel does what a pass is.

    Factors that pick rows or columns, as those of a change of some rows do, need no pass: what they read and add to is
    found by its place.
    """

    def __init__(self, values: Array, kernel: Kernel, ring: Semiring) -> None:
        self._values, self._kernel, self._ring = values, kernel, ring
        self.shape = (values.shape[0], values.shape[1])

    def assign(self, values: Array) -> None:
        """Overwrite with values of the same shape."""
        self.buffer()[:] = values

    def buffer(self) -> Array:
        """Return the memory, for values of the same shape to be written into all of it."""
        return self._values

    @property
    def nbytes(self) -> int:
        return self._values.nbytes  # NB: without what aligns its rows

    def pass_over(
        self, u: Array | None, v: Array | None, xs: Sequence[Array], ys: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        zero = self._ring.zero
        columns, rows = [find_picks(x, zero) for x in xs], [find_picks(y, zero) for y in ys]
        to_rows = find_picks(u, zero) if u is not None else None
        to_columns = find_picks(v.T, zero) if v is not None and to_rows is None else None
        straight: list[Array | None] = [c and self._scale(self._values[:, c.places], c.values) for c in columns]
        across: list[Array | None] = [r and self._scale(self._values[r.places].T, r.values) for r in rows]
        wide = [x for x, found in zip(xs, straight, strict=True) if found is None]
        tall = [y for y, found in zip(ys, across, strict=True) if found is None]
        if self._ring is COUNTING and u is not None and v is not None and (to_rows or to_columns):
            self._check(u, v, to_rows, to_columns)
        dense_change = u is not None and to_rows is None and to_columns is None
        if wide or tall or dense_change:
            left, right = _factors(u, v, self._values) if dense_change else _factors(None, None, self._values)
            x, y = _side_by_side(wide, self.shape[1], self._values), _side_by_side(tall, self.shape[0], self._values)
            mx, mty = self._kernel(self._values, left, right, x, y)
            _fill(straight, _split_columns(mx, wide))
            _fill(across, _split_columns(mty, tall))
        if to_rows and v is not None:
            for place, by, row in zip(to_rows.places, to_rows.values, v, strict=True):
                self._ring.add(self._values[place], self._multiply(row, by), out=self._values[place])
        if to_columns and u is not None:
            for place, by, column in zip(to_columns.places, to_columns.values, u.T, strict=True):
                self._ring.add(self._values[:, place], self._multiply(column, by), out=self._values[:, place])
        return straight, across  # type: ignore[return-value]

    def _check(self, u: Array, v: Array, rows: "UnitFactor | None", columns: "UnitFactor | None") -> None:
        """Raise OverflowError, before anything changes, where a change of some rows or columns exceeds 64 bits."""
        high = np.unique(rows.places) if rows else slice(None)
        wide = np.unique(columns.places) if columns else slice(None)
        before, left = self._values[high][:, wide], u[high]
        largest = integer_products.largest
        integer_products.check(before, left, v[:, wide], largest(left), largest(before))

    def _scale(self, values: Array, by: Array) -> Array:
        """Multiply columns, each by the entry that picks it."""
        if self._ring is COUNTING:
            integer_products.check(None, values, np.diag(by), integer_products.largest(values))
        return self._multiply(values, by)

    def pruned(
        self, u: Array, v: Array, xs: Sequence[Array] = (), ys: Sequence[Array] = ()
    ) -> tuple[list[Array], list[Array], Array, Array]:
        if self._ring is not MIN_PLUS and self._ring is not MAX_PLUS:
            return *self.pass_over(u, v, xs, ys), u, v
        x, y = _side_by_side(xs, self.shape[1], self._values), _side_by_side(ys, self.shape[0], self._values)
        mx, mty, left, right = tropical.pruned(self._values, u, v.T, x, y, self._ring is MAX_PLUS)
        return _split_columns(mx, xs), _split_columns(mty, ys), left, right.T

    def _multiply(self, values: Array, by: Array) -> Array:
        """Multiply values ⊗ by; nothing to do where all are ones."""
        if np.all(by == self._ring.one):
            return values
        out: Array = self._ring.multiply(values, by)
        return out

    def whole(self) -> Array:
        return self.read(slice(None), slice(None))

    def read(self, rows: slice | Array, cols: slice | Array) -> Array:
        return self._values[rows, cols] if isinstance(rows, slice) else self._values[rows][:, cols]

    def add_at(self, rows: Array, cols: Array, values: Array) -> None:
        if self._ring is COUNTING:
            integer_products.check_added(self._values[rows, cols], values)
        self._ring.add.at(self._values, (rows, cols), values)


def visit_view(
    view: MatrixView, u: Factor | None, v: Factor | None, xs: Sequence[Factor], ys: Sequence[Factor], prune: bool
) -> tuple[list[Factor], list[Factor], Factor, Factor]:
    """Pass over a view; return the products, and u and v, with `prune` only as much of them as made a difference."""
    return view.pruned(u, v, xs, ys) if prune else (*view.pass_over(u, v, xs, ys), u, v)


class UnitFactor(NamedTuple):
    """A factor with one entry in each column: where, and which."""

    places: Array
    values: Array


def find_picks(factor: Array, zero: Value) -> UnitFactor | None:
    """Return the places and entries of a factor that has one entry in each column, else None."""
    if not factor.size or factor.shape[0] < 2 or np.count_nonzero(factor[:_LOOK] != zero) > factor.shape[1]:
        return None
    places = (factor != zero).argmax(axis=0)
    values = factor[places, np.arange(factor.shape[1])]
    return UnitFactor(places, values) if np.count_nonzero(factor != zero) == np.count_nonzero(values != zero) else None


def _fill(found: list[Array | None], missing: list[Array]) -> None:
    """Put what is missing in its places."""
    waiting = iter(missing)
    found[:] = [next(waiting) if one is None else one for one in found]


class SymmetricView(ArrayView):
    """Numbers of which only the lower triangle is kept up to date, until all are read."""

    def __init__(self, values: Array) -> None:
        super().__init__(values, dense.pass_over, ARITHMETIC)
        self._complete = True

    def pass_over(
        self, u: Array | None, v: Array | None, xs: Sequence[Array], ys: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        both = [*xs, *ys]
        left, right = _factors(u, v, self._values)
        read = symmetric.pass_over(self._values, left, right, _side_by_side(both, self.shape[0], self._values))
        self._complete &= u is None
        parts = _split_columns(read, both)
        return parts[: len(xs)], parts[len(xs) :]

    def buffer(self) -> Array:
        self._complete = True
        return super().buffer()

    def read(self, rows: slice | Array, cols: slice | Array) -> Array:
        if not self._complete:
            symmetric.complete(self._values)
            self._complete = True
        return super().read(rows, cols)


class TropicalView(ArrayView):
    """Numbers that only get better: what is worse than all that a row has had is left out of an update, unseen."""

    def __init__(self, values: Array, ring: Semiring) -> None:
        super().__init__(values, partial(tropical.pass_over, greatest=ring is MAX_PLUS), ring)
        self._worst: Array | None = None

    def buffer(self) -> Array:
        self._worst = None
        return super().buffer()

    def pass_over(
        self, u: Array | None, v: Array | None, xs: Sequence[Array], ys: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        return super().pass_over(None if u is None or v is None else self._better(u, v), v, xs, ys)

    def pruned(
        self, u: Array, v: Array, xs: Sequence[Array] = (), ys: Sequence[Array] = ()
    ) -> tuple[list[Array], list[Array], Array, Array]:
        return super().pruned(self._better(u, v), v, xs, ys)

    def _better(self, u: Array, v: Array) -> Array:
        """Zero the rows of u where u·v can make no difference."""
        greatest = self._ring is MAX_PLUS
        if self._worst is None and self._values.size:
            self._worst = tropical.worst(self._values, greatest)
        if self._worst is None:
            return u
        reach = tropical.reach(u, v.T, greatest)
        better = reach > self._worst if greatest else reach < self._worst
        return np.where(better[:, None], u, self._ring.zero)


class BitView:
    """Truth values, 64 to a word; factors are packed, or become so."""

    def __init__(self, packed: boolean.Bits, columns: int, symmetrical: bool = False) -> None:
        self.shape = (len(packed), columns)
        self._bits, self._symmetrical = packed, symmetrical

    @property
    def stored(self) -> tuple[boolean.Bits, bool]:
        """Its rows, and whether they are known to be its columns, too."""
        return self._bits, self._symmetrical

    @property
    def nbytes(self) -> int:
        return self._bits.nbytes

    def pass_over(
        self, u: Factor | None, v: Factor | None, xs: Sequence[Factor], ys: Sequence[Factor]
    ) -> tuple[list[PackedMatrix], list[PackedMatrix]]:
        return self._pass(u, v, xs, ys)[:2]

    def _pass(
        self, u: Factor | None, v: Factor | None, xs: Sequence[Factor], ys: Sequence[Factor]
    ) -> tuple[list[PackedMatrix], list[PackedMatrix], boolean.Bits, boolean.Bits]:
        n, m = self.shape
        left = _concatenate_lines([], n) if u is None else PackedMatrix.of(u).columns
        right = _concatenate_lines([], m) if v is None else PackedMatrix.of(v).rows
        x, y = _concatenate_lines(xs, m), _concatenate_lines(ys, n)
        mx, mty, left, right = boolean.pruned(self._bits, left, right, x, y, symmetric=self._symmetrical)
        return _split_lines(mx, n, xs), _split_lines(mty, m, ys), left, right

    def pruned(
        self, u: Factor, v: Factor, xs: Sequence[Factor] = (), ys: Sequence[Factor] = ()
    ) -> tuple[list[PackedMatrix], list[PackedMatrix], PackedMatrix, PackedMatrix]:
        straight, across, left, right = self._pass(u, v, xs, ys)
        return straight, across, PackedMatrix(left, self.shape[0]), PackedMatrix(right, self.shape[1], True)

    def whole(self) -> PackedMatrix:
        return PackedMatrix(self._bits, self.shape[1], True)

    def read(self, rows: slice | Array, cols: slice | Array) -> Array:
        return boolean.unpack(np.ascontiguousarray(self._bits[rows]), self.shape[1])[:, cols]

    def add_at(self, rows: Array, cols: Array, values: Array) -> None:
        words = np.where(values, np.uint64(1) << (cols.astype(np.uint64) & np.uint64(63)), np.uint64(0))
        np.bitwise_or.at(self._bits, (rows, cols // 64), words)


def _side_by_side(parts: Sequence[Array], rows: int, like: Array) -> Array:
    """Copy all columns into one array, each contiguous."""
    if len(parts) == 1:
        return parts[0]
    out = columns_of(rows, sum(part.shape[1] for part in parts), like.dtype)
    at = 0
    for part in parts:
        out[:, at : at + part.shape[1]] = part
        at += part.shape[1]
    return out


def _factors(u: Array | None, v: Array | None, like: Array) -> tuple[Array, Array]:
    """Return U (n, k) and V (m, k), of no columns where nothing is added."""
    if u is None or v is None:
        return np.empty((like.shape[0], 0), like.dtype), np.empty((like.shape[1], 0), like.dtype)
    return u, v.T


def _split_columns(products: Array, parts: Sequence[Array]) -> list[Array]:
    if len(parts) == 1:
        return [products]
    ends = accumulate(part.shape[1] for part in parts)
    return [products[:, end - part.shape[1] : end] for part, end in zip(parts, ends, strict=True)]


def _concatenate_lines(parts: Sequence[Factor], cells: int) -> boolean.Bits:
    """Concatenate all packed columns."""
    if len(parts) == 1:
        return PackedMatrix.of(parts[0]).columns
    if not parts:
        return np.empty((0, boolean.words(cells)), np.uint64)
    return np.concatenate([PackedMatrix.of(part).columns for part in parts])


def _split_lines(lines: boolean.Bits, cells: int, parts: Sequence[Factor]) -> list[PackedMatrix]:
    """Split packed columns into those of each part."""
    if len(parts) < 2:
        return [PackedMatrix(lines, cells) for _ in parts]
    ends = accumulate(part.shape[1] for part in parts)
    return [PackedMatrix(lines[end - part.shape[1] : end], cells) for end, part in zip(ends, parts, strict=True)]
