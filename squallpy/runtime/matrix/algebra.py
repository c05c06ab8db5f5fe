"""Operations of matrix programs on arrays, in the numbers of a semiring: what steps are, and re-evaluation."""

from collections.abc import Callable, Container, Sequence
from functools import partial

import numpy as np

from squallpy.base.semirings import ARITHMETIC, BOOLEAN, COUNTING, MAX_PLUS, MIN_PLUS, Semiring
from squallpy.maintain.matrix.decompositions import Decomposition, FactorUpdate
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.entrywise_functions import TIMES, apply_entrywise
from squallpy.maintain.matrix.matrix_expressions import (
    SCALARS,
    Diagonal,
    Entrywise,
    Fill,
    Inverse,
    Iterate,
    Let,
    MainDiagonal,
    Matrix,
    Name,
    Product,
    RowDot,
    Scale,
    Stack,
    Sum,
    Transpose,
    children,
    shape,
)
from squallpy.runtime.kernels.matrix import boolean, integer_products, semirings, tropical
from squallpy.runtime.matrix.factors import change_of_factor, decompose
from squallpy.runtime.matrix.iterations import UndefinedError, has_converged, iterate_until
from squallpy.runtime.matrix.stored_views import Array

Read = Callable[[str], Array]  # a name → its values
_EXACT = 2.0**53  # integers up to it are floats
SINGULAR = 1e-14  # reciprocal of the condition number from which on a matrix counts as singular


class SingularError(UndefinedError):
    """A matrix that has no inverse."""

    reason = "a matrix was almost singular"


def evaluate(matrix: Matrix, read: Read, sizes: Sizes, ring: Semiring) -> Array:
    """Evaluate an expression whose names `read` gives; OverflowError where a count does not fit 64 bits."""
    match matrix:
        case Name(own):
            return read(own)
        case Let(name, value, body):
            found = evaluate(value, read, sizes, ring)
            return evaluate(body, lambda own: found if own == name.name else read(own), sizes, ring)
        case Iterate(_, start, name, body):
            first = evaluate(start, read, sizes, ring)

            def step(passing: Array) -> Array:
                return evaluate(body, lambda own: passing if own == name.name else read(own), sizes, ring)

            return iterate_until(matrix, first, step, partial(has_converged, ring=ring))
    return apply_operation(matrix, [evaluate(child, read, sizes, ring) for child in children(matrix)], sizes, ring)


def apply_operation(matrix: Matrix, operands: Sequence[Array], sizes: Sizes, ring: Semiring) -> Array:
    """Apply an operation to the values of its operands."""
    match matrix:
        case Transpose():
            return operands[0].T
        case Product():
            left, right = operands
            return product(left, right, ring)
        case Sum():
            return add_matrices(operands, ring)
        case Scale(by, _):
            times = by.at(sizes, ring)
            if ring is COUNTING:
                integer_products.check_added(None, operands[0], int(times))
            return ring.multiply(times, operands[0])  # type: ignore[no-any-return]
        case Stack():
            return np.hstack(operands)
        case Fill(rows, cols, value):
            return np.full((rows.at(sizes), cols.at(sizes)), value.at(sizes, ring), ring.dtype)
        case Diagonal(size, value):
            out = np.full((size.at(sizes), size.at(sizes)), ring.zero, ring.dtype)
            np.fill_diagonal(out, value.at(sizes, ring))
            return out
        case Inverse():
            return inverse(operands[0], matrix)
        case Decomposition():
            return decompose(operands[0], matrix)
        case FactorUpdate():
            old, u, v = operands
            return change_of_factor(old, u, v, matrix)
        case Entrywise(function, parts):
            waiting = iter(operands)
            values = [part.at(sizes, ring) if isinstance(part, SCALARS) else next(waiting) for part in parts]
            return apply_entrywise(function, values, ring)
        case RowDot():
            return dot_rows(operands[0], operands[1], ring)
        case MainDiagonal():
            return operands[0].diagonal()[:, None].copy()
    raise AssertionError(matrix)


def add_matrices(terms: Sequence[Array], ring: Semiring) -> Array:
    """Add matrices by ⊕."""
    found = terms[0]
    for more in terms[1:]:
        if ring is COUNTING:
            integer_products.check_added(found, more)
        found = ring.add(found, more)
    return found


