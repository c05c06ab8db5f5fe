"""Matrix expressions: the core language of Fig. 5.4, each with its shape; constructors refuse what does not fit.

    Product((Transpose(X), X))     Xᵀ·X, (n, n) for X (m, n)

Products, sums and stacks are flat: no parentheses, so that what differs only by MULT-ASSOC or ADD-ASSOC (Fig. A.2) is
one expression; in what order a chain is multiplied is chosen by cost (`order`). Sugar (Fig. 5.5) is made of these:
zeros, ones and fill are a Fill, eye(n) is a Diagonal of ones, m1 - m2 is m1 + (-1)·m2, vstack a transposed Stack.
"""

from collections.abc import Callable, Iterator
from functools import reduce

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.maintain.matrix.decompositions import Decomposition, FactorUpdate
from squallpy.maintain.matrix.dimensions import ONE, ONE_SIZE, ZERO, Arithmetic, Dimension, Number, Scalar, Size, Unit
from squallpy.maintain.matrix.entrywise_functions import FUNCTIONS, TIMES

Shape = tuple[Size, Size]


@dataclass(frozen=True, slots=True)
class Name:
    """A matrix by its name: an input, a view, a factor of a delta."""

    name: str
    rows: Size
    cols: Size

    def __hash__(self) -> int:
        return hash(self.name)  # NB: where names are alike, shapes seldom are not

    def __str__(self) -> str:
        return self.name


class _Shaped:
    """An operation whose result has the shape of one of its operands, `like`: that of operations that have one."""

    __slots__ = ()
    of: "Matrix"

    @property
    def like(self) -> "Matrix":
        return self.of

    @property
    def rows(self) -> Size:
        return self.like.rows

    @property
    def cols(self) -> Size:
        return self.like.cols


class _Column(_Shaped):
    """An operation whose result has an entry for each row of its operand."""

    __slots__ = ()

    @property
    def cols(self) -> Size:
        return ONE_SIZE


@dataclass(frozen=True, slots=True)
class Product:
    """factors[0] · factors[1] · …"""

    factors: "tuple[Matrix, ...]"

    def __post_init__(self) -> None:
        assert len(self.factors) > 1
        for left, right in zip(self.factors, self.factors[1:], strict=False):
            if left.cols != right.rows:
                raise misfit("multiply", left, right, "columns of the first must be rows of the second")

    @property
    def rows(self) -> Size:
        return self.factors[0].rows

    @property
    def cols(self) -> Size:
        return self.factors[-1].cols

    def __str__(self) -> str:
        return " * ".join(_show_factor(factor) for factor in self.factors)


@dataclass(frozen=True, slots=True)
class Sum(_Shaped):
    """terms[0] + terms[1] + …"""

    terms: "tuple[Matrix, ...]"

    def __post_init__(self) -> None:
        assert len(self.terms) > 1
        for term in self.terms[1:]:
            if shape(term) != shape(self.terms[0]):
                raise misfit("add", self.terms[0], term, "both must have the same shape")

    @property
    def like(self) -> "Matrix":
        return self.terms[0]

    def __str__(self) -> str:
        first, *others = self.terms
        return _show_term(first) + "".join(
            f" - {_show_factor(t)}" if (t := negated_operand(o)) else f" + {_show_term(o)}" for o in others
        )


@dataclass(frozen=True, slots=True)
class Scale(_Shaped):
    """Product by · of, each entry multiplied by a number."""

    factor: Scalar
    of: "Matrix"

    def __str__(self) -> str:
        if self.factor != Number(-1):
            return f"{self.factor} * {_show_factor(self.of)}"
        return f"-({self.of})" if isinstance(self.of, Scale) else f"-{_show_factor(self.of)}"  # NB: -- begins a comment


@dataclass(frozen=True, slots=True)
class Transpose:
    of: "Matrix"

    @property
    def rows(self) -> Size:
        return self.of.cols

    @property
    def cols(self) -> Size:
        return self.of.rows

    def __str__(self) -> str:
        if isinstance(self.of, Stack):
            return f"[{'; '.join(str(transpose(part)) for part in self.of.parts)}]"
        return f"{_atom(self.of)}'"


