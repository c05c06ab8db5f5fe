"""Matrix programs checked: evaluated as they are written, on plain arrays, and drawn at random."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from squallpy.base.semirings import ARITHMETIC, BOOLEAN, COUNTING, MAX_PLUS, MIN_PLUS, Semiring
from squallpy.maintain.matrix.decompositions import Decomposition, MatrixFactor
from squallpy.maintain.matrix.dimensions import ONE, Number, Size
from squallpy.maintain.matrix.entrywise_functions import TIMES
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
    add,
    product,
    shape,
    stack,
    stack_rows,
    transpose,
)
from squallpy.maintain.matrix.matrix_program import MatrixInput, MatrixProgram, Statement
from squallpy.maintain.matrix.symbolic_matrices import column_sums, row_sums

Array = npt.NDArray[Any]
Values = Mapping[str, Array]


def naive(program: MatrixProgram, inputs: Values, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Evaluate every statement, each operation by its definition."""
    values = dict(inputs)
    for statement in program.statements:
        values[statement.name.name] = _naive(statement.value, values, sizes, program.ring)
    return {name: values[name] for name in program.outputs}


def _naive(matrix: Matrix, values: Values, sizes: Mapping[str, int], ring: Semiring) -> Array:
    def of(inner: Matrix) -> Array:
        return _naive(inner, values, sizes, ring)

    match matrix:
        case Name(name):
            return values[name]
        case Product(factors):
            result = of(factors[0])
            for factor in factors[1:]:
                result = multiplied(result, of(factor), ring)
            return result
        case Sum(terms):
            result = of(terms[0])
            for term in terms[1:]:
                result = ring.add(result, of(term))
            return result
        case Scale(by, inner):
            scaled: Array = ring.multiply(by.at(sizes, ring), of(inner))
            return scaled
        case Transpose(inner):
            return of(inner).T
        case Inverse(inner):
            return np.linalg.inv(of(inner))
        case Decomposition(factor, inner):
            return _naive_factor(factor, of(inner))
        case Entrywise(function, parts):
            operands = [part.at(sizes, ring) if isinstance(part, SCALARS) else of(part) for part in parts]
            return entry_by_entry(function, operands, ring)
        case RowDot(left, right):
            return multiplied(entry_by_entry(TIMES, [of(left), of(right)], ring), _ones(of(left).shape[1], ring), ring)
        case MainDiagonal(inner):
            return np.diag(of(inner))[:, None]
        case Stack(parts):
            return np.concatenate([of(part) for part in parts], axis=1)
        case Fill(rows, cols, value):
            return np.full((rows.at(sizes), cols.at(sizes)), value.at(sizes, ring), ring.dtype)
        case Diagonal(size, value):
            n = size.at(sizes)
            out = np.full((n, n), ring.zero, ring.dtype)
            out[np.arange(n), np.arange(n)] = value.at(sizes, ring)
            return out
        case Let(name, value, body):
            return _naive(body, {**values, name.name: of(value)}, sizes, ring)
        case Iterate(count, start, name, body, until):
            result = of(start)
            for _ in range(count):
                before, result = result, _naive(body, {**values, name.name: result}, sizes, ring)
                if until is not None and (
                    np.all(before == result) or (ring.negates and np.abs(before - result).max(initial=0) <= until.value)
                ):
                    return result
            if until is not None:
                raise np.linalg.LinAlgError(f"{matrix} does not converge")
            return result
    raise AssertionError(matrix)


def _naive_factor(factor: MatrixFactor, values: Array) -> Array:
    if factor is MatrixFactor.CHOLESKY:
        if not np.allclose(values, values.T):
            raise np.linalg.LinAlgError("not symmetric")
        return np.linalg.cholesky(values)
    Q, R = np.linalg.qr(values)
    if len(R) < R.shape[1] or np.abs(np.diag(R)).min(initial=1) < 1e-12:
        raise np.linalg.LinAlgError("dependent columns")
    signs = np.sign(np.diag(R))
    return Q * signs if factor is MatrixFactor.Q else signs[:, None] * R


NUMPY: dict[str, Callable[..., Any]] = {
    ".*": lambda a, b: a * b, "./": lambda a, b: a / b, ".^": lambda a, b: a**b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "min": np.fmin, "max": np.fmax,
    "abs": abs, "sign": np.sign, "sqrt": lambda a: a**0.5, "exp": lambda a: math.e**a, "log": np.log,
}  # fmt: skip


def entry_by_entry(function: str, operands: list[Any], ring: Semiring) -> Array:
    """Apply a function by definition; a quotient by zero, and what else is no number, is zero."""
    if function == TIMES:
        return np.asarray(ring.multiply(*operands))
    with np.errstate(all="ignore"):
        found = np.asarray(NUMPY[function](*operands), ring.dtype)
    found[~np.isfinite(found)] = 0
    return found


def _ones(rows: int, ring: Semiring) -> Array:
    return np.full((rows, 1), ring.one, ring.dtype)


def multiplied(left: Array, right: Array, ring: Semiring) -> Array:
    """Multiply left ⊗ right by definition: ⊕ over l of left[i, l] ⊗ right[l, j]."""
    out = np.full((left.shape[0], right.shape[1]), ring.zero, ring.dtype)
    for at in range(left.shape[1]):
        a, b = left[:, at, None], right[None, at, :]
        with np.errstate(all="ignore"):
            term = ring.multiply(a, b)
        # NB: zero absorbs, also where ∞ + -∞ is no number
        out = ring.add(out, np.where((a == ring.zero) | (b == ring.zero), ring.zero, term))
    return out


