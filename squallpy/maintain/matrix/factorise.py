"""Factorisation: a delta as a product U·V of few columns and few rows (§4.2 of `linview`, §5.3.5 of the thesis).

    δ1 := δG * x0 + G * δ0 + δG * δ0     with δG = u v, δ0 = u v      →      U1 := [u, G * u]
                                                                           V1 := [v * x0 + v * u * v; v]

The delta is a sum of chains. Each chain is cut in two, and chains that have a half in common are joined there: of the
ways to cut and join, the one is taken that needs the fewest operations, as the rank of U·V is what all that follows
pays for. A cut at an end leaves a dense delta with a unit matrix, the HYBRID strategy of `linview` §5.3.2: right where
a matrix has fewer columns than its delta would have ranks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product as every

from squallpy.maintain.matrix.cost import Guess, chained
from squallpy.maintain.matrix.meta import Facts
from squallpy.maintain.matrix.nodes import (
    Diagonal,
    Fill,
    Matrix,
    Name,
    Product,
    Scale,
    Stack,
    Sum,
    Transpose,
    add,
    names,
    product,
    stack,
    transpose,
    upon,
    zeros,
)
from squallpy.maintain.matrix.sizes import Scalar, Size, arithmetic

MOST_PLANS = 4096  # ways to cut and join that are weighed for one delta


@dataclass(frozen=True, slots=True)
class Factors:
    """A delta as the sum of products of its blocks, a column of blocks and a row of blocks."""

    blocks: tuple[tuple[Matrix, Matrix], ...]

    @property
    def u(self) -> Matrix:
        return stack(*(u for u, _ in self.blocks))

    @property
    def v(self) -> Matrix:
        return upon(*(v for _, v in self.blocks))

    @property
    def rank(self) -> Size:
        return self.u.cols


@dataclass(frozen=True, slots=True)
class Chain:
    """A multiple of a product of leaves."""

    factors: tuple[Matrix, ...]
    by: Scalar | None = None

    def __str__(self) -> str:
        return str(_scaled(self.by, product(*self.factors)))


@dataclass(frozen=True, slots=True)
class Cut:
    """A chain as left · right; an empty half is a unit matrix."""

    left: tuple[Matrix, ...]
    right: tuple[Matrix, ...]
    by: Scalar | None


@dataclass(frozen=True, slots=True)
class Group:
    """Chains with one half in common: shared · (sum of others), or the other way round."""

    left: bool  # is what they share on the left?
    shared: tuple[Matrix, ...]
    others: tuple[tuple[Scalar | None, tuple[Matrix, ...]], ...]


def chains(delta: Matrix, factors: Mapping[str, Factors]) -> list[Chain]:
    """A delta as a sum of chains, its delta variables replaced by their factors."""
    match delta:
        case Name(name) if name in factors:
            return [Chain(pair) for pair in factors[name].blocks]
        case Sum(terms):
            return [chain for term in terms for chain in chains(term, factors)]
        case Scale(by, of):
            return [Chain(chain.factors, times(by, chain.by)) for chain in chains(of, factors)]
        case Transpose(of):
            return [Chain(tuple(map(transpose, reversed(c.factors))), c.by) for c in chains(of, factors)]
        case Stack(parts):
            return [chain for at in range(len(parts)) for chain in _placed(parts, at, factors)]
        case Product(parts):
            operands = [chains(part, factors) for part in parts]
            return [reduce(_joined, choice) for choice in every(*operands)]
    return [Chain((delta,))]


def times(by: Scalar | None, other: Scalar | None) -> Scalar | None:
    """The product of two numbers that need not be there."""
    return other if by is None else by if other is None else arithmetic("*", by, other)


def _joined(left: Chain, right: Chain) -> Chain:
    return Chain((*left.factors, *right.factors), times(left.by, right.by))


def _placed(parts: tuple[Matrix, ...], at: int, factors: Mapping[str, Factors]) -> Iterator[Chain]:
    """0 ⇒ U·V ⇒ 0   →   U · (0 ⇒ V ⇒ 0)"""
    if isinstance(parts[at], Fill):
        return
    for chain in chains(parts[at], factors):
        *before, last = chain.factors
        wide: list[Matrix] = [zeros(last.rows, part.cols) for part in parts]
        wide[at] = last
        yield Chain((*before, stack(*wide)), chain.by)


def related(delta: Matrix, factors: Mapping[str, Factors], blocks: Mapping[str, Factors]) -> dict[str, Factors]:
    """The factors of each delta variable that is read: block by block where it has one in common with another, so that
    these can be joined; else whole, for a product of wide matrices is cheaper than products of narrow ones."""
    read = [name for name in factors if name in names(delta)]
    halves = {name: {half for pair in blocks[name].blocks for half in pair} for name in read}
    return {
        name: blocks[name] if any(halves[name] & halves[other] for other in read if other != name) else factors[name]
        for name in read
    }


def factorise(sums: Sequence[Chain], dense: bool | None, guess: Guess, facts: Facts) -> Factors:
    """The cheapest U·V of a sum of chains; `dense`: with a unit matrix on one side, or (False) never."""
    cuts = [tuple(_cuts(chain, dense)) for chain in sums]
    plans = reduce(lambda a, b: a * b, (len(c) for c in cuts), 1) * 2 ** len(cuts)
    if plans > MOST_PLANS:
        cuts = [(min(options, key=lambda cut: guess(_width(cut))),) for options in cuts]
    weighed = _Weighed(guess, facts)
    best: tuple[tuple[float, int, int], list[Group]] | None = None
    for choice in every(*cuts):
        for groups in _groupings(choice):
            price = (weighed(groups), sum(guess(_rank(g)) for g in groups), len(groups))
            if best is None or price < best[0]:
                best = price, groups
    assert best
    return Factors(tuple((_left(group), _right(group)) for group in best[1]))


def _cuts(chain: Chain, dense: bool | None) -> Iterator[Cut]:
    inside = range(1, len(chain.factors)) if not dense else ()
    ends = (0, len(chain.factors)) if dense is not False else ()
    for at in (*inside, *ends):
        yield Cut(chain.factors[:at], chain.factors[at:], chain.by)


def _width(cut: Cut) -> Size:
    return cut.left[-1].cols if cut.left else cut.right[0].rows


def _groupings(cuts: Sequence[Cut]) -> Iterator[list[Group]]:
    """Every way to join cuts at one of their halves; if those are too many, at the half that more have."""
    if 2 ** len(cuts) > MOST_PLANS:
        yield _grouped(cuts, [sum(c.left == cut.left for c in cuts) > sum(c.right == cut.right for c in cuts)
                              for cut in cuts])  # fmt: skip
        return
    seen = set()
    for sides in every((False, True), repeat=len(cuts)):
        groups = _grouped(cuts, sides)
        key = tuple(groups)
        if key not in seen:
            seen.add(key)
            yield groups


def _grouped(cuts: Sequence[Cut], sides: Sequence[bool]) -> list[Group]:
    found: dict[tuple[bool, tuple[Matrix, ...]], list[tuple[Scalar | None, tuple[Matrix, ...]]]] = {}
    for cut, left in zip(cuts, sides, strict=True):
        shared, other = (cut.left, cut.right) if left else (cut.right, cut.left)
        found.setdefault((left, shared), []).append((cut.by, other))
    return [Group(left, shared, tuple(others)) for (left, shared), others in found.items()]


@dataclass(frozen=True)
class _Weighed:
    """The operations that groups need: to compute their halves, and to add U·V to the view."""

    guess: Guess
    facts: Facts

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", {})

    def __call__(self, groups: Sequence[Group]) -> float:
        chains = {shared for g in groups for shared in (g.shared,)} | {o for g in groups for _, o in g.others}
        computed = sum(self._chain(chain) for chain in chains)
        rank = sum(self.guess(_rank(g)) for g in groups)
        rows, cols = _outer(groups[0])
        added = sum(self.guess(_rank(g)) * self.guess(rows) * (len(g.others) - 1) for g in groups)
        return computed + added + 2.0 * rank * self.guess(rows) * self.guess(cols)

    def _chain(self, chain: tuple[Matrix, ...]) -> float:
        known: dict[tuple[Matrix, ...], float] = self._known  # type: ignore[attr-defined]
        if chain not in known:
            known[chain] = chained(chain, self.guess, self.facts)[0] if chain else 0.0
        return known[chain]


def _outer(group: Group) -> tuple[Size, Size]:
    left, right = (group.shared, group.others[0][1]) if group.left else (group.others[0][1], group.shared)
    return (left or right)[0].rows, (right or left)[-1].cols


def _rank(group: Group) -> Size:
    first = group.others[0][1]
    left, right = (group.shared, first) if group.left else (first, group.shared)
    return left[-1].cols if left else right[0].rows


def _left(group: Group) -> Matrix:
    if group.left:
        return product(*group.shared) if group.shared else Diagonal(_rank(group))
    return add(*(_scaled(by, _chain(other, group)) for by, other in group.others))


def _right(group: Group) -> Matrix:
    if not group.left:
        return product(*group.shared) if group.shared else Diagonal(_rank(group))
    return add(*(_scaled(by, _chain(other, group)) for by, other in group.others))


def _chain(factors: tuple[Matrix, ...], group: Group) -> Matrix:
    return product(*factors) if factors else Diagonal(_rank(group))


def _scaled(by: Scalar | None, matrix: Matrix) -> Matrix:
    return matrix if by is None else Scale(by, matrix)
