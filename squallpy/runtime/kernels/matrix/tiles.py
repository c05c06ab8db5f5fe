"""Register tiles: the innermost loops over a matrix M, as vector instructions, for any semiring that has them.

A tile is some rows by two vectors of columns of M, kept in registers while all is done that a pass has to do with it:
compilers do not find this by themselves. Two steps, for ROWS rows that lie `stride` apart:

    dots     out[r, p] ⊕= M[r, :] ⊗ X[:, p]                 rows of M against columns of X
    tile     W[:, q] ⊕= M[r, :] ⊗ Y[r, q], and then         rows of M into Mᵀ·Y
             M[r, :] ⊕= U[r, k] ⊗ V[:, k]                   what is added to them

X, Y, U, V, W and out lie column after column, so many cells `apart`. Addresses and distances are int64.
"""

from collections.abc import Callable
from functools import cached_property
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils as _untyped
from numba.extending import intrinsic

from squallpy.base.records import dataclass

cgutils: Any = _untyped
Value = Any  # of llvmlite, which publishes no types, as numba does not
_I8, _I32, _I64 = (ir.IntType(bits) for bits in (8, 32, 64))
_WIDE = bool(binding.get_host_cpu_features().get("avx512f"))
BYTES = 64 if _WIDE else 32  # of a vector
ROWS = 8 if _WIDE else 4  # of a tile, which so takes half of the registers
VECTORS = 2  # of columns


@dataclass(frozen=True)
class Semiring:
    """A semiring of numbers, as instructions on vectors of them."""

    unit: Any
    zero: float | int
    plus: Callable[[Any, Value, Value], Value]
    fused: Callable[[Any, Value, Value, Value], Value]  # c ⊕ a ⊗ b of (a, b, c)
    ufunc: np.ufunc  # ⊕
    idempotent: bool = False  # then most updates change little, and only what changes is written

    @cached_property
    def size(self) -> int:
        """Bytes of a cell."""
        return 4 if self.unit == ir.FloatType() else 8

    @cached_property
    def lanes(self) -> int:
        """Cells of a vector."""
        return BYTES // self.size

    @property
    def tiled(self) -> int:
        """Columns of a tile."""
        return VECTORS * self.lanes

    def vector(self, lanes: int) -> Any:
        return ir.VectorType(self.unit, lanes) if lanes > 1 else self.unit

    def zeros(self, lanes: int) -> Value:
        return ir.Constant(self.vector(lanes), [self.zero] * lanes if lanes > 1 else self.zero)

    def place(self, builder: Any, base: Value, cells: Value, lanes: int = 1) -> Value:
        """Point at the vector that starts so many cells behind base."""
        at = builder.add(base, builder.mul(cells, _I64(self.size)))
        return builder.inttoptr(at, self.vector(lanes).as_pointer())

    def load(self, builder: Any, base: Value, cells: Value, lanes: int = 1) -> Value:
        return builder.load(self.place(builder, base, cells, lanes), align=self.size)

    def store(self, builder: Any, value: Value, base: Value, cells: Value, lanes: int = 1) -> None:
        builder.store(value, self.place(builder, base, cells, lanes), align=self.size)


def steps(semiring: Semiring, rows: int) -> dict[str, Any]:
    """Make all operations on so many rows: on tiles, and on single columns at their end."""
    one = {f"DOTS_{columns}": dots(semiring, rows, columns, semiring.lanes) for columns in (1, 2)}
    one |= {f"AHEAD_{columns}": dots(semiring, rows, columns, semiring.lanes, ahead=True) for columns in (1, 2)}
    one |= {"TILE": tile(semiring, rows, VECTORS, semiring.lanes, ahead=True), "USED": used(semiring, rows)}
    return one | {"DOTS_END": dots(semiring, rows, 1, 1), "TILE_END": tile(semiring, rows, 1, 1)}


def dots(semiring: Semiring, rows: int, columns: int, lanes: int, ahead: bool = False) -> Any:
    """Make the operation (M, stride, X, X_apart, cells, out, out_apart), where cells is a multiple of lanes.

    ahead: fetch the next rows, too.
    """

    def emit(b: Any, M: Value, stride: Value, X: Value, X_apart: Value, cells: Value, out: Value, apart: Value) -> None:
        sums = [[cgutils.alloca_once(b, semiring.vector(lanes)) for _ in range(rows)] for _ in range(columns)]
        for one in (one for column in sums for one in column):
            b.store(semiring.zeros(lanes), one)
        with cgutils.for_range_slice(b, _I64(0), cells, _I64(lanes)) as (at, _):
            some = [semiring.load(b, X, b.add(b.mul(X_apart, _I64(p)), at), lanes) for p in range(columns)]
            for r in range(rows):
                line = semiring.load(b, M, b.add(b.mul(stride, _I64(r)), at), lanes)
                for p in range(columns):
                    b.store(semiring.fused(b, line, some[p], b.load(sums[p][r])), sums[p][r])
                if ahead:
                    _fetch(b, semiring.place(b, M, b.add(b.mul(stride, _I64(r + rows)), at)))
        for p in range(columns):
            start, lines = b.mul(apart, _I64(p)), [b.load(one) for one in sums[p]]
            totals, width = ([_sums(semiring, b, lines, lanes)], rows) if lanes > 1 else (lines, 1)
            for r, total in enumerate(totals):
                at = b.add(start, _I64(r))
                semiring.store(b, semiring.plus(b, semiring.load(b, out, at, width), total), out, at, width)

    return _operation(emit, 7)