def product(left: Array, right: Array, ring: Semiring) -> Array:
    """Multiply left ⊗ right, (n, l) and (l, m)."""
    if ring is ARITHMETIC:
        out: Array = _dot(left, right) if left.shape[0] == right.shape[1] == 1 else left @ right
        return out
    if ring is COUNTING:
        return _multiply_counts(left, right)
    if ring is BOOLEAN:
        packed = boolean.product(boolean.pack(np.ascontiguousarray(left)), boolean.pack(np.ascontiguousarray(right)))
        return boolean.unpack(packed, right.shape[1])
    if ring is MIN_PLUS or ring is MAX_PLUS:
        return tropical.product(np.ascontiguousarray(left), np.ascontiguousarray(right), ring is MAX_PLUS)
    return semirings.product(left, right, ring)


def dot_rows(left: Array, right: Array, ring: Semiring) -> Array:
    """Multiply matrices row by row, (n, m) and (n, m) to (n, 1)."""
    if ring is ARITHMETIC:
        out: Array = np.einsum("ij,ij->i", left, right)[:, None]
        return out
    terms = apply_entrywise(TIMES, [left, right], ring)
    if ring is COUNTING:
        integer_products.check(None, terms, np.ones((terms.shape[1], 1), np.int64), integer_products.largest(terms))
    total: Array = ring.add.reduce(terms, axis=1, keepdims=True, initial=ring.zero)
    return total


def _dot(row: Array, column: Array) -> Array:
    """Multiply a row by a column; beyond 10,000 entries BLAS would split them, and wait ms for its threads."""
    out: Array = np.einsum("ij,jk->ik", row, column)
    return out


def _multiply_counts(left: Array, right: Array) -> Array:
    """Multiply counts exactly, as floats where these are exact; OverflowError beyond 64 bits."""
    left_reals, right_reals = left.astype(float), right.astype(float)
    if float((np.abs(left_reals) @ np.abs(right_reals)).max(initial=0.0)) < _EXACT:
        counted: Array = (left_reals @ right_reals).astype(np.int64)
        return counted
    integer_products.check(None, left, right, integer_products.largest(left))
    out: Array = left @ right
    return out


def inverse(values: Array, matrix: Matrix) -> Array:
    """Invert a matrix; SingularError (SQ5011) where it is singular within the precision of 64-bit floats."""
    try:
        found = np.linalg.inv(values)
    except np.linalg.LinAlgError:
        found = np.full_like(values, np.nan)
    condition = norm(values) * norm(found) if values.size else 1.0
    if not condition < 1 / SINGULAR:
        raise SingularError("SQ5011", f"{matrix.of} is singular and has no inverse")  # type: ignore[union-attr]
    return found


def norm(values: Array) -> float:
    """Compute the 1-norm, the largest sum of a column's absolute values."""
    return float(np.abs(values).sum(axis=0).max(initial=0.0))


def select_changed_rows(u: Array, v: Array, ring: Semiring) -> tuple[Array, Array]:
    """Rewrite a change u·v with columns of a unit matrix for u, one for each row that changes."""
    rows = np.flatnonzero((u != ring.zero).any(axis=1))
    return unit_columns(len(u), rows, ring), product(u[rows], v, ring)


def pad(values: Array, shape: tuple[int, int], ring: Semiring) -> Array:
    """Append zeros to a matrix."""
    out = np.full(shape, ring.zero, ring.dtype)
    out[: values.shape[0], : values.shape[1]] = values
    return out


def unit_columns(extent: int, places: Array, ring: Semiring) -> Array:
    """Make columns (extent, k) of the unit matrix, that of each place."""
    out = np.full((extent, len(places)), ring.zero, ring.dtype)
    out[places, np.arange(len(places))] = ring.one
    return out


def depends_on(constant: Matrix, symbols: Container[str]) -> bool:
    """True if the shape of a constant depends on any of these symbols."""
    return any(symbol in symbols for size in shape(constant) for symbol, _ in size.symbols)


def factor_growth(constant: Matrix, before: Sizes, sizes: Sizes, ring: Semiring) -> tuple[Array, Array]:
    """Factor the change of a constant that grows, after zeros have been appended, into u·v."""
    old_rows, old_cols = constant.rows.at(before), constant.cols.at(before)
    rows, cols = constant.rows.at(sizes), constant.cols.at(sizes)
    if isinstance(constant, Diagonal):
        more = np.arange(old_rows, rows)
        return unit_columns(rows, more, ring), ring.multiply(
            constant.value.at(sizes, ring), unit_columns(rows, more, ring).T
        )
    assert isinstance(constant, Fill)
    u, v = np.full((rows, 2), ring.zero, ring.dtype), np.full((2, cols), ring.zero, ring.dtype)
    u[:old_rows, 0], u[old_rows:, 1] = ring.one, ring.one
    v[0, old_cols:], v[1] = constant.value.at(sizes, ring), constant.value.at(sizes, ring)
    return u, v
