"""The ring calculus: queries over generalised multiset relations (`dbtoaster-batch-ivm` §3.1, App. A).

    SELECT b, SUM(c) FROM r, s WHERE r.b = s.b AND a > 3 GROUP BY b
    →  Sum_[b](R(a, b) ⋈ S(b, c) ⋈ (a > 3) ⋈ ⟨1, c⟩)

An expression maps each tuple of its variables to a payload. Variables are `Column`s; two atoms join on the variables
that they share. Payloads live in a product of rings, so a value term is a vector ⟨…⟩ with a *lane* for each
aggregate, each lane a product of scalar factors (none: 1). A NULL factor counts as 0, a BOOLEAN one as 0 or 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor, LaneRing, Ring
from squallpy.base.types import DOUBLE, INT, Kind
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Call, Case, Column, Expr, Literal, columns, not_null, substitute

Lane = tuple[Expr, ...]  # a product of factors


@dataclass(frozen=True, slots=True)
class Rel:
    """R(x, y): a relation with a variable for each field that the query reads; other fields are projected away.

    `delta` marks ΔR, the batch of changes instead of the contents; `is_after` the contents with those changes.
    """

    relation: Relation
    fields: tuple[tuple[str, Column], ...]
    delta: bool = False
    is_after: bool = False
    reads: frozenset[Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", frozenset(v for _, v in self.fields))

    def __hash__(self) -> int:
        return hash((self.relation.name, *(v.id for _, v in self.fields)))


@dataclass(frozen=True, slots=True)
class Cmp:
    """(predicate): payload 1 where the predicate is TRUE, else 0."""

    predicate: Expr
    reads: frozenset[Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", columns(self.predicate))


@dataclass(frozen=True, slots=True)
class Assign:
    """(variable := value): binds a variable to a computed value."""

    variable: Column
    value: Expr
    reads: frozenset[Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", columns(self.value))


@dataclass(frozen=True, slots=True)
class Values:
    """⟨v₁, …, vₖ⟩: a payload in the product ring, one lane per aggregate; None is 0."""

    lanes: tuple[Lane | None, ...]


@dataclass(frozen=True, slots=True)
class Prod:
    """Natural join; multiplies payloads. Bindings flow from left to right."""

    terms: tuple["Term", ...]


@dataclass(frozen=True, slots=True)
class Plus:
    """Bag union; adds payloads."""

    terms: tuple["Term", ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """Sum_[keys](term): projection onto `keys` that adds up payloads."""

    keys: tuple[Column, ...]
    term: "Term"


Term = Rel | Cmp | Assign | Values | Prod | Plus | Sum
Factor = Rel | Cmp | Assign

ZERO = Plus(())
MINUS = Literal(-1, INT)  # the factor of subtracted terms


def variables(term: Term) -> frozenset[Column]:
    """Collect all variables of a term."""
    match term:
        case Rel() | Cmp():
            return term.reads
        case Assign(variable):
            return term.reads | {variable}
        case Values(lanes):
            return frozenset(v for lane in lanes for factor in lane or () for v in columns(factor))
        case Prod(terms) | Plus(terms):
            return frozenset().union(*(variables(t) for t in terms))
        case Sum(keys, inner):
            return frozenset(keys) | variables(inner)


def rename_column(v: Column, names: Mapping[int, Expr]) -> Column:
    """Replace a variable; `names` are columns by the ids of those that they replace."""
    found = names.get(v.id, v)
    assert isinstance(found, Column)
    return found


def rename_factor(factor: Factor, names: dict[int, Expr]) -> Factor:
    """Replace the variables of a factor; `names` are columns by the ids of those that they replace."""
    match factor:
        case Rel(_, fields):
            return replace(factor, fields=tuple((title, rename_column(v, names)) for title, v in fields))
        case Cmp(predicate):
            return Cmp(substitute(predicate, names))
        case Assign(variable, value):
            return Assign(rename_column(variable, names), substitute(value, names))


def solutions(factor: Factor) -> Iterator[tuple[tuple[Cmp, ...], Assign]]:
    """Yield the ways to compute a variable from an equality, each behind a test.

    x + y = z   →   (NOT x + y IS NULL), (z := x + y)
    """
    match factor:
        case Cmp(Call("=" | "<=>" as name, (a, b))):
            for variable, value in ((a, b), (b, a)):
                if isinstance(variable, Column) and variable.type == value.type and variable not in columns(value):
                    is_tested = value.nullable and (name == "=" or not variable.nullable)
                    yield (Cmp(not_null(value)),) if is_tested else (), Assign(variable, value)


def relations(term: Term) -> frozenset[str]:
    """Collect the names of the relations, not the deltas, that a term reads."""
    match term:
        case Rel(relation, _, delta):
            return frozenset() if delta else frozenset((relation.name,))
        case Prod(terms) | Plus(terms):
            return frozenset().union(*(relations(t) for t in terms))
        case Sum(_, inner):
            return relations(inner)
    return frozenset()


_LIFT = "lift"


def lift(value: Expr, number: int, degree: int = 1) -> Call:
    """Build the lifting g_X(value) of variable X, of that number in its view tree, into the cofactor ring."""
    more = (Literal(degree, INT),) if degree > 1 else ()
    return Call(_LIFT, (value, Literal(number, INT), *more), DOUBLE, value.nullable)


def lifted(factor: Expr) -> tuple[Expr, int] | None:
    """Return the value that a factor lifts, and the number of its variable; None if it is no lifting."""
    match factor:
        case Call("lift", (value, Literal(number), *_)):
            return value, number
    return None


def cofactor_ring(lane: Lane, rings: Sequence[LaneRing] = ()) -> Cofactor | None:
    """Return the ring of a product of cofactor rings and liftings; None if it has none of them."""
    given = _cofactors(lane, rings)
    if not given:
        return None
    return Cofactor(min(r.first for r in given), sum(r.size for r in given), degree=given[0].degree)


def has_gap(lane: Lane, rings: Sequence[LaneRing]) -> bool:
    """True if the variables of a product of cofactor rings are not side by side: no ring is over them."""
    whole, given = cofactor_ring(lane, rings), _cofactors(lane, rings)
    return whole is not None and max(r.first + r.size for r in given) > whole.first + whole.size


def _cofactors(lane: Lane, rings: Sequence[LaneRing]) -> list[Cofactor]:
    """List the cofactor rings of the factors of a product."""
    given = [ring for ring in rings if isinstance(ring, Cofactor)]
    for factor in lane:
        match factor:
            case Call("lift", (_, Literal(number))):
                given.append(Cofactor(number, 1))
            case Call("lift", (_, Literal(number), Literal(degree))):
                given.append(Cofactor(number, 1, degree=degree))
    return given


def product_ring(lane: Lane, rings: Sequence[LaneRing]) -> LaneRing:
    """Return the ring of a product of elements of rings and a lane."""
    cofactor = cofactor_ring(lane, rings)
    return cofactor or max(found for found in (ring(lane), *rings) if isinstance(found, Ring))


def ring(lane: Lane) -> LaneRing:
    """Choose the smallest ring for the sums of a lane.

    ⟨⟩, ⟨-1⟩ and ⟨CASE WHEN a > 3 THEN 1 ELSE 0 END⟩ → COUNT, ⟨price⟩ → EXACT, ⟨ratio⟩ → REAL, ⟨LIFT(x, 0)⟩ →
    COFACTOR[0..0]
    """
    if (cofactor := cofactor_ring(lane)) is not None:
        return cofactor
    if any(factor.type.kind is Kind.DOUBLE for factor in lane):
        return Ring.REAL
    return Ring.COUNT if all(map(_counts, lane)) else Ring.EXACT


def _counts(factor: Expr) -> bool:
    """True if the values of a factor are −1, 0 and 1: sums of them are no larger than the number of rows."""
    match factor:
        case Literal(value, type) if type.kind is Kind.INT or value is None:
            return value in (None, -1, 0, 1)
        case Case(whens, otherwise, type) if type.kind is Kind.INT:
            return all(map(_counts, (*(value for _, value in whens), otherwise)))
    return factor.type.kind is Kind.BOOLEAN


def scale(lane: Lane) -> int:
    """Count the decimal digits after the point in the sums of a lane."""
    return sum(factor.type.scale for factor in lane)