SHAPES = ("n", "m")
RINGS = (ARITHMETIC, COUNTING, BOOLEAN, MIN_PLUS, MAX_PLUS)
INPUTS = tuple(
    MatrixInput(Name(name, Size.of(rows), Size.of(cols)))
    for name, rows, cols in (("A", "n", "n"), ("B", "n", "m"), ("C", "m", "n"))
)


@st.composite
def expressions(draw: Any, rows: str, cols: str, ring: Semiring, depth: int, scope: tuple[Name, ...]) -> Matrix:
    """Draw an expression of a shape over the names in scope; inverses only of invertible matrices."""
    want = (Size.of(rows), Size.of(cols))
    leaves: list[Matrix] = [name for name in scope if shape(name) == want]
    leaves += [transpose(name) for name in scope if shape(transpose(name)) == want]
    leaves += [Fill(*want, ONE)] + ([Diagonal(want[0])] if rows == cols else [])
    leaf: Matrix = draw(st.sampled_from(leaves))
    if depth == 0:
        return leaf

    def inner(r: str, c: str) -> Matrix:
        drawn: Matrix = draw(expressions(r, c, ring, depth - 1, scope))
        return drawn

    kinds = ["leaf", "product", "sum", "transpose", "let", "scale", "entries", "row sums", "column sums"]
    kinds += ["comparison"] if ring.negates else []
    kinds += ["diagonal"] if rows == cols else []
    kinds += ["iterate"] if rows == cols else []
    kinds += ["inverse"] if rows == cols and ring.divides else []
    match draw(st.sampled_from(kinds)):
        case "product":
            middle = draw(st.sampled_from(SHAPES))
            return product(inner(rows, middle), inner(middle, cols))
        case "sum":
            return add(inner(rows, cols), inner(rows, cols))
        case "transpose":
            return transpose(inner(cols, rows))
        case "scale":
            return Scale(Number(draw(st.sampled_from(_factors(ring)))), inner(rows, cols))
        case "entries":
            return Entrywise(TIMES, (inner(rows, cols), inner(rows, cols)))
        case "comparison":
            function = draw(st.sampled_from(["min", "max", "abs", "<", ">=", "=", "<>", "sign"]))
            # NB: where entries are rounded, a comparison of equal ones may say anything; those of inputs are exact
            exact = ring is ARITHMETIC and function not in ("min", "max", "abs")
            inputs = tuple(i.name for i in INPUTS)

            def operand() -> Matrix:
                drawn: Matrix = draw(expressions(rows, cols, ring, 0, inputs)) if exact else inner(rows, cols)
                return drawn

            if function in ("abs", "sign"):
                return Entrywise(function, (operand(),))
            return Entrywise(function, (operand(), operand() if draw(st.booleans()) else Number(0)))
        case "row sums":
            return product(row_sums(inner(rows, cols)), Fill(Size(1), want[1], ONE))
        case "column sums":
            return product(Fill(want[0], Size(1), ONE), column_sums(inner(rows, cols)))
        case "diagonal":
            return product(MainDiagonal(inner(rows, cols)), Fill(Size(1), want[1], ONE))
        case "let":
            value = inner(rows, cols)
            name = Name(f"l{draw(st.integers(0, 10**9))}", *want)
            return Let(name, value, draw(expressions(rows, cols, ring, depth - 1, (*scope, name))))
        case "iterate":
            name = Name(f"i{draw(st.integers(0, 10**9))}", *want)
            body = draw(expressions(rows, cols, ring, min(depth - 1, 1), (*scope, name)))
            return Iterate(draw(st.integers(0, 4)), inner(rows, cols), name, body)
        case "inverse":
            # NB: a matrix of small numbers plus a large diagonal is far from singular
            return Inverse(add(Scale(Number(0.02), inner(rows, cols)), Diagonal(want[0], Number(50.0))))
    return leaf


def _factors(ring: Semiring) -> list[Any]:
    return [-1.0, 0.5, 2.0] if ring is ARITHMETIC else [-1, 2] if ring is COUNTING else [ring.one, ring.zero]


@st.composite
def programs(draw: Any, ring: Semiring) -> MatrixProgram:
    """Draw a program of one or two statements over INPUTS, of which the second may read the first."""
    scope: tuple[Name, ...] = tuple(i.name for i in INPUTS)
    statements: list[Statement] = []
    for at in range(draw(st.integers(1, 2))):
        rows, cols = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(SHAPES))
        value = draw(expressions(rows, cols, ring, draw(st.integers(1, 3)), scope))
        if draw(st.booleans()) and len(statements) == 0:
            value = stack(value, value) if draw(st.booleans()) else stack_rows(value, value)
        name = Name(f"out{at}", *shape(value))
        statements.append(Statement(name, value))
        scope = (*scope, name)
    return MatrixProgram(INPUTS, tuple(statements), tuple(s.name.name for s in statements), ring)


def entries(random: np.random.Generator, rows: int, cols: int, ring: Semiring) -> Array:
    """Draw a matrix of a semiring: small numbers, many of them zero."""
    shape = (rows, cols)
    if ring is BOOLEAN:
        return random.random(shape) < 0.2
    if ring is COUNTING:
        return random.integers(-1, 2, shape)
    if ring is ARITHMETIC:
        return np.where(random.random(shape) < 0.4, 0.0, random.integers(-3, 4, shape) / 8)
    return np.where(random.random(shape) < 0.6, ring.zero, random.integers(0, 9, shape).astype(float))
