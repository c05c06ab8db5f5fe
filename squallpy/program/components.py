"""Components: the parts of a monomial that are materialised separately.

    ΔS(b,c) ⋈ R(a,b) ⋈ T(c,d) ⋈ (a > 3)    →    ΔS(b,c) | R(a,b) ⋈ (a > 3) | T(c,d)

Each delta atom is a component (its batch is pre-aggregated); the other atoms form components connected by
variables that the deltas do not bind (`dbtoaster-batch-ivm` §2.2 and its footnote 2). A component is read in one
version, before or after the batch, so all its atoms of the relation that changes have the same version.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Call, Column, columns
from squallpy.program.calculus import MINUS, Assign, Cmp, Factor, Lane, Rel, Values, solutions, variables


@dataclass(frozen=True, slots=True)
class Component:
    """Factors to be materialised together, the variables that others need, and a lane for each target lane.

    It is read as it is `is_after` the batch, or as it was before.
    """

    body: tuple[Factor, ...]
    keys: tuple[Column, ...]
    lanes: tuple[Lane | None, ...]
    is_after: bool = False

    @property
    def is_delta(self) -> bool:
        return _is_delta(self.body)


@dataclass(frozen=True, slots=True)
class Split:
    """A monomial as components (deltas first), and the factors that only the statement can evaluate."""

    components: tuple[Component, ...]
    filters: tuple[Factor, ...]
    lanes: tuple[Lane | None, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """An atom with the assignments that it can compute alone, and the variables that they bind."""

    atom: Rel
    assigns: tuple[Factor, ...]
    binds: frozenset[Column]


class MixedVersionsError(Exception):
    """A component with atoms from before and from after the batch; `atom` is one from after it that joins others."""

    def __init__(self, atom: Rel) -> None:
        super().__init__(atom)
        self.atom = atom


def split(
    factors: Sequence[Factor],
    values: Values,
    keys: Iterable[Column],
    each_atom: bool = False,
    split_versions: bool = False,
) -> Split:
    """Cut a monomial into units; predicates and scalar factors go into the units that bind all they read.

    Args:
        apart: Each atom is a unit of its own.
        torn: Components of atoms from before and after the batch are cut between these; else raises MixedVersionsError.
    """
    rest = [f for f in factors if not isinstance(f, Rel)]
    computed = [f for f in rest if isinstance(f, Assign) and f.reads and not isinstance(f.value, Column)]
    groups = [_attach(f, computed) for f in factors if isinstance(f, Rel)]
    if each_atom:
        pieces = [[group] for group in sorted(groups, key=lambda group: not group.atom.delta)]
    else:
        pieces = _components(groups, rest, split_versions)
    bodies = _with_covered(list(map(_concatenate, pieces)), rest)
    inside = {id(f) for body in bodies for f in body}
    filters = [f for f in rest if id(f) not in inside and not _compute_key(bodies, f)]
    bodies = [_without_implied(body) for body in bodies]
    scopes = [bound_by(body) for body in bodies]

    index = _Scopes(scopes)
    products = [_split_lane(lane, index) for lane in values.lanes]
    *picked, residual = zip(*products, strict=True) if products else ((),) * (len(bodies) + 1)

    outside = frozenset(keys) | variables(Values(residual)) | frozenset().union(*map(variables, filters))
    shared = Counter(v for scope in scopes for v in scope)
    components = []
    for i, body in enumerate(bodies):
        unit_keys = tuple(v for v in _in_order(body) if v in outside or shared[v] > 1)
        after = any(isinstance(f, Rel) and f.is_after for f in body)
        body = tuple(replace(f, is_after=False) if isinstance(f, Rel) else f for f in body) if after else body
        components.append(Component(prune(body, unit_keys, picked[i]), unit_keys, picked[i], after))
    return Split(tuple(components), tuple(filters), residual)


def joins_read_by_deltas(body: Sequence[Factor]) -> Iterator[frozenset[str]]:
    """Yield the joins that deltas of a join read, and those that deltas of these read, by their relations.

    ΔB of A(a) ⋈ B(a, b) ⋈ C(b, c) ⋈ D(c) reads A and C ⋈ D   →   {A}, {C, D}, {C}, {D}, …

    Nothing for joins that read a relation twice, whose parts may be equal views, or compare several relations.
    """
    rest = [f for f in body if not isinstance(f, Rel)]
    computed = [f for f in rest if isinstance(f, Assign) and f.reads and not isinstance(f.value, Column)]
    atoms = [f for f in body if isinstance(f, Rel)]
    groups = [_attach(atom, computed) for atom in atoms]
    compared = (f for f in rest if isinstance(f, Cmp) and not any(f.reads <= g.binds for g in groups))
    if len({atom.relation.name for atom in atoms}) < len(atoms) or next(compared, None):
        return
    found, waiting = set[frozenset[str]](), [groups]
    while waiting:
        join = waiting.pop()
        changing = [g for g in join if g.atom.relation.stream] or join
        for group in changing:
            delta = replace(group, atom=replace(group.atom, delta=True))
            for part in _components([delta, *(g for g in join if g is not group)], (), False)[1:]:
                names = frozenset(g.atom.relation.name for g in part)
                if names not in found:
                    found.add(names)
                    waiting.append(part)
                    yield names


class _Scopes:
    """The variables of several bodies, and the bodies that have a variable."""

    def __init__(self, scopes: Sequence[frozenset[Column]]) -> None:
        self.scopes = scopes
        self._holders = defaultdict[Column, list[int]](list)
        for i, scope in enumerate(scopes):
            for v in scope:
                self._holders[v].append(i)

    def covering(self, read: frozenset[Column]) -> Iterator[int]:
        """List the bodies that bind all variables that are read, in their order."""
        some = self._holders.get(next(iter(read)), ()) if read else range(len(self.scopes))
        return (i for i in some if read <= self.scopes[i])


def _split_lane(lane: Lane | None, bodies: _Scopes) -> list[Lane | None]:
    """Split the factors of a lane over the first bodies that bind what they read; last come those that none binds."""
    parts: list[Lane | None] = [None if lane is None else ()] * (1 + len(bodies.scopes))
    for f in lane or ():
        place = -1 if f == MINUS else next(bodies.covering(columns(f)), -1)
        parts[place] = (*(parts[place] or ()), f)
    return parts


def _with_covered(bodies: list[tuple[Factor, ...]], rest: Sequence[Factor]) -> list[tuple[Factor, ...]]:
    """Add to each body the other factors that read only variables that it binds."""
    index, more = _Scopes(list(map(bound_by, bodies))), [list[Factor]() for _ in bodies]
    own = [{id(f) for f in body} for body in bodies]
    for f in rest:
        reads = f.reads if isinstance(f, Cmp | Assign) else frozenset[Column]()
        for i in index.covering(reads):
            if id(f) not in own[i] and _covers(index.scopes[i], f):
                more[i].append(f)
    return [(*body, *extra) for body, extra in zip(bodies, more, strict=True)]


def _compute_key(bodies: list[tuple[Factor, ...]], factor: Factor) -> bool:
    """Let a body compute a variable of another one from an equality, as a key of its view; False if none can.

    ΔC(z) | A(k, x) ⋈ B(k, y), (x + y = z)   →   ΔC(z) | A(k, x) ⋈ B(k, y) ⋈ (z := x + y)
    """
    for tests, assign in solutions(factor):
        for i, body in enumerate(bodies):
            if _covers(bound_by(body), assign):
                bodies[i] = (*body, *tests, assign)
                return True
    return False


def _without_implied(body: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Drop NOT NULL tests of a variable that is bound to NOT NULL fields only.

    NB: one such field would do, but the others' own views keep the test, and have to be the same everywhere.
    """
    tested = {id(f): v for f in body if isinstance(f, Cmp) and (v := _asked_not_null(f))}
    if not tested:
        return body
    bound = Counter(v for f in body if isinstance(f, Rel) for _, v in f.fields)
    tested_variables, atoms = {*tested.values()}, [f for f in body if isinstance(f, Rel)]
    nullable = {v for f in atoms for name, v in f.fields if v in tested_variables and f.relation.nullable(name)}
    return tuple(f for f in body if (v := tested.get(id(f))) is None or not bound[v] or v in nullable)