def tile(semiring: Semiring, rows: int, vectors: int, lanes: int, ahead: bool = False) -> Any:
    """Make the operation (M, stride, U, U_apart, k, V, V_apart, Y, Y_apart, q, W, W_apart, row, column); k and q may be
    0.

    In an idempotent semiring the bytes at `row` and `column` become 1 if anything in the tile changes.
    """

    def emit(
        b: Any, M: Value, stride: Value, U: Value, U_apart: Value, k: Value, V: Value, V_apart: Value,
        Y: Value, Y_apart: Value, q: Value, W: Value, W_apart: Value, row: Value, column: Value,
    ) -> None:  # fmt: skip
        cells = [(b.add(b.mul(stride, _I64(r)), _I64(v * lanes)), r, v) for r in range(rows) for v in range(vectors)]
        held = [[cgutils.alloca_once(b, semiring.vector(lanes)) for _ in range(vectors)] for _ in range(rows)]
        for at, r, v in cells:
            b.store(semiring.load(b, M, at, lanes), held[r][v])
            if ahead:
                _fetch(b, semiring.place(b, M, b.add(at, b.mul(stride, _I64(rows)))))
        with cgutils.for_range(b, q) as loop:
            places = [b.add(b.mul(loop.index, W_apart), _I64(v * lanes)) for v in range(vectors)]
            sums = [semiring.load(b, W, at, lanes) for at in places]
            for r in range(rows):
                y = _splat(b, semiring.load(b, Y, b.add(b.mul(loop.index, Y_apart), _I64(r))), lanes)
                sums = [semiring.fused(b, b.load(held[r][v]), y, sums[v]) for v in range(vectors)]
            for at, total in zip(places, sums, strict=True):
                semiring.store(b, total, W, at, lanes)
        with b.if_then(b.icmp_signed(">", k, _I64(0))):
            with cgutils.for_range(b, k) as loop:
                start = b.mul(loop.index, V_apart)
                some = [semiring.load(b, V, b.add(start, _I64(v * lanes)), lanes) for v in range(vectors)]
                for r in range(rows):
                    u = _splat(b, semiring.load(b, U, b.add(b.mul(loop.index, U_apart), _I64(r))), lanes)
                    for v in range(vectors):
                        b.store(semiring.fused(b, some[v], u, b.load(held[r][v])), held[r][v])
            news = [(b.load(held[r][v]), at) for at, r, v in cells]
            if not semiring.idempotent:
                for new, at in news:
                    semiring.store(b, new, M, at, lanes)
                return
            with b.if_then(_different(b, [(new, semiring.load(b, M, at, lanes)) for new, at in news])):
                for new, at in news:
                    semiring.store(b, new, M, at, lanes)
                for mark in (row, column):
                    b.store(_I8(1), b.inttoptr(mark, _I8.as_pointer()))

    return _operation(emit, 14)


def used(semiring: Semiring, rows: int) -> Any:
    """Make the operation (U, U_apart, k) → 1 if any of these rows is not all zero, else 0."""

    def emit(b: Any, U: Value, U_apart: Value, k: Value) -> Value:
        found = cgutils.alloca_once_value(b, ir.Constant(ir.IntType(1), 0))
        b.store(ir.Constant(ir.IntType(1), 0), found)
        with cgutils.for_range(b, k) as loop:
            some = semiring.load(b, U, b.mul(loop.index, U_apart), rows)
            b.store(b.or_(b.load(found), _different(b, [(some, semiring.zeros(rows))])), found)
        return b.zext(b.load(found), _I64)

    return _operation(emit, 3, types.int64)


def _operation(emit: Callable[..., Any], arguments: int, result: Any = types.void) -> Any:
    """Make an operation on so many integers of the function that emits it."""
    signature = result(*[types.int64] * arguments)

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        value = emit(builder, *values)
        return context.get_dummy_value() if value is None else value

    def typed(_: Any, *given: Any) -> Any:
        return signature, generate

    names = ["context", *(f"a{n}" for n in range(arguments))]
    kinds = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    typed.__signature__ = Signature(kinds)  # type: ignore[attr-defined]  # NB: numba counts the parameters there
    return intrinsic(typed)


def _fetch(builder: Any, place: Value) -> None:
    """Ask for a cache line, into the second level; harmless wherever it is."""
    byte = _I8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
    builder.call(fetch, [builder.bitcast(place, byte), _I32(0), _I32(2), _I32(1)])


