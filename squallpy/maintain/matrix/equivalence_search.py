"""Cheapest of equivalent ways to write a statement, by search with the rules of Fig. A.2 (§5.3.5).

    D := A * (u * v + B)      ⇄      D := A * u * v + A * B

What the rules make is kept in a queue, cheapest first, and never looked at twice: expressions are compared in a form
that knows no order of terms. ADD-COMM, ADD-ASSOC, MULT-ASSOC and transposition need no rules, for flat sums, flat
products and their cheapest order say the same. The search is confined to one statement, and ends after MOST_FORMS.
"""

import heapq
from collections.abc import Callable, Iterator
from itertools import count

from squallpy.base.records import dataclass
from squallpy.maintain.matrix.matrix_expressions import (
    Diagonal,
    Let,
    Matrix,
    Name,
    Product,
    Scale,
    Sum,
    add,
    children,
    product,
    substitute,
    with_children,
)

MOST_FORMS = 24


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best form of a statement, and what it took to find it (Table 5.2)."""

    best: Matrix
    cost: float
    first_cost: float
    """The cost of the statement as it was."""
    forms: int
    applications: int
    revisits: int


def search(first: Matrix, cost: Callable[[Matrix], float], most: int = MOST_FORMS) -> SearchResult:
    """Search for the cheapest form."""
    order, price = count(), cost(first)
    best, start, applications, revisits = first, price, 0, 0
    queue, seen = [(price, next(order), first)], {canonical(first)}
    least = price
    while queue and len(seen) < most:
        _, _, form = heapq.heappop(queue)
        for _, other in neighbours(form):
            applications += 1
            key = canonical(other)
            if key in seen:
                revisits += 1
                continue
            seen.add(key)
            price = cost(other)
            if price < least:
                best, least = other, price
            heapq.heappush(queue, (price, next(order), other))
            if len(seen) >= most:
                break
    return SearchResult(best, least, start, len(seen), applications, revisits)


def canonical(matrix: Matrix) -> str:
    """Print an expression so that all orders of terms give one text."""
    match matrix:
        case Sum(terms):
            return f"({' + '.join(sorted(map(canonical, terms)))})"
        case Product(factors):
            return f"({' * '.join(map(canonical, factors))})"
    inner = children(matrix)
    return f"{type(matrix).__name__}({', '.join(map(canonical, inner))})[{matrix}]" if inner else str(matrix)


def neighbours(matrix: Matrix) -> Iterator[tuple[str, Matrix]]:
    """Yield all results of one application of a rule, anywhere in an expression."""
    for rule in RULES:
        for other in rule(matrix):
            yield rule.__name__, other
    parts = children(matrix)
    for at, part in enumerate(parts):
        for name, other in neighbours(part):
            yield name, with_children(matrix, (*parts[:at], other, *parts[at + 1 :]))


def distribute(matrix: Matrix) -> Iterator[Matrix]:
    """Apply DISTRIB.

    A·(B + C) → A·B + A·C
    """
    if isinstance(matrix, Product):
        for at, factor in enumerate(matrix.factors):
            if isinstance(factor, Sum):
                before, after = matrix.factors[:at], matrix.factors[at + 1 :]
                yield add(*(_move_scalar_out(before, term, after) for term in factor.terms))


def _move_scalar_out(before: tuple[Matrix, ...], term: Matrix, after: tuple[Matrix, ...]) -> Matrix:
    if isinstance(term, Scale):
        return Scale(term.factor, product(*before, term.of, *after))
    return product(*before, term, *after)


def extract(matrix: Matrix) -> Iterator[Matrix]:
    """Apply DISTRIB the other way round.

    A·B + A·C → A·(B + C)     A·B + A → A·(B + eye)
    """
    if not isinstance(matrix, Sum):
        return
    for last in (False, True):
        groups: dict[Matrix, list[int]] = {}
        for at, term in enumerate(matrix.terms):
            groups.setdefault(_end(term, last), []).append(at)
        for shared, places in groups.items():
            if len(places) > 1 and any(isinstance(_strip_scalar(matrix.terms[at]), Product) for at in places):
                rest = add(*(_drop_factor(matrix.terms[at], last) for at in places))
                joined = product(rest, shared) if last else product(shared, rest)
                yield add(joined, *(t for at, t in enumerate(matrix.terms) if at not in places))


def _strip_scalar(term: Matrix) -> Matrix:
    return term.of if isinstance(term, Scale) else term


def _end(term: Matrix, last: bool) -> Matrix:
    bare = _strip_scalar(term)
    return bare.factors[-1 if last else 0] if isinstance(bare, Product) else bare


def _drop_factor(term: Matrix, last: bool) -> Matrix:
    """Drop the first or last factor of a term."""
    if isinstance(term, Scale):
        return Scale(term.factor, _drop_factor(term.of, last))
    if isinstance(term, Product):
        return product(*(term.factors[:-1] if last else term.factors[1:]))
    return Diagonal(term.cols if not last else term.rows)


def inline(matrix: Matrix) -> Iterator[Matrix]:
    """Apply LET-INLINE.

    let x = m in … x … x … → … m … m …
    """
    if isinstance(matrix, Let) and not isinstance(matrix.value, Name):
        yield substitute(matrix.body, matrix.name.name, matrix.value)


RULES: tuple[Callable[[Matrix], Iterator[Matrix]], ...] = (distribute, extract, inline)