def _asked_not_null(comparison: Cmp) -> Column | None:
    match comparison.predicate:
        case Call("not", (Call("is_null", (Column() as column,)),)):
            return column
    return None


def prune(body: tuple[Factor, ...], keys: Iterable[Column], lanes: Iterable[Lane | None]) -> tuple[Factor, ...]:
    """Drop assignments and fields that nothing reads: Sum_[b](R(a, b)) → Sum_[b](R(b))."""
    wanted = frozenset(keys) | variables(Values(tuple(lanes)))
    if len(body) == 1 and isinstance(atom := body[0], Rel):
        return (_with_fields(atom, [p for p in atom.fields if p[1] in wanted]),)
    times = Counter(v for f in body for v in variables(f))  # factors that have a variable

    def is_read(v: Column) -> bool:
        return v in wanted or times[v] > 1

    while idle := [f for f in body if isinstance(f, Assign) and not is_read(f.variable)]:
        body = tuple(f for f in body if f not in idle)
        times.subtract(v for f in idle for v in variables(f))
    return tuple(_with_fields(f, [p for p in f.fields if is_read(p[1])]) if isinstance(f, Rel) else f for f in body)


def _with_fields(atom: Rel, fields: list[tuple[str, Column]]) -> Rel:
    """Restrict an atom to some fields; the same object if these are all."""
    return atom if len(fields) == len(atom.fields) else replace(atom, fields=tuple(fields))


