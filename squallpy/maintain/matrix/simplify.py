"""Simplification (Fig. A.1): rules that always make an expression smaller or flatter, applied until none does.

iterate[2](A)(x => x * x) + zeros(n, n)   →   let x0 := A * A in x0 * x0
"""

from collections.abc import Callable
from itertools import pairwise

from squallpy.base.semirings import Semiring
from squallpy.maintain.matrix.dimensions import ONE, ONE_SIZE, ZERO, Number, Scalar, arithmetic
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
    bottom_up,
    children,
    product,
    shape,
    substitute,
    transpose,
    walk,
    zeros,
)
from squallpy.maintain.matrix.meta_information import Facts, infer
from squallpy.maintain.matrix.symbolic_matrices import fresh_name

Rule = Callable[[Matrix, Facts, Semiring], Matrix | None]


def simplify(matrix: Matrix, facts: Facts, ring: Semiring) -> Matrix:
    """Apply all RULES to an expression."""

    def rule(node: Matrix) -> Matrix | None:
        if isinstance(node, Name):
            return None
        for rule in RULES:
            changed = rule(node, facts, ring)
            if changed is not None and changed != node:
                return changed
        return None

    return bottom_up(matrix, rule)


def name_units(node: Matrix, facts: Facts, ring: Semiring) -> Matrix | None:
    """Name constants by their values, in the numbers of the semiring.

    fill(n, m, 0.0) → zeros(n, m)     diag(n, 1) → eye(n)
    """
    match node:
        case Fill(rows, cols, Number() as value) if (unit := _unit(value, ring)) is not None:
            return Fill(rows, cols, unit)
        case Diagonal(size, Number() as value) if (unit := _unit(value, ring)) is not None:
            return zeros(size, size) if unit == ZERO else Diagonal(size, unit)
        case Diagonal(size, value) if value == ZERO:
            return zeros(size, size)
    return None


def _unit(number: Number, ring: Semiring) -> Scalar | None:
    return ZERO if number.value == ring.zero else ONE if number.value == ring.one else None


def transpose_of_symmetric(node: Matrix, facts: Facts, ring: Semiring) -> Matrix | None:
    """Drop the transpose of a symmetric matrix.

    m' → m
    """
    match node:
        case Transpose(of) if infer(of, facts).symmetric:
            return of
    return None


def push_transpose_down(node: Matrix, facts: Facts, ring: Semiring) -> Matrix | None:
    """Push a transpose to the operands.

    (A * B)' → B' * A'     (A + B)' → A' + B'     (A .* B)' → A' .* B'     inv(A)' → inv(A')     eye(n)' → eye(n)
    """
    match node:
        case Transpose(Product(factors)):
            return product(*(transpose(factor) for factor in reversed(factors)))
        case Transpose(Sum(terms)):
            return add(*(transpose(term) for term in terms))
        case Transpose(Scale(by, of)):
            return Scale(by, transpose(of))
        case Transpose(Inverse(of)):
            return Inverse(transpose(of))
        case Transpose(Entrywise(function, operands)):
            return Entrywise(function, tuple(o if isinstance(o, SCALARS) else transpose(o) for o in operands))
        case Transpose(Let(name, value, body)):
            return Let(name, value, transpose(body))
        case Transpose(Fill(rows, cols, value)):
            return Fill(cols, rows, value)
        case Transpose(Diagonal()):
            return node.of
    return None


def drop_zeros(node: Matrix, facts: Facts, ring: Semiring) -> Matrix | None:
    """Drop zeros.

    A + zeros → A     A * zeros → zeros     0 * A → zeros
    """
    match node:
        case Sum(terms) if any(map(_is_zero, terms)):
            kept = [term for term in terms if not _is_zero(term)]
            return add(*kept) if kept else terms[0]
        case Product(factors) if any(map(_is_zero, factors)):
            return zeros(node.rows, node.cols)
        case Scale(by, of) if _is_zero(of) or by == Number(ring.zero) or by == ZERO:
            return zeros(*shape(of))
        case Stack(parts) if all(map(_is_zero, parts)):
            return zeros(node.rows, node.cols)
        case Entrywise(function, operands) if function == TIMES and any(map(_is_zero, operands)):
            return zeros(*shape(node))
        case RowDot(left, right) if _is_zero(left) or _is_zero(right):
            return zeros(*shape(node))
        case MainDiagonal(of) if _is_zero(of):
            return zeros(*shape(node))
    return None


def _is_zero(matrix: Matrix | Scalar) -> bool:
    return isinstance(matrix, Fill) and matrix.value == ZERO


def sum_products_of_entries(node: Matrix, facts: Facts, ring: Semiring) -> Matrix | None:
    """Sum products of entries as dot products of rows, for which no matrix is made.

    (A .* B) * ones(n, 1) → rowSums(A .* B)     diag(A * B) → rowSums(A .* B')
    """
    match node:
        case Product(factors):
            for at, (left, right) in enumerate(pairwise(factors)):
                if _is_product_of_entries(left) and isinstance(right, Fill) and right.value == ONE:
                    found: Matrix = RowDot(*children(left))
                    beside: tuple[Matrix, ...] = (found, Fill(ONE_SIZE, right.cols, ONE))
                elif _is_product_of_entries(right) and isinstance(left, Fill) and left.value == ONE:
                    found = transpose(RowDot(*map(transpose, children(right))))
                    beside = (Fill(left.rows, ONE_SIZE, ONE), found)
                else:
                    continue
                unit = Fill(ONE_SIZE, ONE_SIZE, ONE)
                return product(*factors[:at], *(f for f in beside if f != unit), *factors[at + 2 :])
        case MainDiagonal(Product((first, *others))) if ring.commutes:
            return RowDot(first, transpose(product(*others)))
    return None


