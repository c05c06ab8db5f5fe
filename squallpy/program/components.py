"""Units: the pieces of a monomial that are materialised, each on its own.

    ΔS(b,c) ⋈ R(a,b) ⋈ T(c,d) ⋈ (a > 3)    →    ΔS(b,c) | R(a,b) ⋈ (a > 3) | T(c,d)

Each delta atom is a unit (its batch is pre-aggregated); the other atoms fall apart into components connected by
variables that the deltas do not bind (`dbtoaster-batch-ivm` §2.2 and its footnote 2). A unit is read either as it was
before the batch or as it is after it, so the atoms of the relation that changes are all the one or all the other.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Call, Column, columns
from squallpy.program.calculus import MINUS, Assign, Cmp, Factor, Lane, Rel, Values, variables


@dataclass(frozen=True, slots=True)
class Unit:
    """Factors to be materialised together, the variables that others need, and one lane for each target lane. It is
    read as it is `after` the batch, or as it was before."""

    body: tuple[Factor, ...]
    keys: tuple[Column, ...]
    lanes: tuple[Lane | None, ...]
    after: bool = False

    @property
    def is_delta(self) -> bool:
        return _is_delta(self.body)


@dataclass(frozen=True, slots=True)
class Split:
    """A monomial as units (deltas first), and what only the statement can evaluate."""

    units: tuple[Unit, ...]
    filters: tuple[Factor, ...]
    lanes: tuple[Lane | None, ...]


class Mixed(Exception):
    """A component has atoms from before the batch and from after it: `atom` is one from after it that joins others."""

    def __init__(self, atom: Rel) -> None:
        super().__init__(atom)
        self.atom = atom


def split(
    factors: Sequence[Factor], values: Values, keys: Iterable[Column], apart: bool = False, torn: bool = False
) -> Split:
    """Cut a monomial into units; predicates and scalar factors go into the units that bind all they read.

    Args:
        apart: Each atom is a unit of its own.
        torn: Components of atoms from before and after the batch are cut between these; else raises Mixed.
    """
    atoms = [f for f in factors if isinstance(f, Rel)]
    rest = [f for f in factors if not isinstance(f, Rel)]
    groups = [_attach(atom, rest) for atom in atoms]
    groups = sorted(groups, key=lambda group: not _is_delta(group)) if apart else _components(groups, rest, torn)
    bodies = [(*group, *_covered(group, rest)) for group in groups]
    inside = {id(f) for body in bodies for f in body}
    filters = tuple(f for f in rest if id(f) not in inside)
    bodies = [_without_implied(body) for body in bodies]
    scopes = [bound_by(body) for body in bodies]

    picked: list[list[Lane | None]] = [[] for _ in bodies]
    residual: list[Lane | None] = []
    read = {id(f): columns(f) for lane in values.lanes for f in lane or ()}
    for lane in values.lanes:
        if lane is None:
            for chosen in (*picked, residual):
                chosen.append(None)
            continue
        left = list(lane)
        for scope, chosen in zip(scopes, picked, strict=True):
            mine = [f for f in left if f != MINUS and read[id(f)] <= scope]
            left = [f for f in left if f == MINUS or not read[id(f)] <= scope]
            chosen.append(tuple(mine))
        residual.append(tuple(left))

    outside = frozenset(keys) | variables(Values(tuple(residual))) | frozenset().union(*map(variables, filters))
    shared = Counter(v for scope in scopes for v in scope)
    units = []
    for i, body in enumerate(bodies):
        unit_keys = tuple(v for v in _in_order(body) if v in outside or shared[v] > 1)
        after = any(isinstance(f, Rel) and f.after for f in body)
        body = tuple(replace(f, after=False) if isinstance(f, Rel) else f for f in body) if after else body
        units.append(Unit(prune(body, unit_keys, picked[i]), unit_keys, tuple(picked[i]), after))
    return Split(tuple(units), filters, tuple(residual))


def _covered(group: tuple[Factor, ...], rest: Sequence[Factor]) -> Iterator[Factor]:
    """The other factors that read no more than a group binds."""
    scope, own = bound_by(group), {id(f) for f in group}
    return (f for f in rest if id(f) not in own and _covers(scope, f))


def _without_implied(body: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """The body without what only asks that a variable be not NULL to which it binds fields that are all NOT NULL.

    NB: one such field would do, but the others' own views keep the factor, and are to be the same wherever they are.
    """
    asked = {id(f): v for f in body if (v := _asked_not_null(f))}
    if not asked:
        return body
    bound = Counter(v for f in body if isinstance(f, Rel) for _, v in f.fields)
    wanted, atoms = {*asked.values()}, [f for f in body if isinstance(f, Rel)]
    nullable = {v for f in atoms for name, v in f.fields if v in wanted and f.relation.nullable(name)}
    return tuple(f for f in body if (v := asked.get(id(f))) is None or not bound[v] or v in nullable)


def _asked_not_null(factor: Factor) -> Column | None:
    match factor:
        case Cmp(Call("not", (Call("is_null", (Column() as column,)),))):
            return column
    return None


def prune(body: tuple[Factor, ...], keys: Iterable[Column], lanes: Iterable[Lane | None]) -> tuple[Factor, ...]:
    """Drop assignments and fields that nothing reads: Sum_[b](R(a, b)) → Sum_[b](R(b))."""
    wanted = frozenset(keys) | variables(Values(tuple(lanes)))
    times = Counter(v for f in body for v in variables(f))  # in how many factors a variable is

    def is_read(v: Column) -> bool:
        return v in wanted or times[v] > 1

    while idle := [f for f in body if isinstance(f, Assign) and not is_read(f.variable)]:
        body = tuple(f for f in body if f not in idle)
        times.subtract(v for f in idle for v in variables(f))
    return tuple(_narrowed(f, [p for p in f.fields if is_read(p[1])]) if isinstance(f, Rel) else f for f in body)


def _narrowed(atom: Rel, fields: list[tuple[str, Column]]) -> Rel:
    """The atom with those of its fields; the same object if they are all."""
    return atom if len(fields) == len(atom.fields) else replace(atom, fields=tuple(fields))


def _attach(atom: Rel, rest: Sequence[Factor]) -> tuple[Factor, ...]:
    """The atom with the assignments that it can compute alone, in an order in which they can be evaluated.

    A variable that it binds already is for another atom to compute: a + 1 = b AND b + 1 = a.
    """
    body: list[Factor] = [atom]
    while more := [f for f in rest if isinstance(f, Assign) and _covers(bound_by(body), f)]:
        body += more
    return tuple(body)


def _components(groups: list[tuple[Factor, ...]], rest: Sequence[Factor], torn: bool) -> list[tuple[Factor, ...]]:
    """Deltas each alone, first; then the connected components of the others, cut where they would not stay small.
    Raises Mixed unless those of two versions are to be `torn`."""
    deltas = [g for g in groups if _is_delta(g)]
    given = bound_by(f for g in deltas for f in g)
    pieces = []
    for component in _compared(_connected([g for g in groups if not _is_delta(g)], given), given, rest):
        fact = _fact(component, deltas, given)
        if fact is None:
            pieces += _cut(component, given)
            continue
        known = given | bound_by(fact)
        pieces.append([fact])
        for part in _connected([g for g in component if g is not fact], known):
            pieces += _cut(part, known)
    changing = {f.relation for g in deltas for f in g if isinstance(f, Rel)}
    pieces = [part for piece in pieces for part in _of_one_version(piece, given, changing, torn)]
    return deltas + [_merged(piece) for piece in pieces]


def _of_one_version(
    piece: list[tuple[Factor, ...]], given: frozenset[Column], changing: Collection[Relation], torn: bool
) -> list[list[tuple[Factor, ...]]]:
    """The piece, or its parts from before and after the batch where it has both; raises Mixed unless it may be `torn`.

    ΔR(b,c):  NEW R(a,b) ⋈ R(c,a)   →   NEW R(a,b)  |  R(c,a)
    """
    news = [group for group in piece if any(isinstance(f, Rel) and f.after for f in group)]
    if not news:
        return [piece]
    others = [group for group in piece if group not in news]
    olds = [g for g in others if any(isinstance(f, Rel) and f.relation in changing for f in g)]
    if not olds:
        return [piece]
    if not torn:
        known = bound_by(f for g in others for f in g) - given
        group = next((g for g in news if bound_by(g) & known), news[0])
        raise Mixed(next(f for f in group if isinstance(f, Rel)))
    return [*_connected(news, given), *_connected(others, given)]


def _connected(groups: list[tuple[Factor, ...]], given: frozenset[Column]) -> list[list[tuple[Factor, ...]]]:
    """Groups that variables tie together, those `given` aside."""
    components: list[tuple[frozenset[Column], list[tuple[Factor, ...]]]] = []  # with the variables that they bind
    for group in groups:
        scope, joined = bound_by(group) - given, [group]
        apart = [c for c in components if not c[0] & scope]
        for theirs, near in reversed([c for c in components if c[0] & scope]):
            scope, joined = scope | theirs, [*near, *joined]
        components = [*apart, (scope, joined)]
    return [component for _, component in components]


def _compared(
    components: list[list[tuple[Factor, ...]]], given: frozenset[Column], rest: Sequence[Factor]
) -> list[list[tuple[Factor, ...]]]:
    """Components that nothing ties to the deltas put together where a predicate compares them: their join is the same
    for all of the batch.

    ΔASKS(p):  BIDS(broker, q) | N8(low, high) | (q >= low)   →   BIDS(broker, q) ⋈ N8(low, high) ⋈ (q >= low)
    """
    if len(components) < 2:
        return components
    tied = given.union(*(variables(f) for f in rest if variables(f) & given))
    scopes = [bound_by(f for g in c for f in g) for c in components]
    for f in rest:
        near = [i for i, scope in enumerate(scopes) if isinstance(f, Cmp) and scope & f.reads]
        scope = frozenset[Column]().union(*(scopes[i] for i in near))
        if isinstance(f, Cmp) and len(near) > 1 and f.reads <= scope and not scope & tied:
            apart = [i for i in range(len(components)) if i not in near]
            components = [*(components[i] for i in apart), [g for i in near for g in components[i]]]
            scopes = [*(scopes[i] for i in apart), scope]
    return components


def _fact(
    component: list[tuple[Factor, ...]], deltas: list[tuple[Factor, ...]], given: frozenset[Column]
) -> tuple[Factor, ...] | None:
    """The atom of several that names the deltas, and all others, by their primary keys; it becomes a piece of its own.

    TPC-H Q9, ΔP(pk):  L(ok, pk, sk) ⋈ O(ok, year) ⋈ S(sk, n)   →   L(ok, pk, sk)  |  O(ok, year)  |  S(sk, n)

    A lineitem has one order and one supplier. Uncut, the view would be the lineitems made wider, and so would be others
    for ΔO, ΔS and each pair of them, all to be maintained for each lineitem. Cut, a part visits its own lineitems, and
    as each has one part, the visits of all parts come to one for each lineitem.
    """
    if len(component) < 2:
        return None
    for group in component:
        if all(_named(delta, bound_by(group)) for delta in deltas):
            known, waiting = given | bound_by(group), [g for g in component if g is not group]
            while found := [g for g in waiting if _named(g, known)]:
                known |= bound_by(f for g in found for f in g)
                waiting = [g for g in waiting if g not in found]
            if not waiting:
                return group
    return None


def _named(group: tuple[Factor, ...], known: frozenset[Column]) -> bool:
    """Do variables in `known` name one row of the group's atom, by its primary key?"""
    (atom,) = (f for f in group if isinstance(f, Rel))
    by_name = dict(atom.fields)
    key = atom.relation.primary_key
    return bool(key) and all(by_name.get(name) in known for name in key)