def _attach(atom: Rel, assigns: Sequence[Assign]) -> _Group:
    """Add to an atom those of some computed variables that it can compute alone, in an order of evaluation.

    A variable that it binds already is for another atom to compute: a + 1 = b AND b + 1 = a.
    """
    body: list[Factor] = []
    bound = atom.reads
    while more := [f for f in assigns if f.variable not in bound and f.reads <= bound]:
        body += more
        bound |= bound_by(more)
    return _Group(atom, tuple(body), bound)


def _components(groups: list[_Group], rest: Sequence[Factor], split_versions: bool) -> list[list[_Group]]:
    """Group factors: each delta alone, first, then connected components of the others, cut where they grow large.

    Raises MixedVersionsError unless components of two versions may be split.
    """
    deltas = [g for g in groups if g.atom.delta]
    bound = _bound_by_groups(deltas)
    pieces = []
    for component in _join_compared(_connected([g for g in groups if not g.atom.delta], bound), bound, rest):
        fact = _fact(component, deltas, bound)
        if fact is None:
            pieces += _split_component(component, bound)
            continue
        known = bound | fact.binds
        pieces.append([fact])
        for part in _connected([g for g in component if g is not fact], known):
            pieces += _split_component(part, known)
    changing = {g.atom.relation for g in deltas}
    pieces = [part for piece in pieces for part in _of_one_version(piece, bound, changing, split_versions)]
    return [*([g] for g in deltas), *pieces]


def _bound_by_groups(groups: Iterable[_Group]) -> frozenset[Column]:
    """Collect the variables that groups bind."""
    return frozenset[Column]().union(*(g.binds for g in groups))


def _of_one_version(
    piece: list[_Group], bound: frozenset[Column], changing: Collection[Relation], split_versions: bool
) -> list[list[_Group]]:
    """Split a piece that has atoms from before and from after the batch; MixedVersionsError unless allowed.

    ΔR(b,c):  NEW R(a,b) ⋈ R(c,a)   →   NEW R(a,b)  |  R(c,a)
    """
    new_groups = [group for group in piece if group.atom.is_after]
    if not new_groups:
        return [piece]
    others = [group for group in piece if not group.atom.is_after]
    if not any(group.atom.relation in changing for group in others):
        return [piece]
    if not split_versions:
        known = _bound_by_groups(others) - bound
        raise MixedVersionsError(next((g for g in new_groups if g.binds & known), new_groups[0]).atom)
    return [*_connected(new_groups, bound), *_connected(others, bound)]


def _connected(groups: list[_Group], bound: frozenset[Column]) -> list[list[_Group]]:
    """Group by shared variables, apart from the `bound` ones."""
    components: dict[int, list[_Group]] = {}
    latest: dict[int, int] = {}  # the number of a component's last group
    places: dict[Column, int] = {}  # the component that binds a variable
    for number, group in enumerate(groups):
        scope = group.binds - bound
        near = sorted({places[v] for v in scope if v in places}, key=latest.__getitem__)
        mine = near[0] if near else number
        for other in near[1:]:
            places |= dict.fromkeys(_bound_by_groups(components[other]) - bound, mine)
            components[mine] += components.pop(other)
        components.setdefault(mine, []).append(group)
        latest[mine] = number
        places |= dict.fromkeys(scope, mine)
    return [components[each] for each in sorted(components, key=latest.__getitem__)]