def _is_product_of_entries(matrix: Matrix) -> bool:
    return isinstance(matrix, Entrywise) and matrix.function == TIMES


def drop_identities(node: Matrix, facts: Facts, ring: Semiring) -> Matrix | None:
    """Drop unit matrices.

    A * eye(n) → A     diag(n, s) * A → s * A     inv(eye(n)) → eye(n)
    """
    match node:
        case Product(factors):
            for at, factor in enumerate(factors):
                if isinstance(factor, Diagonal):
                    rest = product(*factors[:at], *factors[at + 1 :])
                    return rest if factor.value == ONE else Scale(factor.value, rest)
        case Inverse(Diagonal(_, value)) if value == ONE:
            return node.of
    return None


def collect_scales(node: Matrix, facts: Facts, ring: Semiring) -> Matrix | None:
    """Collect scalar factors.

    1 * A → A     a * (b * A) → (a * b) * A     (a * A) * B → a * (A * B)
    """
    match node:
        case Scale(by, of) if by == ONE or by == Number(ring.one):
            return of
        case Scale(a, Scale(b, of)) if (both := _times(a, b, ring)) is not None:
            return Scale(both, of)
        case Product(factors) if ring.commutes:
            for at, factor in enumerate(factors):
                if isinstance(factor, Scale):
                    return Scale(factor.factor, product(*factors[:at], factor.of, *factors[at + 1 :]))
        case Inverse(Scale(by, of)) if ring.divides:
            return Scale(arithmetic("/", Number(1), by), Inverse(of))
    return None


def _times(a: Scalar, b: Scalar, ring: Semiring) -> Scalar | None:
    """Multiply scalars, a ⊗ b of the semiring, if that can be folded."""
    match a, b:
        case Number(x), Number(y):
            return Number(ring.multiply(x, y).item())
    return arithmetic("*", a, b) if ring.divides else None


def push_scale_into_sum(node: Matrix, facts: Facts, ring: Semiring) -> Matrix | None:
    """Push a scalar factor into a sum.

    s * (A + B) → s * A + s * B
    """
    match node:
        case Scale(by, Sum(terms)):
            return add(*(Scale(by, term) for term in terms))
    return None


def collect_terms(node: Matrix, facts: Facts, ring: Semiring) -> Matrix | None:
    """Collect equal terms, with a factor or, where addition is idempotent, as one.

    A + A → 2 * A     A - A → zeros     A + A → A
    """
    match node:
        case Sum(terms):
            bases = [term.of if isinstance(term, Scale) else term for term in terms]
            if len(set(bases)) == len(bases):
                return None
            if ring.idempotent:
                kept = tuple(dict.fromkeys(terms))
                return add(*kept) if len(kept) < len(terms) else None
            totals: dict[Matrix, Scalar] = {}
            for term, base in zip(terms, bases, strict=True):
                times = term.factor if isinstance(term, Scale) else Number(1)
                totals[base] = arithmetic("+", totals[base], times) if base in totals else times
            return add(*(Scale(times, base) for base, times in totals.items())) if ring.negates else None
    return None


def unroll_iterate(node: Matrix, facts: Facts, ring: Semiring) -> Matrix | None:
    """Unroll the first step of an iteration.

    iterate[n](m)(x => f(x)) → let x0 := f(m) in iterate[n - 1](x0)(x => f(x))
    """
    match node:
        case Iterate(0, start, _, _, None):
            return start
        case Iterate(count, start, name, body, None):
            taken = {m for step in (start, body) for m in all_names(step)} | {name.name}
            result, lets = start, list[tuple[Name, Matrix]]()
            for _ in range(count):
                step = Name(fresh_name(name.name, taken), *shape(body))
                lets.append((step, substitute(body, name.name, result)))
                result = step
            for step, value in reversed(lets):
                result = Let(step, value, result)
            return result
    return None


def occurrences(matrix: Matrix, name: str) -> int:
    """Count how often a name is free in an expression."""
    match matrix:
        case Name(own):
            return int(own == name)
        case Let(bound, value, _) | Iterate(_, value, bound, _) if bound.name == name:
            return occurrences(value, name)
    return sum(occurrences(child, name) for child in children(matrix))


def all_names(matrix: Matrix) -> set[str]:
    """Collect all names that occur, bound ones too."""
    bound = {m.name.name for m in walk(matrix) if isinstance(m, Let | Iterate)}
    return bound | {m.name for m in walk(matrix) if isinstance(m, Name)}


def inline_let(node: Matrix, facts: Facts, ring: Semiring) -> Matrix | None:
    """Inline a binding to a name, or one that is read at most once.

    let x := y in m → m with y for x
    """
    match node:
        case Let(name, Name() as value, body):
            return substitute(body, name.name, value)
        case Let(name, value, body) if (count := occurrences(body, name.name)) < 2:
            return substitute(body, name.name, value) if count else body
    return None


RULES: tuple[Rule, ...] = (
    name_units, transpose_of_symmetric, push_transpose_down, unroll_iterate, inline_let, drop_zeros, drop_identities,
    sum_products_of_entries,
    collect_scales, push_scale_into_sum, collect_terms,
)  # fmt: skip