@dataclass(frozen=True, slots=True)
class Inverse(_Shaped):
    of: "Matrix"

    def __post_init__(self) -> None:
        check_square(self.of, "an inverse")

    def __str__(self) -> str:
        return f"inv({self.of})"


@dataclass(frozen=True, slots=True)
class Stack:
    """parts[0] ⇒ parts[1] ⇒ …, side by side."""

    parts: "tuple[Matrix, ...]"

    def __post_init__(self) -> None:
        assert len(self.parts) > 1
        for part in self.parts[1:]:
            if part.rows != self.parts[0].rows:
                raise misfit("put side by side", self.parts[0], part, "both must have as many rows")

    @property
    def rows(self) -> Size:
        return self.parts[0].rows

    @property
    def cols(self) -> Size:
        return reduce(Size.__add__, (part.cols for part in self.parts))

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.parts))}]"


@dataclass(frozen=True, slots=True)
class Fill:
    """Every entry the same: zeros, ones, fill."""

    rows: Size
    cols: Size
    value: Scalar

    def __str__(self) -> str:
        names = {ZERO: "zeros", ONE: "ones"}
        if self.value in names:
            return f"{names[self.value]}({self.rows}, {self.cols})"
        return f"fill({self.rows}, {self.cols}, {self.value})"


@dataclass(frozen=True, slots=True)
class Diagonal:
    """Square, the value on the diagonal."""

    size: Size
    value: Scalar = ONE

    @property
    def rows(self) -> Size:
        return self.size

    @property
    def cols(self) -> Size:
        return self.size

    def __str__(self) -> str:
        return f"eye({self.size})" if self.value == ONE else f"diag({self.size}, {self.value})"


@dataclass(frozen=True, slots=True)
class Entrywise(_Shaped):
    """A function of entries at the same place; numbers among the operands are the same for all places."""

    function: str
    operands: "tuple[Matrix | Scalar, ...]"

    def __post_init__(self) -> None:
        matrices = children(self)
        assert matrices
        for other in matrices[1:]:
            if shape(other) != shape(matrices[0]):
                verb = f"{FUNCTIONS[self.function].verb} entry by entry"
                raise misfit(verb, matrices[0], other, "both must have the same shape")

    @property
    def like(self) -> "Matrix":
        return children(self)[0]

    def __str__(self) -> str:
        if not FUNCTIONS[self.function].is_operator:
            return f"{self.function}({', '.join(map(str, self.operands))})"
        left, right = (
            f"({o})"
            if isinstance(o, Product | Arithmetic)
            else _show_factor(o)
            if not isinstance(o, SCALARS)
            else str(o)
            for o in self.operands
        )
        return f"{left} {self.function} {right}"


@dataclass(frozen=True, slots=True)
class RowDot(_Column):
    """Dot products of the rows of two matrices, a column: Σⱼ left[i, j] · right[i, j]."""

    left: "Matrix"
    right: "Matrix"

    def __post_init__(self) -> None:
        assert shape(self.left) == shape(self.right)

    @property
    def like(self) -> "Matrix":
        return self.left

    def __str__(self) -> str:
        return f"rowSums({Entrywise(TIMES, (self.left, self.right))})"


@dataclass(frozen=True, slots=True)
class MainDiagonal(_Column):
    """The diagonal of a square matrix, as a column."""

    of: "Matrix"

    def __post_init__(self) -> None:
        check_square(self.of, "a diagonal")

    def __str__(self) -> str:
        return f"diag({self.of})"


@dataclass(frozen=True, slots=True)
class Let(_Shaped):
    """let name = value in body"""

    name: Name
    value: "Matrix"
    body: "Matrix"

    def __post_init__(self) -> None:
        assert shape(self.name) == shape(self.value)

    @property
    def like(self) -> "Matrix":
        return self.body

    def __str__(self) -> str:
        return f"let {self.name} := {self.value} in {self.body}"