def _join_compared(
    components: list[list[_Group]], bound: frozenset[Column], rest: Sequence[Factor]
) -> list[list[_Group]]:
    """Join components that share no variable with the deltas where a predicate compares them: the whole batch uses
    their join.

    ΔASKS(p):  BIDS(broker, q) | N8(low, high) | (q >= low)   →   BIDS(broker, q) ⋈ N8(low, high) ⋈ (q >= low)
    """
    if len(components) < 2:
        return components
    tied = bound.union(*(variables(f) for f in rest if variables(f) & bound))
    scopes = [_bound_by_groups(c) for c in components]
    for f in rest:
        near = [i for i, scope in enumerate(scopes) if isinstance(f, Cmp) and scope & f.reads]
        scope = frozenset[Column]().union(*(scopes[i] for i in near))
        if isinstance(f, Cmp) and len(near) > 1 and f.reads <= scope and not scope & tied:
            each_atom = [i for i in range(len(components)) if i not in near]
            components = [*(components[i] for i in each_atom), [g for i in near for g in components[i]]]
            scopes = [*(scopes[i] for i in each_atom), scope]
    return components


def _fact(component: list[_Group], deltas: list[_Group], bound: frozenset[Column]) -> _Group | None:
    """Find the atom that determines the deltas, and all others, by their primary keys; it becomes a piece of its own.

    TPC-H Q9, ΔP(pk):  L(ok, pk, sk) ⋈ O(ok, year) ⋈ S(sk, n)   →   L(ok, pk, sk)  |  O(ok, year)  |  S(sk, n)

    A lineitem has one order and one supplier. Uncut, the view would be the lineitems made wider, and so would be others
    for ΔO, ΔS and each pair of them, all to be maintained for each lineitem. Cut, a part visits its own lineitems, and
    as each has one part, the visits of all parts come to one for each lineitem.
    """
    if len(component) < 2:
        return None
    for group in component:
        if all(_is_determined(delta, group.binds) for delta in deltas):
            known, waiting = bound | group.binds, [g for g in component if g is not group]
            while found := [g for g in waiting if _is_determined(g, known)]:
                known |= _bound_by_groups(found)
                waiting = [g for g in waiting if g not in found]
            if not waiting:
                return group
    return None


def _is_determined(group: _Group, known: frozenset[Column]) -> bool:
    """True if variables in `known` determine one row of the group's atom, by its primary key."""
    key = group.atom.relation.primary_key
    if not key:
        return False
    by_name = dict(group.atom.fields)
    return all(by_name.get(name) in known for name in key)


def _concatenate(groups: list[_Group]) -> tuple[Factor, ...]:
    """Concatenate the factors of all groups; equal assignments once."""
    found: list[Factor] = []
    for group in groups:
        found += (group.atom, *(f for f in group.assigns if f not in found))
    return tuple(found)


def _split_component(component: list[_Group], bound: frozenset[Column]) -> list[list[_Group]]:
    """Split a component that several atoms connect to the deltas by different variables, each part around one of them.

    TPC-H Q5, ΔL(ok, sk):  O(ok, ck) ⋈ C(ck, n) ⋈ S(sk, n)   →   O(ok, ck) ⋈ C(ck, n)  |  S(sk, n)

    Uncut, the view would pair all orders and suppliers of a nation, and a change of either would touch as many pairs
    as the statement now finds: nothing is gained for the space.
    """
    anchors = [group.binds & bound for group in component]
    tops = [a for a in dict.fromkeys(anchors) if a and not any(a < other for other in anchors)]
    if len(tops) < 2:
        return [component]
    place = {i: next(t for t, top in enumerate(tops) if a <= top) for i, a in enumerate(anchors) if a}
    while len(place) < len(component):  # NB: other groups go with one that determines them, or else with a neighbour
        ring = {}
        for i, group in enumerate(component):
            if i not in place:
                near = [j for j in place if (component[j].binds & group.binds) - bound]
                named = [j for j in near if _is_determined(group, component[j].binds)]
                if near:
                    ring[i] = min(place[j] for j in named or near)
        place |= ring
    return [[g for i, g in enumerate(component) if place[i] == t] for t in range(len(tops))]


def _is_delta(body: tuple[Factor, ...]) -> bool:
    return isinstance(body[0], Rel) and body[0].delta


def bound_by(body: Iterable[Factor]) -> frozenset[Column]:
    """Collect the variables that a body binds."""
    binding = (f.reads if isinstance(f, Rel) else (f.variable,) for f in body if not isinstance(f, Cmp))
    return frozenset[Column]().union(*binding)


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
    """True if all variables that a predicate or assignment reads are bound. A predicate may go into several units: 1·1
    = 1.

    A second name for a variable is for the statement to give: kept in a view, it would be the same column twice.
    """
    match factor:
        case Cmp():
            return factor.reads <= bound
        case Assign(variable, value) if factor.reads and not isinstance(value, Column):
            return variable not in bound and factor.reads <= bound
    return False
