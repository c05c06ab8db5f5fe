"""Iterative models: in how many and which steps an iteration is made (§3.2 and Table 1 of `linview`).

    iterate[16](T0)(t => A * t + B)

    linear         T ← A·T + B                                     16 times
    exponential    P₂ₛ = Pₛ·Pₛ, S₂ₛ = Pₛ·Sₛ + Sₛ up to s = 16       T = P₁₆·T0 + S₁₆·B
    skip-4         P₄, S₄ as above                                 T ← P₄·T + S₄·B, 4 times

A body is *affine* in what it iterates if it can be written M·t + C, or t·M + C, M and C without t. Each other one is
iterated as it is written, which is also one of the ways for those.
"""

from collections.abc import Callable, Iterator

from squallpy.base.records import dataclass
from squallpy.base.semirings import Semiring
from squallpy.maintain.matrix.matrix_expressions import (
    Diagonal,
    Iterate,
    Let,
    Matrix,
    Name,
    Product,
    Scale,
    Sum,
    add,
    bottom_up,
    product,
    shape,
    substitute,
)
from squallpy.maintain.matrix.meta_information import Facts
from squallpy.maintain.matrix.simplify import occurrences, simplify, unroll_iterate
from squallpy.maintain.matrix.symbolic_matrices import fresh_name

WRITTEN, LINEAR, EXPONENTIAL = "as written", "linear", "exponential"
MOST_UNROLLED = 256  # steps that are still written one by one where there is another way


@dataclass(frozen=True, slots=True)
class Affine:
    """A step as matrix · t + constant, or (`right`) t · matrix + constant."""

    matrix: Matrix
    constant: Matrix | None
    right: bool

    def of(self, value: Matrix, constant_first: bool = False) -> Matrix:
        """Write the step from a value."""
        moved = self.apply_to(self.matrix, value)
        if self.constant is None:
            return moved
        return add(self.constant, moved) if constant_first else add(moved, self.constant)

    def apply_to(self, matrix: Matrix, to: Matrix | None) -> Matrix:
        """Multiply matrix · to, in this order; None stands for a unit matrix."""
        if to is None:
            return matrix
        return product(to, matrix) if self.right else product(matrix, to)


def write_models(iteration: Iterate, facts: Facts, ring: Semiring) -> dict[str, Matrix]:
    """Write an iteration in each model, by its name in `explain` and `matrix.model`."""
    step = match_affine(iteration.body, iteration.name, facts, ring)
    unrolled = iteration.count <= MOST_UNROLLED
    ways: dict[str, Matrix] = {}
    if unrolled or step is None:
        ways[WRITTEN] = unroll_iterate(iteration, facts, ring) or iteration.start
    if step is None or iteration.count < 2:
        return ways
    if unrolled:
        ways[LINEAR] = _write_model(iteration, step, 1)
        if iteration.body in (step.of(iteration.name), step.of(iteration.name, constant_first=True)):
            del ways[WRITTEN]  # the same
    ways[EXPONENTIAL] = _write_model(iteration, step, None)
    skip = 2
    while skip < iteration.count:
        if iteration.count // skip <= MOST_UNROLLED:
            ways[f"skip-{skip}"] = _write_model(iteration, step, skip)
        skip *= 2
    return ways


def match_affine(body: Matrix, name: Name, facts: Facts, ring: Semiring) -> Affine | None:
    """Match a body as M·t + C, or t·M + C.

    t - X'·(X·t - Y)   →   (eye(n) - X'·X)·t + X'·Y
    """
    terms = list(expand_products(_inline(body)))
    if any(occurrences(term, name.name) > 1 for term in terms):
        return None
    reads = [term for term in terms if occurrences(term, name.name)]
    constant = [term for term in terms if not occurrences(term, name.name)]
    for right in (False, True):
        multiples = [_match_multiple(term, name, right) for term in reads]
        if reads and all(multiples):
            matrix = simplify(add(*(m for m in multiples if m)), facts, ring)
            return Affine(matrix, simplify(add(*constant), facts, ring) if constant else None, right)
    return None


def _inline(matrix: Matrix) -> Matrix:
    return _inline(substitute(matrix.body, matrix.name.name, matrix.value)) if isinstance(matrix, Let) else matrix


