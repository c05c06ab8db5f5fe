"""Probes of drift: how far rounding has taken views from their definitions, from update to update.

A view is compared with its definition on a random vector, which costs a product by a vector for each view that the
definition reads, and never a product of matrices:

    x1 := inv(x0), x0 := X' * X      p0 := x1 * r, p1 := X * p0, p2 := X' * p1      ‖p2 - r‖ / ‖r‖
"""

from collections.abc import Iterator

from squallpy.base.records import dataclass
from squallpy.maintain.matrix.anf import Builder
from squallpy.maintain.matrix.decompositions import Decomposition, MatrixFactor
from squallpy.maintain.matrix.dimensions import ONE, ONE_SIZE, Number, Size
from squallpy.maintain.matrix.expression_cost import Guess
from squallpy.maintain.matrix.materialise import IncrementalProgram
from squallpy.maintain.matrix.matrix_expressions import (
    Diagonal,
    Fill,
    Inverse,
    Matrix,
    Name,
    Product,
    Scale,
    Stack,
    Sum,
    Transpose,
    add,
    product,
    stack,
    stack_rows,
    transpose,
    zeros,
)
from squallpy.maintain.matrix.matrix_program import Statement
from squallpy.maintain.matrix.symbolic_matrices import fresh_name


@dataclass(frozen=True, slots=True)
class Look:
    """The difference of a view from its definition on a vector, beside the right value: ‖off‖ / ‖right‖."""

    view: Name
    off: Name
    right: Name


@dataclass(frozen=True, slots=True)
class Probe:
    """Random `vectors`, then steps, in ANF, that end in what is to be seen of views."""

    vectors: tuple[Name, ...]
    steps: tuple[Statement, ...]
    looks: tuple[Look, ...]


class _Unseen(Exception):
    """A definition that takes more than products by vectors."""


def write_probe(incremental: IncrementalProgram) -> Probe:
    """Write the probe of all kept views, except of those defined by inverses that are not kept."""
    writer = _Writer(incremental)
    for view in incremental.kept:
        if view.name not in incremental.anf.constants:
            writer.look(view)
    return Probe(tuple(writer.vectors), tuple(writer.builder.definitions), tuple(writer.looks))


class _Writer:
    def __init__(self, incremental: IncrementalProgram) -> None:
        self._made, self._taken = (
            incremental,
            {name.name for name in incremental.program.names()} | incremental.program.symbols(),
        )
        self._taken |= set(incremental.anf.constants)
        self._stored = {name.name for name in incremental.stored}
        self.builder = Builder(
            Guess({}), incremental.program.ring, dict(incremental.anf.facts), self._taken, prefix="p"
        )
        self._found: dict[tuple[Matrix, Matrix], Matrix] = {}  # what is read twice is written once: 2ˢ times in s steps
        self.vectors: list[Name] = []
        self.looks: list[Look] = []

    def look(self, view: Name) -> None:
        value = self._definition(view.name)
        try:
            if isinstance(value, Inverse):
                right: Matrix = self._vector(view.cols)
                found = self._times(value.of, self._leaf(product(view, right)))
            elif isinstance(value, Decomposition):
                found, right = self._square(value, view)
            else:
                parts = value.parts if isinstance(value, Stack) else (value,)
                pieces = [self._vector(part.cols) for part in parts]
                found = self._leaf(product(view, self._leaf(stack_rows(*pieces))))
                right = self._leaf(add(*(self._times(p, x) for p, x in zip(parts, pieces, strict=True))))
        except _Unseen:
            return
        off = add(found, Scale(Number(-1), right))
        self.looks.append(Look(view, self.name_of(off), self.name_of(right)))

    def _square(self, value: Decomposition, view: Name) -> tuple[Matrix, Matrix]:
        """Write what a triangular factor's square is on a random vector, beside what it should be."""
        if value.factor is MatrixFactor.Q:
            raise _Unseen  # it is decomposed again with each change
        x = self._vector(view.cols)
        if value.factor is MatrixFactor.CHOLESKY:
            return self._leaf(product(view, self._leaf(product(transpose(view), x)))), self._times(value.of, x)
        right = self._times(transpose(value.of), self._times(value.of, x))
        return self._leaf(product(transpose(view), self._leaf(product(view, x)))), right

    def _vector(self, size: Size) -> Name:
        self.vectors.append(Name(fresh_name("r", self._taken), size, ONE_SIZE))
        return self.vectors[-1]

    def _leaf(self, matrix: Matrix) -> Matrix:
        return self.builder.leaf(matrix)

    def name_of(self, matrix: Matrix) -> Name:
        leaf = self._leaf(matrix)
        if isinstance(leaf, Name):
            return leaf
        name = Name(fresh_name("p", self._taken), matrix.rows, matrix.cols)
        self.builder.definitions.append(Statement(name, leaf))
        return name

    def _times(self, matrix: Matrix, x: Matrix) -> Matrix:
        """Write matrix · x; returns a name or the like."""
        match matrix:
            case Name(name) | Transpose(Name(name)) if name not in self._stored:
                if (matrix, x) not in self._found:
                    inner = self._definition(name)
                    self._found[matrix, x] = self._times(
                        transpose(inner) if isinstance(matrix, Transpose) else inner, x
                    )
                return self._found[matrix, x]
            case Name() | Transpose(Name()):
                return self._leaf(product(matrix, x))
            case Product((left, right)):
                return self._times(left, self._times(right, x))
            case Sum(terms):
                return self._leaf(add(*(self._times(term, x) for term in terms)))
            case Scale(by, of):
                return self._leaf(Scale(by, self._times(of, x)))
            case Stack(parts):
                return self._leaf(
                    add(*(self._times(part, self._leaf(product(cut, x))) for part, cut in _split_stack(parts)))
                )
            case Transpose(Stack(parts)):
                return self._leaf(stack_rows(*(self._times(transpose(part), x) for part in parts)))
            case Diagonal(_, value):
                return self._leaf(Scale(value, x))
            case Fill(rows, cols, value):
                total = self._leaf(product(Fill(ONE_SIZE, cols, ONE), x))
                return self._leaf(product(Fill(rows, ONE_SIZE, value), total))
            case Transpose(of):
                return self._times(_transpose_operation(of), x)
        raise _Unseen

    def _definition(self, name: str) -> Matrix:
        if name in self._made.anf.constants:
            return self._made.anf.constants[name]
        return next(d.value for d in self._made.anf.definitions if d.name.name == name)


def _split_stack(parts: tuple[Matrix, ...]) -> Iterator[tuple[Matrix, Matrix]]:
    """Split stacked parts, each with the matrix of zeros and a diagonal of ones that cuts its share out of a vector."""
    for at, part in enumerate(parts):
        beside = (Diagonal(p.cols) if other == at else zeros(part.cols, p.cols) for other, p in enumerate(parts))
        yield part, stack(*beside)


def _transpose_operation(matrix: Matrix) -> Matrix:
    """Transpose an operation into one on transposes."""
    match matrix:
        case Product(factors):
            return product(*map(transpose, reversed(factors)))
        case Sum(terms):
            return add(*map(transpose, terms))
        case Scale(by, of):
            return Scale(by, transpose(of))
        case Diagonal():
            return matrix
        case Fill(rows, cols, value):
            return Fill(cols, rows, value)
    raise _Unseen