@dataclass(frozen=True, slots=True)
class Iterate(_Shaped):
    """body(… body(start)), `count` times; in `body` the value so far is `name`.

    With `until` it ends at the first step that changes no entry by more, and `count` is the most steps that there are.
    """

    count: int
    start: "Matrix"
    name: Name
    body: "Matrix"
    until: Number | None = None

    def __post_init__(self) -> None:
        if shape(self.body) != shape(self.start):
            raise misfit("iterate from", self.start, self.body, "each step must have the shape of the first")

    @property
    def like(self) -> "Matrix":
        return self.start

    def __str__(self) -> str:
        until = "" if self.until is None else f" until {self.until}"
        return f"iterate[{self.count}]({self.start})({self.name} => {self.body}){until}"


Operation = Product | Sum | Scale | Transpose | Inverse | Stack | Entrywise | RowDot | MainDiagonal
Matrix = Name | Operation | Decomposition | FactorUpdate | Fill | Diagonal | Let | Iterate
SCALARS = (Number, Dimension, Arithmetic, Unit)


def shape(matrix: Matrix) -> Shape:
    return matrix.rows, matrix.cols


def check_square(matrix: Matrix, what: str) -> None:
    """Check that a matrix may have what only square ones have; SQ2011."""
    if matrix.rows != matrix.cols:
        raise SquallError("SQ2011", f"only a square matrix has {what}, {describe(matrix)} is none")


def describe(matrix: Matrix) -> str:
    """Show an expression with its shape: `X * Y` (m × n)."""
    return f"{matrix} ({matrix.rows} × {matrix.cols})"


def misfit(verb: str, left: Matrix, right: Matrix, hint: str) -> SquallError:
    return SquallError("SQ2011", f"cannot {verb} {describe(left)} and {describe(right)}", hint=hint)


def product(*factors: Matrix) -> Matrix:
    """Multiply one factor or more, as a flat product."""
    flat = tuple(f for factor in factors for f in (factor.factors if isinstance(factor, Product) else (factor,)))
    return flat[0] if len(flat) == 1 else Product(flat)


def add(*terms: Matrix) -> Matrix:
    """Add one term or more, as a flat sum."""
    flat = tuple(t for term in terms for t in (term.terms if isinstance(term, Sum) else (term,)))
    return flat[0] if len(flat) == 1 else Sum(flat)


def stack(*parts: Matrix) -> Matrix:
    """Stack parts side by side."""
    flat = tuple(p for part in parts for p in (part.parts if isinstance(part, Stack) else (part,)))
    return flat[0] if len(flat) == 1 else Stack(flat)


def stack_rows(*parts: Matrix) -> Matrix:
    """Stack parts one upon the other: (pᵀ ⇒ qᵀ)ᵀ."""
    for part in parts[1:]:
        if part.cols != parts[0].cols:
            raise misfit("put one upon the other", parts[0], part, "both must have as many columns")
    return parts[0] if len(parts) == 1 else Transpose(stack(*(transpose(part) for part in parts)))


def transpose(matrix: Matrix) -> Matrix:
    return matrix.of if isinstance(matrix, Transpose) else Transpose(matrix)


def zeros(rows: Size, cols: Size) -> Fill:
    return Fill(rows, cols, ZERO)


def negated_operand(matrix: Matrix) -> Matrix | None:
    """Return the matrix of which this one is written as (-1) times; else None."""
    return matrix.of if isinstance(matrix, Scale) and matrix.factor == Number(-1) else None


def children(matrix: Matrix) -> tuple[Matrix, ...]:
    match matrix:
        case Product(parts) | Sum(parts) | Stack(parts):
            return parts
        case Scale(_, of) | Transpose(of) | Inverse(of) | MainDiagonal(of) | Decomposition(_, of):
            return (of,)
        case FactorUpdate(_, of, u, v):
            return of, u, v
        case RowDot(left, right):
            return left, right
        case Entrywise(_, operands):
            return tuple([operand for operand in operands if not isinstance(operand, SCALARS)])
        case Let(_, value, body) | Iterate(_, value, _, body):
            return value, body
    return ()