def expand_products(matrix: Matrix) -> Iterator[Matrix]:
    """Multiply out all products of an expression; returns the terms: A·(B + C) → A·B, A·C."""
    match matrix:
        case Sum(terms):
            for term in terms:
                yield from expand_products(term)
        case Scale(by, of):
            for term in expand_products(of):
                yield Scale(by, term)
        case Product((first, *others)):
            rest = product(*others)
            for left in expand_products(first):
                for right in expand_products(rest) if isinstance(rest, Product | Sum | Scale) else (rest,):
                    yield product(left, right)
        case _:
            yield matrix


def _match_multiple(term: Matrix, name: Name, right: bool) -> Matrix | None:
    """Match M of a term M·t, or t·M."""
    match term:
        case Name(own) if own == name.name:
            return Diagonal(name.cols if right else name.rows)
        case Scale(by, of):
            inner = _match_multiple(of, name, right)
            return inner and Scale(by, inner)
        case Product(factors):
            end, others = (factors[0], factors[1:]) if right else (factors[-1], factors[:-1])
            return product(*others) if end == name else None
    return None


def _write_model(iteration: Iterate, step: Affine, skip: int | None) -> Matrix:
    """Write an iteration with P and S up to `skip`, or as far as they go."""
    return _Writer(iteration, step).write_program(skip)


class _Writer:
    """Writes an iteration as lets of powers Pₛ = Mˢ, sums Sₛ = I + M + … + Mˢ⁻¹ times C, and values of t."""

    def __init__(self, iteration: Iterate, step: Affine) -> None:
        self._iteration, self._step = iteration, step
        self._lets: list[tuple[Name, Matrix]] = []
        self._taken: set[str] = set()
        self._powers: dict[int, Matrix] = {}
        self._sums: dict[int, Matrix] = {}

    def write_program(self, skip: int | None) -> Matrix:
        count, start = self._iteration.count, self._iteration.start
        value: Matrix | None = start
        if self._step.constant is None and start == self._step.matrix:
            count, value = count + 1, None  # a power of M, not a multiple of its first
        elif isinstance(start, Diagonal) and start == Diagonal(start.size):
            value = None
        leap = skip or 1 << (count.bit_length() - 1)
        while leap:
            times, count = divmod(count, leap)
            for at in range(times):
                value = self._leap(leap, value)
                if at + 1 < times or count:
                    value = self._let(self._iteration.name.name, value)
            leap //= 2
        assert value is not None
        for name, inner in reversed(self._lets):
            value = Let(name, inner, value)
        return value

    def _leap(self, leap: int, value: Matrix | None) -> Matrix:
        """Write `leap` steps at once: P·t + S·C."""
        moved = self._step.apply_to(self._power(leap), value)
        return moved if self._step.constant is None else add(moved, self._constant(leap))

    def _power(self, leap: int) -> Matrix:
        if leap not in self._powers:
            if leap == 1:
                self._powers[1] = self._name_value("P1", self._step.matrix)
            else:
                half = self._power(leap // 2)
                self._powers[leap] = self._let(f"P{leap}", product(half, half))
        return self._powers[leap]

    def _constant(self, leap: int) -> Matrix:
        """Write (I + M + … + M^(leap-1)) · C, by halves: S₂ₛ·C = Pₛ·(Sₛ·C) + Sₛ·C."""
        if leap not in self._sums:
            assert self._step.constant is not None
            if leap == 1:
                self._sums[1] = self._name_value("S1", self._step.constant)
            else:
                half = self._constant(leap // 2)
                doubled = add(self._step.apply_to(self._power(leap // 2), half), half)
                self._sums[leap] = self._let(f"S{leap}", doubled)
        return self._sums[leap]

    def _name_value(self, name: str, value: Matrix) -> Matrix:
        return value if isinstance(value, Name | Diagonal) else self._let(name, value)

    def _let(self, name: str, value: Matrix) -> Matrix:
        bound = Name(fresh_name(f"{self._iteration.name.name}_{name}", self._taken), *shape(value))
        self._lets.append((bound, value))
        return bound


def rewrite_iterations(matrix: Matrix, choose: Callable[[Iterate], Matrix | None]) -> Matrix:
    """Rewrite the iterations of an expression as chosen, inner ones first."""
    return bottom_up(matrix, lambda node: choose(node) if isinstance(node, Iterate) else None)
