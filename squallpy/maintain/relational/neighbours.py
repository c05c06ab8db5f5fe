"""The nearest value below or above another: one row for each two values side by side, instead of one for each pair.

    q: the last quote before each trade, (SELECT MAX(q.time) FROM quotes AS q WHERE q.sym = t.sym AND q.time <= t.time)

    TRADES(s, time, …) ⋈ N2(s, time, last)      N2(s, p, last) := N1(s, p) ⋈ QUOTES(s, q) ⋈ (q <= p) ⋈ (last := MAX q)
 →  TRADES(s, time, …) ⋈ N3(s, last, next) ⋈ (last <= time) ⋈ (time < next)

Trades with all the quotes before them are as many as both multiplied. But a value is in one interval between two
neighbours only, and a new one splits that of one other: N3 grows as the quotes do, a trade finds its row in a
logarithm, and a quote the trades whose last one it becomes. So it is with what comes before and after a row of the
same relation (LAG and LEAD, with MAX and MIN).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from squallpy.base.types import BOOLEAN
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.expressions import MIRRORED, Call, Column, Expr, columns, held_alike, not_null, substitute
from squallpy.logical.monotone import FALLING, RISING, STEADY, direction
from squallpy.maintain.program import Monomial, Neighbours, Nest, View, nest_name
from squallpy.maintain.relational.calculus import Cmp, Factor, Rel, renamed, variables
from squallpy.maintain.relational.nests import bounded, implies, in_order, is_domain, needed, only_adds
from squallpy.maintain.relational.units import prune

_NEAR = {"min": (">", ">="), "max": ("<", "<=")}  # how values that are asked for compare with the one that is given
_FURTHER = {"min": FALLING, "max": RISING}  # which way predicates go that all values fail if the nearest does
_ENDS = {">": ">=", ">=": ">", "<": "<=", "<=": "<"}  # how the given one compares with the neighbour on its other side


@dataclass(frozen=True, slots=True)
class _Nearest:
    """A term domain(k, p) ⋈ rest(k, x) ⋈ (x op e(p)) ⋈ further(x, p) of a nest that asks for the nearest x."""

    nest: Nest
    term: Monomial
    domain: Rel
    definition: Nest  # of the domain
    rest: Monomial
    keys: tuple[Column, ...]  # k
    near: Cmp
    op: str
    given: Expr
    further: tuple[Factor, ...]

    @property
    def x(self) -> Column:
        assert self.nest.finish.over is not None
        return self.nest.finish.over

    def term_with(self, between: Nest, other: Column) -> Monomial:
        """The term with neighbours."""
        at: dict[int, Expr] = {between.neighbours.other.id: other} if between.neighbours else {}
        row = ((title, substitute(expr, at)) for title, expr in between.finish.items)
        atom = Rel(between.relation, tuple((title, v) for title, v in row if isinstance(v, Column)))
        far = Cmp(bounded(_ENDS[self.op], self.given, other))
        return Monomial((self.domain, atom, self.near, far, *self.further), self.term.lanes)


def neighbours(view: View, nests: tuple[Nest, ...]) -> tuple[View, tuple[Nest, ...]]:
    """The query's view and its nests, with neighbours where a least or greatest value is the nearest to another.

    A nest that says nothing else is what its users join themselves; one that also says where there is none has two
    candidates at most, where it had all.
    """
    taken = {a.relation.name for v in (view, *(n.view for n in nests)) for a in v.atoms}
    taken |= {n.relation.name for n in nests}
    fresh = (Column(id, "x", BOOLEAN) for id in count(620_000_000))
    while nearest := next((found for nest in nests for found in _nearest(nest, nests)), None):
        between = _between(nearest, nest_name(taken), next(fresh))
        taken.add(between.relation.name)
        term = nearest.term_with(between, _alike(next(fresh), between.relation.fields[-1]))
        mine = replace(
            nearest.nest.view, terms=tuple(term if t == nearest.term else t for t in nearest.nest.view.terms)
        )
        nests = tuple(replace(n, view=mine) if n is nearest.nest else n for n in (*nests, between))
        if len(mine.terms) == 1 and all(isinstance(expr, Column) for _, expr in nearest.nest.finish.items):
            view = _inlined(view, nearest, term, fresh)
            nests = tuple(replace(n, view=_inlined(n.view, nearest, term, fresh)) for n in nests)
        nests = needed(view, in_order(nests))
    return view, nests


def _nearest(nest: Nest, nests: tuple[Nest, ...]) -> Iterator[_Nearest]:
    """The terms of a nest that are of nearest values."""
    finish, x = nest.finish, nest.finish.over
    if x is None or len(finish.measures) != 1 or not x.type.is_ordered or x.type.is_wide or not only_adds(nest):
        return
    function, domains = finish.measures[0].function, {n.relation.name: n for n in nests if is_domain(n)}
    for term in nest.view.terms:
        for domain in (atom for atom in term.atoms if atom.relation.name in domains):
            others, known = [f for f in term.body if f is not domain], variables(domain)
            own = known.difference(*(variables(f) for f in others if isinstance(f, Rel)))
            asking = [f for f in others if variables(f) & own]
            ways = {f: way for f in asking if (way := _compared(f, x)) and way[0] in _NEAR[function]}
            further = tuple(f for f in asking if f not in ways)
            if x in known or not {*nest.view.keys} <= {*known, x} or len(ways) != 1:
                continue
            ((near, (op, given)),) = ways.items()
            goes_on = all(_goes_on(f, x, _FURTHER[function], known) for f in further)
            if goes_on and columns(given) <= known and isinstance(near, Cmp):
                keys = (*sorted(known - own, key=lambda v: v.id), x)
                rest = (*(f for f in others if f not in asking), *((Cmp(not_null(x)),) if x.nullable else ()))
                body = Monomial(prune(rest, keys, term.lanes), term.lanes)
                definition = domains[domain.relation.name]
                yield _Nearest(nest, term, domain, definition, body, keys, near, op, given, further)


def _compared(factor: Factor, x: Column) -> tuple[str, Expr] | None:
    """x op e  →  (op, e), where the values of e are held as those of x are"""
    match factor:
        case Cmp(Call("<" | "<=" | ">" | ">=" as op, (a, b))) if x in (a, b):
            way, other = (str(op), b) if a == x else (MIRRORED[op], a)
            if x not in columns(other) and held_alike(other.type, x.type) and not other.type.is_wide:
                return way, other
    return None


def _goes_on(factor: Factor, x: Column, way: int, known: frozenset[Column]) -> bool:
    """Does a predicate fail of all values if it fails of the nearest?"""
    if not isinstance(factor, Cmp) or not factor.reads <= known | {x}:
        return False
    return direction(factor.predicate, x) in (way, STEADY)


def _between(nearest: _Nearest, name: str, other: Column) -> Nest:
    """The nest of the values of each group, each with the neighbour on the other side of what it is nearest to."""
    nest, keys, above = nearest.nest, nearest.keys, nearest.op in ("<", "<=")
    titles = (*(f"k{i}" for i in range(1, len(keys))), "value")
    fields = [Field(title, key.type, key.nullable) for title, key in zip(titles, keys, strict=True)]
    fields[-1] = replace(fields[-1], nullable=False)
    fields.append(Field("next" if above else "previous", nearest.x.type))
    other = _alike(other, fields[-1])
    relation = Relation(name, tuple(fields), nest.relation.stream, "view", primary_key=titles)
    items = (*zip(titles, keys, strict=True), (other.name, other))
    finish = replace(nest.finish, measures=(), items=items, over=None, single=False)
    beside = Neighbours(nearest.x, other, above)
    return Nest(relation, View(f"G_{name.upper()}", keys, (nearest.rest,)), finish, neighbours=beside)


def _alike(column: Column, field: Field | Column) -> Column:
    """The column with the name and type of another."""
    return Column(column.id, field.name, field.type, field.nullable)


def _inlined(view: View, nearest: _Nearest, term: Monomial, fresh: Iterator[Column]) -> View:
    """The view with the nest's only term in the place of its rows: there is one value at most that is the nearest."""
    return replace(view, terms=tuple(_replaced(t, view.keys, nearest, term, fresh) for t in view.terms))