def with_children(matrix: Matrix, new: tuple[Matrix, ...]) -> Matrix:
    """Replace the operands of an operation; it is itself where they are the same."""
    if all(a is b for a, b in zip(children(matrix), new, strict=True)):
        return matrix
    match matrix:
        case Product():
            return product(*new)
        case Sum():
            return add(*new)
        case Stack():
            return stack(*new)
        case Scale(by, _):
            return Scale(by, new[0])
        case Transpose():
            return transpose(new[0])
        case Inverse():
            return Inverse(new[0])
        case RowDot():
            return RowDot(*new)
        case MainDiagonal():
            return MainDiagonal(new[0])
        case Decomposition(factor, _):
            return Decomposition(factor, new[0])
        case FactorUpdate():
            return FactorUpdate(matrix.upper, *new)
        case Entrywise(function, operands):
            waiting = iter(new)
            return Entrywise(function, tuple([o if isinstance(o, SCALARS) else next(waiting) for o in operands]))
        case Let(name, _, _):
            return Let(Name(name.name, new[0].rows, new[0].cols), *new)
        case Iterate(count, _, name, _, until):
            return Iterate(count, new[0], name, new[1], until)
    raise AssertionError(matrix)


def bottom_up(matrix: Matrix, rule: Callable[[Matrix], Matrix | None]) -> Matrix:
    """Apply a rule wherever it matches, from the leaves, until it matches no more."""
    parts = children(matrix)
    rebuilt = with_children(matrix, tuple([bottom_up(part, rule) for part in parts])) if parts else matrix
    changed = rule(rebuilt)
    return rebuilt if changed is None else bottom_up(changed, rule)


def walk(matrix: Matrix) -> Iterator[Matrix]:
    yield matrix
    for child in children(matrix):
        yield from walk(child)


def names(matrix: Matrix) -> set[str]:
    """Collect the free names in an expression."""
    match matrix:
        case Name(name):
            return {name}
        case Let(name, value, body):
            return names(value) | (names(body) - {name.name})
        case Iterate(_, start, name, body):
            return names(start) | (names(body) - {name.name})
    return set[str]().union(*map(names, children(matrix)))


def substitute(matrix: Matrix, name: str, value: Matrix) -> Matrix:
    """Replace a free name in an expression.

    NB: names that are bound inside must not be free in the value; `parser` and `symbolic_matrices` give each its own.
    """
    match matrix:
        case Name(own):
            return value if own == name else matrix
        case Let(bound, inner, body) if bound.name == name:
            return with_children(matrix, (substitute(inner, name, value), body))
        case Iterate(_, start, bound, body) if bound.name == name:
            return with_children(matrix, (substitute(start, name, value), body))
    return with_children(matrix, tuple(substitute(child, name, value) for child in children(matrix)))


def _show_term(matrix: Matrix) -> str:
    """Show an operand of a sum."""
    return f"({matrix})" if _is_operator(matrix) else str(matrix)


def _is_operator(matrix: Matrix) -> bool:
    return isinstance(matrix, Entrywise) and FUNCTIONS[matrix.function].is_operator


def _show_factor(matrix: Matrix) -> str:
    """Show an operand of a product."""
    loose = (
        _is_operator(matrix)
        or isinstance(matrix, Sum | Let)
        or (isinstance(matrix, Scale) and matrix.factor != Number(-1))
    )
    return f"({matrix})" if loose else str(matrix)


def _atom(matrix: Matrix) -> str:
    """Show an operand before a prime."""
    loose = isinstance(matrix, Product | Sum | Scale | Let | Iterate) or _is_operator(matrix)
    return f"({matrix})" if loose else str(matrix)