def _merged(groups: list[tuple[Factor, ...]]) -> tuple[Factor, ...]:
    """The factors of all groups; what several of them compute alike, once."""
    factors = [f for group in groups for f in group]
    return tuple(f for i, f in enumerate(factors) if isinstance(f, Rel) or f not in factors[:i])


def _cut(component: list[tuple[Factor, ...]], given: frozenset[Column]) -> list[list[tuple[Factor, ...]]]:
    """Part a component that several atoms tie to the deltas by different variables, each part around one of them.

    TPC-H Q5, ΔL(ok, sk):  O(ok, ck) ⋈ C(ck, n) ⋈ S(sk, n)   →   O(ok, ck) ⋈ C(ck, n)  |  S(sk, n)

    Uncut, the view would pair all orders and suppliers of a nation, and a change of either would touch as many pairs
    as the statement now finds: nothing is gained for the space.
    """
    anchors = [bound_by(group) & given for group in component]
    tops = [a for a in dict.fromkeys(anchors) if a and not any(a < other for other in anchors)]
    if len(tops) < 2:
        return [component]
    place = {i: next(t for t, top in enumerate(tops) if a <= top) for i, a in enumerate(anchors) if a}
    while len(place) < len(component):  # atoms that no delta touches go with what names them, or else with the nearest
        ring = {}
        for i, group in enumerate(component):
            if i not in place:
                near = [j for j in place if (bound_by(component[j]) & bound_by(group)) - given]
                named = [j for j in near if _named(group, bound_by(component[j]))]
                if near:
                    ring[i] = min(place[j] for j in named or near)
        place |= ring
    return [[g for i, g in enumerate(component) if place[i] == t] for t in range(len(tops))]


def _is_delta(body: tuple[Factor, ...]) -> bool:
    return isinstance(body[0], Rel) and body[0].delta


def bound_by(body: Iterable[Factor]) -> frozenset[Column]:
    """The variables that a body binds."""
    return frozenset(_in_order(body))


def _in_order(body: Iterable[Factor]) -> tuple[Column, ...]:
    found: dict[Column, None] = {}
    for f in body:
        match f:
            case Rel(_, fields):
                found |= dict.fromkeys(v for _, v in fields)
            case Assign(variable):
                found[variable] = None
    return tuple(found)


def _covers(bound: frozenset[Column], factor: Factor) -> bool:
    """Whether all is bound that a predicate or assignment reads. A predicate may go into several units: 1·1 = 1.

    A second name for a variable is for the statement to give: kept in a view, it would be the same column twice.
    """
    match factor:
        case Cmp():
            return factor.reads <= bound
        case Assign(variable, value) if factor.reads and not isinstance(value, Column):
            return variable not in bound and factor.reads <= bound
    return False