def _replaced(
    user: Monomial, keys: tuple[Column, ...], nearest: _Nearest, term: Monomial, fresh: Iterator[Column]
) -> Monomial:
    atom = next((a for a in user.atoms if a.relation == nearest.nest.relation), None)
    if atom is None:
        return user
    finish, given = nearest.nest.finish, dict(atom.fields)
    names: dict[int, Expr] = {e.id: given[t] for t, e in finish.items if isinstance(e, Column) and t in given}
    if (measure := finish.measures[0].column.id) in names:
        names[nearest.x.id] = names[measure]
    for v in sorted(frozenset().union(*map(variables, term.body)), key=lambda v: v.id):
        names.setdefault(v.id, _alike(next(fresh), v))
    body = [f for f in user.body if f is not atom]
    known = _is_implied(body, nearest, names)
    body += [renamed(f, names) for f in term.body if not (known and f is nearest.domain)]
    return _replaced(Monomial(prune(tuple(body), keys, user.lanes), user.lanes), keys, nearest, term, fresh)


def _is_implied(body: list[Factor], nearest: _Nearest, names: dict[int, Expr]) -> bool:
    """Is what the body leaves in the domain?"""
    definition, called = nearest.definition, dict(nearest.domain.fields)
    if len(definition.view.terms) > 1 or not {title for title, _ in definition.finish.items} <= called.keys():
        return False
    keys = {expr.id: substitute(called[t], names) for t, expr in definition.finish.items if isinstance(expr, Column)}
    return implies(body, definition.view.terms[0].body, keys)
