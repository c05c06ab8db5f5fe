"""Factorisation: a delta as a product U·V of few columns and few rows (§4.2 of `linview`, §5.3.5 of the thesis).

    δ1 := δG * x0 + G * δ0 + δG * δ0     with δG = u v, δ0 = u v      →      U1 := [u, G * u]
                                                                           V1 := [v * x0 + v * u * v; v]

The delta is a sum of chains. Each chain is cut in two, and chains that have a half in common are joined there: of the
ways to cut and join, the one is taken that needs the fewest operations, as the rank of U·V is what all that follows
pays for. A cut at an end leaves a dense delta with a unit matrix, the HYBRID strategy of `linview` §5.3.2: right where
a matrix has fewer columns than its delta would have ranks.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product as every

from squallpy.base.records import dataclass
from squallpy.maintain.matrix.dimensions import ONE, Scalar, Size, arithmetic
from squallpy.maintain.matrix.expression_cost import Guess, cheapest_order
from squallpy.maintain.matrix.matrix_expressions import (
    Diagonal,
    Fill,
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
    names,
    product,
    stack,
    stack_rows,
    transpose,
    zeros,
)
from squallpy.maintain.matrix.meta_information import Facts

MOST_PLANS = 2000  # looks at ways to cut and join one delta, until the best so far is taken


@dataclass(frozen=True, slots=True)
class Factors:
    """A delta as the sum of products of its blocks, a column of blocks and a row of blocks."""

    blocks: tuple[tuple[Matrix, Matrix], ...]

    @property
    def u(self) -> Matrix:
        return stack(*(u for u, _ in self.blocks))

    @property
    def v(self) -> Matrix:
        return stack_rows(*(v for _, v in self.blocks))

    @property
    def rank(self) -> Size:
        return self.u.cols


@dataclass(frozen=True, slots=True)
class Chain:
    """A multiple of a product of leaves."""

    factors: tuple[Matrix, ...]
    scale: Scalar | None = None

    def __str__(self) -> str:
        return str(scale_by(self.scale, product(*self.factors)))


def expand_chains(delta: Matrix, factors: Mapping[str, Factors]) -> list[Chain]:
    """Expand a delta to a sum of chains, its delta variables replaced by their factors."""
    match delta:
        case Name(name) if name in factors:
            return [Chain(pair) for pair in factors[name].blocks]
        case Sum(terms):
            return [chain for term in terms for chain in expand_chains(term, factors)]
        case Scale(by, of):
            return [Chain(chain.factors, multiply_optional(by, chain.scale)) for chain in expand_chains(of, factors)]
        case Transpose(of):
            return [Chain(tuple(map(transpose, reversed(c.factors))), c.scale) for c in expand_chains(of, factors)]
        case Stack(parts):
            return [chain for at in range(len(parts)) for chain in _pull_out_stack(parts, at, factors)]
        case Product(parts):
            operands = [expand_chains(part, factors) for part in parts]
            return [reduce(_join_halves, choice) for choice in every(*operands)]
        case RowDot(left, right):
            pairs = every(expand_chains(left, factors), expand_chains(right, factors))
            return [_dot_chains(*pair) for pair in pairs]
        case MainDiagonal(of):
            return [_diagonal_of_chain(chain) for chain in expand_chains(of, factors)]
    return [Chain((delta,))]


def multiply_optional(by: Scalar | None, other: Scalar | None) -> Scalar | None:
    """Multiply two optional numbers."""
    return other if by is None else by if other is None else arithmetic("*", by, other)


def _join_halves(left: Chain, right: Chain) -> Chain:
    return Chain((*left.factors, *right.factors), multiply_optional(left.scale, right.scale))


def _dot_chains(left: Chain, right: Chain) -> Chain:
    """Write dot products of rows of two chains between the narrow halves: (U·V) ∙ B → U ∙ (B·V')."""
    if len(left.factors) == 1:
        left, right = right, left
    first, *others = _drop_units(left.factors)
    moved = product(*right.factors, *(transpose(factor) for factor in reversed(others)))
    return Chain((RowDot(first, moved),), multiply_optional(left.scale, right.scale))


def _diagonal_of_chain(chain: Chain) -> Chain:
    """Write the diagonal of a chain as dot products: diag(U·V) → U ∙ V'."""
    first, *others = _drop_units(chain.factors)
    value = RowDot(first, transpose(product(*others))) if others else MainDiagonal(first)
    return Chain((value,), chain.scale)


def _drop_units(factors: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """Drop the unit matrices of a chain, of which a dense delta has one."""
    return tuple(f for f in factors if not isinstance(f, Diagonal) or f.value != ONE) or factors[:1]


def _pull_out_stack(parts: tuple[Matrix, ...], at: int, factors: Mapping[str, Factors]) -> Iterator[Chain]:
    """Pull a stack out of a factored delta: 0 ⇒ U·V ⇒ 0 → U · (0 ⇒ V ⇒ 0)."""
    if isinstance(parts[at], Fill):
        return
    for chain in expand_chains(parts[at], factors):
        *before, last = chain.factors
        wide: list[Matrix] = [zeros(last.rows, part.cols) for part in parts]
        wide[at] = last
        yield Chain((*before, stack(*wide)), chain.scale)


def choose_factors(delta: Matrix, factors: Mapping[str, Factors], blocks: Mapping[str, Factors]) -> dict[str, Factors]:
    """Choose the factors of each delta variable that is read, block by block or whole.

    Block by block where it has one in common with another, so that these can be joined; else whole, for a product of
    wide matrices is cheaper than products of narrow ones.
    """
    named = names(delta)
    read = [name for name in factors if name in named]
    halves = {name: {half for pair in blocks[name].blocks for half in pair} for name in read}
    return {
        name: blocks[name] if any(halves[name] & halves[other] for other in read if other != name) else factors[name]
        for name in read
    }


def factorise(sums: Sequence[Chain], dense: bool | None, guess: Guess, facts: Facts) -> Factors:
    """Find the cheapest U·V of a sum of chains.

    Args:
        dense: With a unit matrix on one side (True), or never so (False); None: if it is cheaper.
    """
    return _Joining(sums, dense, guess, facts).find_best()


Half = tuple[Matrix, ...]


@dataclass(frozen=True, slots=True)
class _Option:
    """A chain cut in two and joined to others at one half: shared · (… + other), or (… + other) · shared."""

    is_left: bool  # is what it shares on the left?
    shared: Half
    other: Half
    scale: Scalar | None
    price: float
    """The cost of the other half, and of adding it up."""
    base: float
    """The cost of having such a group: of the shared half, and of its part of the rank."""

    @property
    def group(self) -> tuple[bool, Half]:
        return self.is_left, self.shared


class _Joining:
    """Branch and bound over the ways to cut and join: chains one by one, the cheapest option first."""

    def __init__(self, sums: Sequence[Chain], dense: bool | None, guess: Guess, facts: Facts) -> None:
        self._guess, self._facts = guess, facts
        self._rows, self._cols = guess(sums[0].factors[0].rows), guess(sums[0].factors[-1].cols)
        self._prices: dict[Half, float] = {(): 0.0}
        inner = [self._inside(chain) for chain in sums]
        least = sum(min((guess(_width(cut)) for cut in cuts), default=self._cols) for cuts in inner)
        self._options = [
            [option for cut in self._list_cuts(chain, cuts, dense, least) for option in self._sides(cut, chain.scale)]
            for chain, cuts in zip(sums, inner, strict=True)
        ]
        self._numbers: dict[tuple[bool, Half], int] = {}
        self._shared = Counter(group for options in self._options for group in {option.group for option in options})
        self._choices = [self._number_options(options) for options in self._options]
        self._least_after = self._bound_costs()
        self._plans_left = MOST_PLANS
        self._least_cost = math.inf
        self._best_options: list[_Option] = []

    def find_best(self) -> Factors:
        self._search(0, 0.0, [], [0] * len(self._numbers))
        groups: dict[tuple[bool, Half], list[_Option]] = {}
        for option in self._best_options:
            groups.setdefault(option.group, []).append(option)
        return Factors(tuple(_build_halves(options) for options in groups.values()))

    def _number_options(self, options: Sequence[_Option]) -> list[tuple[float, float, int, int]]:
        """Number each option that may be best by price, base, place and group.

        The search compares numbers, not expressions. An option that no other chain can join is only a candidate if it
        costs least.
        """
        number = self._numbers.setdefault
        least = min(range(len(options)), key=lambda position: options[position].price + options[position].base)
        return [
            (o.price, o.base, position, number(o.group, len(self._numbers)))
            for position, o in enumerate(options)
            if position == least or self._shared[o.group] > 1
        ]

    def _bound_costs(self) -> list[float]:
        """Bound from below the cost of the chains from each one on, whatever groups there are."""
        floors = [0.0]
        for choices in reversed(self._choices):
            floors.append(floors[-1] + min(price for price, *_ in choices))
        return floors[::-1]

    def _search(self, at: int, price: float, taken: list[int], groups: list[int]) -> None:
        if price + self._least_after[at] >= self._least_cost or self._plans_left <= 0:
            return
        if at == len(self._choices):
            self._plans_left -= 1
            self._least_cost = price
            self._best_options = [options[position] for options, position in zip(self._options, taken, strict=True)]
            return
        priced = [(p if groups[group] else p + base, position, group) for p, base, position, group in self._choices[at]]
        for more, position, group in sorted(priced):
            self._plans_left -= 1
            groups[group] += 1
            self._search(at + 1, price + more, [*taken, position], groups)
            groups[group] -= 1

    def _inside(self, chain: Chain) -> list[tuple[Half, Half]]:
        return [(chain.factors[:at], chain.factors[at:]) for at in range(1, len(chain.factors))]

    def _list_cuts(
        self, chain: Chain, inside: list[tuple[Half, Half]], dense: bool | None, least: int
    ) -> list[tuple[Half, Half]]:
        """List the cuts to be weighed: at an end only if the rank may exceed that of the matrix there."""
        ends = [(chain.factors, ()), ((), chain.factors)]
        if dense:
            return ends
        if dense is False and inside:
            return inside
        return inside + [cut for cut in ends if self._guess(_width(cut)) <= least or not inside]

    def _sides(self, cut: tuple[Half, Half], by: Scalar | None) -> Iterator[_Option]:
        rank = self._guess(_width(cut))
        # NB: what is kept is updated by it, and what follows multiplies by it
        base = 2.0 * rank * (self._rows * self._cols + max(self._rows, self._cols) ** 2)
        for left in (True, False):
            shared, other = cut if left else cut[::-1]
            added = rank * (self._cols if left else self._rows)
            yield _Option(left, shared, other, by, self._price(other) + added, self._price(shared) + base)

    def _price(self, half: Half) -> float:
        if half not in self._prices:
            self._prices[half] = cheapest_order(half, self._guess, self._facts)[0]
        return self._prices[half]


def _width(cut: tuple[Half, Half]) -> Size:
    return cut[0][-1].cols if cut[0] else cut[1][0].rows


def _build_halves(options: Sequence[_Option]) -> tuple[Matrix, Matrix]:
    """Build U and V of a group."""
    first = options[0]
    width = _width((first.shared, first.other) if first.is_left else (first.other, first.shared))
    shared = _multiply_half(first.shared, width)
    others = add(*(scale_by(o.scale, _multiply_half(o.other, width)) for o in options))
    return (shared, others) if first.is_left else (others, shared)


def _multiply_half(half: Half, width: Size) -> Matrix:
    return product(*half) if half else Diagonal(width)


def scale_by(by: Scalar | None, matrix: Matrix) -> Matrix:
    return matrix if by is None else Scale(by, matrix)