def _splat(builder: Any, value: Value, lanes: int) -> Value:
    """Make a vector of equal cells."""
    if lanes == 1:
        return value
    none = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    return _picked(builder, builder.insert_element(none, value, _I32(0)), none, [0] * lanes)


def _picked(builder: Any, a: Value, b: Value, places: list[int]) -> Value:
    """Select the cells at these places of a vector and of a second one, which follows it."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, len(places)), places))


def _sums(semiring: Semiring, builder: Any, lines: list[Value], lanes: int) -> Value:
    """Sum each of some vectors, into one vector of as many sums or one sum; both numbers are powers of two.

    Neighbours are added, of two vectors while there are two: [a b c d], [e f g h] → [a+b c+d e+f g+h] → …
    """
    rows = len(lines)
    while len(lines) > 1:
        pairs = zip(lines[::2], lines[1::2], strict=True)
        lines = [_neighbours(semiring, builder, one, other, 2 * lanes) for one, other in pairs]
    (sums,) = lines
    while lanes > rows:
        sums = _neighbours(semiring, builder, sums, sums, lanes)
        lanes //= 2
    return builder.extract_element(sums, _I32(0)) if rows == 1 else sums


def _neighbours(semiring: Semiring, builder: Any, one: Value, other: Value, cells: int) -> Value:
    even, odd = (_picked(builder, one, other, list(range(first, cells, 2))) for first in (0, 1))
    return semiring.plus(builder, even, odd)


def _different(builder: Any, pairs: list[tuple[Value, Value]]) -> Value:
    """Test if the two vectors of any pair differ."""
    found: Value = None
    for one, other in pairs:
        unit = getattr(one.type, "element", one.type)
        compare = builder.icmp_signed if isinstance(unit, ir.IntType) else builder.fcmp_unordered
        unequal = compare("!=", one, other)
        found = unequal if found is None else builder.or_(found, unequal)
    if not isinstance(found.type, ir.VectorType):
        return found
    mask = ir.IntType(found.type.count)
    return builder.icmp_unsigned("!=", builder.bitcast(found, mask), mask(0))


def _multiply_add(builder: Any, a: Value, b: Value, c: Value) -> Value:
    """Compute c + a·b, rounded once where the machine can."""
    kind = c.type
    unit, lanes = (kind.element, f"v{kind.count}") if isinstance(kind, ir.VectorType) else (kind, "")
    name = f"llvm.fmuladd.{lanes}{unit.intrinsic_name}"
    called = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    return builder.call(called, [a, b, c])


def _real(unit: Any) -> Semiring:
    """Make (+, ·) of floats."""
    return Semiring(unit, 0.0, lambda b, x, y: b.fadd(x, y), _multiply_add, np.add)


def _integer() -> Semiring:
    """Make (+, ·) of int64, modulo 2⁶⁴."""
    return Semiring(_I64, 0, lambda b, x, y: b.add(x, y), lambda b, x, y, z: b.add(z, b.mul(x, y)), np.add)


def _tropical(unit: Any, greatest: bool) -> Semiring:
    """Make (min, +) or (max, +) of floats. The zero absorbs: ∞ − ∞ is NaN, which is never better."""
    before = ">" if greatest else "<"

    def choose(b: Any, new: Value, old: Value) -> Value:
        return b.select(b.fcmp_ordered(before, new, old), new, old)

    def fused(b: Any, x: Value, y: Value, z: Value) -> Value:
        return choose(b, b.fadd(x, y), z)

    zero, ufunc = (float("-inf"), np.maximum) if greatest else (float("inf"), np.minimum)
    return Semiring(unit, zero, choose, fused, ufunc, True)


def _tropical_integer(greatest: bool) -> Semiring:
    """Make (min, +) or (max, +) of int64, with the last integer for ∞."""
    before, zero = (">", -(1 << 63)) if greatest else ("<", (1 << 63) - 1)

    def choose(b: Any, new: Value, old: Value) -> Value:
        return b.select(b.icmp_signed(before, new, old), new, old)

    def fused(b: Any, x: Value, y: Value, z: Value) -> Value:
        zeros = ir.Constant(x.type, [zero] * x.type.count if isinstance(x.type, ir.VectorType) else zero)
        none = b.or_(b.icmp_signed("==", x, zeros), b.icmp_signed("==", y, zeros))
        return choose(b, b.select(none, zeros, b.add(x, y)), z)

    return Semiring(_I64, zero, choose, fused, np.maximum if greatest else np.minimum, True)


_UNITS = {"float64": ir.DoubleType(), "float32": ir.FloatType()}
SEMIRINGS = {
    **{name: _real(unit) for name, unit in _UNITS.items()},
    "int64": _integer(),
    **{f"min_{name}": _tropical(unit, False) for name, unit in _UNITS.items()},
    "min_int64": _tropical_integer(False),
    **{f"max_{name}": _tropical(unit, True) for name, unit in _UNITS.items()},
    "max_int64": _tropical_integer(True),
}
