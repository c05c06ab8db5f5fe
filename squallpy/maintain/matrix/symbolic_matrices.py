"""Matrix programs in Python: a function is called once with symbolic matrices, and what it does to them is recorded.

    def ols(X, Y):
        return {"beta": inv(X.T @ X) @ (X.T @ Y)}

    trace(ols, [X(m, n), Y(m, 1)])   →   beta := inv(X' * X) * X' * Y

Loops of Python are unrolled; `iterate` stays an Iterate, so that its iterative model can be chosen.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.semirings import ARITHMETIC, Semiring
from squallpy.functions.graph_functions import MOST_STEPS
from squallpy.maintain.matrix.decompositions import Decomposition, MatrixFactor, check_decomposition
from squallpy.maintain.matrix.dimensions import ONE, ONE_SIZE, ZERO, Dimension, Number, Scalar, Size, arithmetic
from squallpy.maintain.matrix.entrywise_functions import TIMES, check_semiring
from squallpy.maintain.matrix.matrix_expressions import (
    SCALARS,
    Diagonal,
    Entrywise,
    Fill,
    Inverse,
    Iterate,
    MainDiagonal,
    Matrix,
    Name,
    RowDot,
    Scale,
    add,
    check_square,
    children,
    names,
    product,
    shape,
    stack,
    stack_rows,
    substitute,
    transpose,
    walk,
)
from squallpy.maintain.matrix.matrix_program import MatrixInput, MatrixProgram, Statement


def fresh_name(name: str, taken: set[str]) -> str:
    """Choose a name like the one wanted that is not taken, and add it to those taken."""
    chosen, number = name, 1
    while chosen in taken:
        chosen, number = f"{name}_{number}", number + 1
    taken.add(chosen)
    return chosen


def scale(by: Scalar, of: Matrix, ring: Semiring) -> Matrix:
    """Multiply a matrix by a number; SQ3002 if it is negative and the semiring cannot negate."""
    if isinstance(by, Number) and by.value == -1 and not ring.negates:
        raise SquallError(
            "SQ3002", f"the {ring} semiring has no subtraction", hint="there is no inverse of its addition"
        )
    return Scale(by, of)


def subtract(left: Matrix, right: Matrix, ring: Semiring) -> Matrix:
    return add(left, scale(Number(-1), right, ring))


def entrywise(function: str, operands: Sequence[Matrix | Scalar], ring: Semiring) -> Matrix:
    """Apply a function entry by entry; SQ3002 if the semiring does not have it."""
    check_semiring(function, ring)
    match function, operands:
        case ".*", (left, right) if isinstance(left, SCALARS):
            return scale(left, right, ring)  # type: ignore[arg-type]
        case (".*", (left, right)) if isinstance(right, SCALARS):
            return scale(right, left, ring)  # type: ignore[arg-type]
        case ("./", (left, right)) if isinstance(right, SCALARS):
            return scale(arithmetic("/", Number(1), right), left, ring)  # type: ignore[arg-type]
    return Entrywise(function, tuple(operands))


def decompose(factor: MatrixFactor, of: Matrix, ring: Semiring) -> Matrix:
    """Write a factor of a matrix; SQ2011, SQ3002 where it has none."""
    check_decomposition(factor, *shape(of), str(of), ring)
    return Decomposition(factor, of)


def row_sums(matrix: Matrix) -> Matrix:
    """Sum each row: a column."""
    match matrix:
        case Entrywise(function, (left, right)) if function == TIMES and len(children(matrix)) == 2:
            return RowDot(left, right)  # type: ignore[arg-type]
    return product(matrix, Fill(matrix.cols, ONE_SIZE, ONE))


def column_sums(matrix: Matrix) -> Matrix:
    """Sum each column: a row."""
    return product(Fill(ONE_SIZE, matrix.rows, ONE), matrix)


def power(base: Matrix, exponent: int, ring: Semiring, taken: set[str]) -> Matrix:
    """Write Aᵏ as an iteration, so that it can be multiplied in fewer steps; A⁻ᵏ is that of the inverse."""
    check_square(base, "powers")
    if exponent > MOST_STEPS:
        raise SquallError("SQ2012", f"the power {exponent} is more than {MOST_STEPS}")
    if exponent < 0:
        if not ring.divides:
            raise SquallError("SQ3002", f"the {ring} semiring has no inverse of a matrix")
        base, exponent = Inverse(base), -exponent
    if exponent == 0:
        return Diagonal(base.rows)
    if exponent == 1:
        return base
    name = Name(fresh_name("power", taken), *shape(base))
    return Iterate(exponent - 1, base, name, product(base, name))


@dataclass(frozen=True, slots=True, eq=False)
class Symbolic:
    """A matrix that is not there yet: `@`, `*`, `/`, `+`, `-`, `<`, `.T`, `**` of a matrix, `.sum(1)`, as in NumPy."""

    node: Matrix
    ring: Semiring = ARITHMETIC

    __array_ufunc__ = None  # NB: so that `ndarray @ symbolic` comes to __rmatmul__

    @property
    def shape(self) -> tuple[Size, Size]:
        return shape(self.node)

    @property
    def T(self) -> "Symbolic":
        return self.wrap(transpose(self.node))

    def __matmul__(self, other: "Symbolic") -> "Symbolic":
        return self.wrap(product(self.node, _node(other)))

    def __add__(self, other: "Symbolic") -> "Symbolic":
        return self.wrap(add(self.node, _node(other)))

    def __sub__(self, other: "Symbolic") -> "Symbolic":
        return self.wrap(subtract(self.node, _node(other), self.ring))

    def __neg__(self) -> "Symbolic":
        return self.wrap(scale(Number(-1), self.node, self.ring))

    def __mul__(self, by: object) -> "Symbolic":
        return self._entrywise(TIMES, self, by)

    def __rmul__(self, by: object) -> "Symbolic":
        return self._entrywise(TIMES, by, self)

    def __truediv__(self, by: object) -> "Symbolic":
        return self._entrywise("./", self, by)

    def __rtruediv__(self, by: object) -> "Symbolic":
        return self._entrywise("./", by, self)

    def __lt__(self, other: object) -> "Symbolic":
        return self._entrywise("<", self, other)

    def __le__(self, other: object) -> "Symbolic":
        return self._entrywise("<=", self, other)

    def __gt__(self, other: object) -> "Symbolic":
        return self._entrywise(">", self, other)

    def __ge__(self, other: object) -> "Symbolic":
        return self._entrywise(">=", self, other)

    def __abs__(self) -> "Symbolic":
        return self._entrywise("abs", self)

    def sum(self, axis: int | None = None) -> "Symbolic":
        """Sum all entries, or over the rows (axis 0) or columns (axis 1); always a matrix."""
        if axis not in (None, 0, 1):
            raise SquallError("SQ2012", f"sums over axis {axis}", hint="a matrix has the axes 0 and 1")
        node = self.node if axis == 0 else row_sums(self.node)
        return self.wrap(node if axis == 1 else column_sums(node))

    def diagonal(self) -> "Symbolic":
        """Return the diagonal as a column."""
        return self.wrap(MainDiagonal(self.node))

    def trace(self) -> "Symbolic":
        """Sum the diagonal."""
        return self.wrap(column_sums(MainDiagonal(self.node)))

    def _entrywise(self, function: str, *operands: object) -> "Symbolic":
        values = [operand.node if isinstance(operand, Symbolic) else scalar(operand) for operand in operands]
        return self.wrap(entrywise(function, values, self.ring))

    def __pow__(self, exponent: int) -> "Symbolic":
        return self.wrap(power(self.node, exponent, self.ring, names(self.node)))

    def __rmatmul__(self, other: object) -> "Symbolic":
        raise SquallError("SQ2012", f"{type(other).__name__} @ matrix", hint="make the array an input of the program")

    def __bool__(self) -> bool:
        raise SquallError("SQ2012", "a program cannot decide by what is in a matrix", hint="it is recorded, not run")

    def wrap(self, node: Matrix) -> "Symbolic":
        return Symbolic(node, self.ring)


def _node(value: object) -> Matrix:
    if isinstance(value, Symbolic):
        return value.node
    raise SquallError("SQ2012", f"{type(value).__name__} is not a matrix of the program", hint="make it an input")


def scalar(value: object) -> Scalar:
    """Convert a number, or a dimension, to a scalar of a program."""
    match value:
        case bool() | int() | float():
            return Number(value)
        case Size():
            return Dimension(value)
    raise SquallError("SQ2012", f"{value!r} is not a number")


def inv(matrix: Symbolic) -> Symbolic:
    if not matrix.ring.divides:
        raise SquallError("SQ3002", f"the {matrix.ring} semiring has no inverse of a matrix")
    return matrix.wrap(Inverse(matrix.node))


def cholesky(matrix: Symbolic) -> Symbolic:
    """Factor a symmetric, positive definite matrix A into L, lower triangular, with L @ L.T = A."""
    return matrix.wrap(decompose(MatrixFactor.CHOLESKY, matrix.node, matrix.ring))


def qr(matrix: Symbolic) -> tuple[Symbolic, Symbolic]:
    """Factor a matrix of independent columns into Q, orthonormal, and R, upper triangular, its diagonal positive."""
    q, r = (matrix.wrap(decompose(factor, matrix.node, matrix.ring)) for factor in (MatrixFactor.Q, MatrixFactor.R))
    return q, r


def equal(left: Symbolic, right: object) -> Symbolic:
    """Compare entries: 1 where they are equal."""
    return left._entrywise("=", left, right)


def maximum(left: Symbolic, right: object) -> Symbolic:
    """Take the larger of two entries."""
    return left._entrywise("max", left, right)


def minimum(left: Symbolic, right: object) -> Symbolic:
    """Take the smaller of two entries."""
    return left._entrywise("min", left, right)


def sqrt(matrix: Symbolic) -> Symbolic:
    """Take the root of each entry."""
    return matrix._entrywise("sqrt", matrix)


def exp(matrix: Symbolic) -> Symbolic:
    """Compute e to the power of each entry."""
    return matrix._entrywise("exp", matrix)


def log(matrix: Symbolic) -> Symbolic:
    """Take the natural logarithm of each entry."""
    return matrix._entrywise("log", matrix)


def hstack(*matrices: Symbolic) -> Symbolic:
    """Stack matrices side by side."""
    return matrices[0].wrap(stack(*(_node(m) for m in matrices)))


def vstack(*matrices: Symbolic) -> Symbolic:
    """Stack matrices one upon the other."""
    return matrices[0].wrap(stack_rows(*(_node(m) for m in matrices)))


def eye(size: Size | int | str) -> Symbolic:
    return Symbolic(Diagonal(Size.of(size)))


def diag(size: Size | int | str, value: object) -> Symbolic:
    return Symbolic(Diagonal(Size.of(size), scalar(value)))


def zeros(rows: Size | int | str, cols: Size | int | str) -> Symbolic:
    return Symbolic(Fill(Size.of(rows), Size.of(cols), ZERO))


def ones(rows: Size | int | str, cols: Size | int | str) -> Symbolic:
    return Symbolic(Fill(Size.of(rows), Size.of(cols), ONE))


def fill(rows: Size | int | str, cols: Size | int | str, value: object) -> Symbolic:
    return Symbolic(Fill(Size.of(rows), Size.of(cols), scalar(value)))


def iteration_bound(bound: object, ring: Semiring) -> Number:
    """Check the largest change of an entry at which an iteration may end; SQ2012, SQ3002."""
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not bound >= 0:
        raise SquallError("SQ2012", f"iterate until {bound}", hint="the bound is a number of 0 or more")
    if bound and not ring.negates:
        hint = "write until 0, for until nothing changes"
        raise SquallError("SQ3002", f"the {ring} semiring has no differences of entries", hint=hint)
    if not ring.negates and not ring.idempotent:
        raise SquallError("SQ3002", f"the {ring} semiring has no subtraction", hint="iterate a number of times")
    return Number(bound)


def iterate(count: int, start: Symbolic, step: Callable[[Symbolic], Symbolic], until: float | None = None) -> Symbolic:
    """Apply step(… step(start)), `count` times, or at most so often, until no entry changes by more than `until`."""
    if not isinstance(count, int) or not 0 <= count <= MOST_STEPS:
        raise SquallError("SQ2012", f"iterate {count} times", hint=f"the count is a number from 0 to {MOST_STEPS}")
    passing = Name(f"acc {id(step)}", *shape(start.node))  # NB: unlike those of iterations around this one
    body = _node(step(Symbolic(passing, start.ring)))
    taken = {m.name for m in (*walk(body), *walk(start.node)) if isinstance(m, Name)}
    name = Name(fresh_name("acc", taken), *shape(start.node))
    bound = None if until is None else iteration_bound(until, start.ring)
    return start.wrap(Iterate(count, start.node, name, substitute(body, passing.name, name), bound))


def trace(
    function: Callable[..., Any], inputs: Sequence[MatrixInput], ring: Semiring = ARITHMETIC, result: str = "result"
) -> MatrixProgram:
    """Trace a function of matrices to a program; outputs are the entries of the mapping returned, or `result`."""
    returned = function(*(Symbolic(i.name, ring) for i in inputs))
    outputs = returned if isinstance(returned, Mapping) else {result: returned}
    statements = tuple(Statement(Name(name, *shape(_node(m))), _node(m)) for name, m in outputs.items())
    return MatrixProgram(tuple(inputs), statements, tuple(outputs), ring)
