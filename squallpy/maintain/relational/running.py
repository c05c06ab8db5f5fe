"""Running aggregates that are only compared: the intervals where the comparison holds, instead of an aggregate a point.

    b1.price: 0.25 * t > (SELECT SUM(b2.volume) FROM bids AS b2 WHERE b2.price > b1.price)

    BIDS(p, …) ⋈ N1(t) ⋈ N3(p, f) ⋈ (0.25 * t > f)      N3(p, f) := N2(p) ⋈ (f := Sum(BIDS(p2, v) ⋈ (p2 > p) ⋈ ⟨v⟩))
 →  BIDS(p, …) ⋈ N4(low, high) ⋈ (p >= low) ⋈ (p < high)

One order changes f for every p on one side of it, which is why the paper evaluates such a query again
(`dbtoaster-batch-ivm` §3.2.3). But f is a prefix sum of a view of p2, so a sorted index that knows the extents of its
prefix sums finds where f crosses the bound in a logarithm; N4 has a row for each interval, mostly one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from squallpy.base.rings import Ring
from squallpy.base.types import BOOLEAN
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.expressions import (
    MIRRORED,
    Call,
    Column,
    Expr,
    Literal,
    columns,
    held_alike,
    not_null,
    substitute,
)
from squallpy.logical.monotone import FALLING, RISING, direction
from squallpy.logical.nulls import fold_nulls
from squallpy.maintain.program import Finish, Measure, Monomial, Nest, Running, View, nest_name
from squallpy.maintain.relational.calculus import Cmp, Factor, Rel, renamed, variables
from squallpy.maintain.relational.nests import bounded, implies, in_order, is_domain, needed
from squallpy.maintain.relational.units import prune

Context = tuple[tuple[Column, str, str], ...]


@dataclass(frozen=True, slots=True)
class _Running:
    """A nest f(p) = term ⋈ (x op p), for the values p that a domain has; if `total`, also where there is nothing."""

    nest: Nest
    domain: tuple[Factor, ...]
    title: str  # the field that is p
    x: Column
    op: str
    term: Monomial
    total: bool


def intervals(view: View, nests: tuple[Nest, ...]) -> tuple[View, tuple[Nest, ...]]:
    """The query's view and its nests, running aggregates replaced where all that is asked is how they compare."""
    found = [running for nest in nests if (running := _running(nest, nests))]
    if not found:
        return view, nests
    rewriting = _Rewriting(view, nests)
    for running in found:
        view = rewriting.rewrite(view, running)
        rewriting.nests = [replace(nest, view=rewriting.rewrite(nest.view, running)) for nest in rewriting.nests]
    return view, needed(view, in_order([*rewriting.nests, *rewriting.made.values()]))


def _running(nest: Nest, nests: tuple[Nest, ...]) -> _Running | None:
    """The nest as a running aggregate, if it is one."""
    finish, view = nest.finish, nest.view
    if len(view.keys) != 1 or finish.having or finish.over or finish.times:
        return None
    domains = {n.relation.name: n.view for n in nests if is_domain(n)}
    asking = [t for t in view.terms if all(lane is None for i, lane in enumerate(t.lanes) if i != finish.count)]
    summing = [t for t in view.terms if t not in asking]
    if len(summing) != 1 or len(asking) > 1:
        return None
    (p,), (term,) = view.keys, summing
    atoms = [a for a in term.atoms if a.relation.name in domains and [v for _, v in a.fields] == [p]]
    compared = [f for f in term.body if isinstance(f, Cmp) and p in columns(f.predicate)]
    if len(atoms) != 1 or len(compared) != 1:
        return None
    (atom,), (comparison,) = atoms, compared
    match comparison.predicate:
        case Call(op, (Column() as x, Column() as y)) if op in ("<", "<=", ">", ">=") and p in (x, y):
            x, op = (x, op) if y == p else (y, MIRRORED[op])
        case _:
            return None
    body = tuple(f for f in term.body if f not in (atom, comparison))
    apart = all(p not in variables(f) for f in body) and all(p not in columns(e) for e in _factors(term))
    exact = all(ring in (Ring.COUNT, Ring.EXACT) for ring in view.rings)
    ordered = x.type.is_ordered and not x.type.is_wide and held_alike(x.type, p.type)
    if not (apart and exact and ordered and x != p):
        return None
    definition = domains[atom.relation.name]
    if len(definition.terms) != 1 or len(definition.keys) != 1:
        return None
    names: dict[int, Expr] = {definition.keys[0].id: p}
    domain = tuple(renamed(f, names) for f in definition.terms[0].body)
    title = next(title for title, expr in finish.items if expr == p)
    body = prune((*body, *((Cmp(not_null(x)),) if x.nullable else ())), (x,), term.lanes)
    return _Running(
        nest, (asking[0].body if asking else domain), title, x, op, Monomial(body, term.lanes), bool(asking)
    )


def _factors(term: Monomial) -> Iterator[Expr]:
    return (factor for lane in term.lanes for factor in lane or ())


class _Rewriting:
    """Uses of running aggregates replaced, one after the other."""

    def __init__(self, view: View, nests: tuple[Nest, ...]) -> None:
        self.nests = list(nests)
        self._single = {n.relation.name for n in nests if _is_total(n)}
        self._taken = {a.relation.name for v in (view, *(n.view for n in nests)) for a in v.atoms}
        self._taken |= {n.relation.name for n in nests}
        self.made: dict[tuple[str, str], Nest] = {}
        self._fresh = count(600_000_000)

    def rewrite(self, view: View, running: _Running) -> View:
        return replace(view, terms=tuple(t for term in view.terms for t in self._rewrite(term, view.keys, running)))

    def _rewrite(self, term: Monomial, keys: tuple[Column, ...], running: _Running) -> list[Monomial]:
        for atom in term.atoms:
            if atom.relation == running.nest.relation and (found := self._replaced(term, atom, set(keys), running)):
                return [t for each in found for t in self._rewrite(each, keys, running)]
        return [term]

    def _replaced(self, term: Monomial, atom: Rel, keys: set[Column], running: _Running) -> list[Monomial] | None:
        """The monomial with intervals for an atom, and that of NULL; None if more is asked than how it compares."""
        fields = dict(atom.fields)
        p, values = fields.pop(running.title, None), set(fields.values())
        others = [f for f in term.body if f is not atom]
        asking = [f for f in others if variables(f) & values]
        lanes = {c for factor in _factors(term) for c in columns(factor)}
        if p is None or values & (keys | lanes) or not all(isinstance(f, Cmp) for f in asking):
            return None
        rest = tuple(f for f in others if f not in asking)
        if not implies(rest, running.domain, {running.nest.view.keys[0].id: p}):
            return None
        expressions = dict(running.nest.finish.items)
        measured: dict[int, Expr] = {v.id: expressions[title] for title, v in fields.items()}
        context = self._context(rest)
        where = []
        for f in asking:
            assert isinstance(f, Cmp)
            read = columns(f.predicate) & values
            if not columns(f.predicate) - read <= context.keys() or not _is_monotone(f.predicate, read):
                return None
            where.append(substitute(f.predicate, measured))
        if not all(_is_summed(expressions[title], running.nest.finish) for title in fields):
            return None
        needed = {c for w in where for c in columns(w)}
        nest = self._intervals(running, tuple(where), tuple((c, *context[c]) for c in context if c in needed))
        low, high = (Column(next(self._fresh), f.name, f.type) for f in nest.relation.fields)
        from_low, to_high = (">", "<=") if running.op in ("<", ">=") else (">=", "<")
        body = (
            *rest,
            Rel(nest.relation, (("low", low), ("high", high))),
            Cmp(bounded(from_low, p, low)),
            Cmp(bounded(to_high, p, high)),
        )
        out = [Monomial(prune(self._without_idle(body, keys | lanes), keys, term.lanes), term.lanes)]
        if running.total and p.nullable:  # nothing is before NULL, or after it
            nothing: dict[int, Expr] = {
                v.id: Literal(0 if _is_count(expressions[title], running.nest.finish) else None, v.type)
                for title, v in fields.items()
            }
            told = (Cmp(fold_nulls(substitute(f.predicate, nothing))) for f in asking if isinstance(f, Cmp))
            is_null = Cmp(Call("is_null", (p,), BOOLEAN, False))
            out.append(Monomial(prune((*rest, is_null, *told), keys, term.lanes), term.lanes))
        return out

    def _context(self, body: Iterable[Factor]) -> dict[Column, tuple[str, str]]:
        """The variables that a row of a nest binds that always has one; of which nest, and its field."""
        return {
            v: (f.relation.name, title)
            for f in body
            if isinstance(f, Rel) and f.relation.name in self._single
            for title, v in f.fields
        }

    def _without_idle(self, body: tuple[Factor, ...], asked: set[Column]) -> tuple[Factor, ...]:
        """Without the one-row nests that nothing is read of."""

        def idle(f: Factor) -> bool:
            if not isinstance(f, Rel) or f.relation.name not in self._single:
                return False
            mine = variables(f)
            return not mine & asked and not any(mine & variables(g) for g in body if g is not f)

        return tuple(f for f in body if not idle(f))

    def _intervals(self, running: _Running, where: tuple[Expr, ...], context: Context) -> Nest:
        """The nest of the intervals in which the aggregate exists and satisfies the predicates; equal ones are one."""
        spelled = (running.nest.relation.name, repr([substitute(w, _titled(context)) for w in where]))
        if spelled not in self.made:
            name = nest_name(self._taken)
            self._taken.add(name)
            type = running.x.type
            ends = tuple(Column(next(self._fresh), title, type) for title in ("low", "high"))
            relation = Relation(name, tuple(Field(c.name, type) for c in ends), running.nest.relation.stream, "view")
            view = View(f"G_{name.upper()}", (running.x,), (running.term,))
            read = {c for w in where for c in columns(w)}
            measures = tuple(m for m in running.nest.finish.measures if m.column in read)
            finish = replace(running.nest.finish, measures=measures, items=tuple((c.name, c) for c in ends))
            ranged = Running(running.x, running.op, where, context, running.total)
            self.made[spelled] = Nest(relation, view, finish, running=ranged)
        return self.made[spelled]


def _titled(context: Context) -> dict[int, Expr]:
    """Context variables by where they come from: how they are called does not make another nest."""
    return {c.id: Column(0, f"{nest}.{title}", c.type, c.nullable) for c, nest, title in context}


def _is_total(nest: Nest) -> bool:
    """Does it always have one row?"""
    finish = nest.finish
    return finish.single and finish.having is None and finish.over is None and finish.times is None


def _measure(expr: Expr, finish: Finish) -> Measure | None:
    return next((m for m in finish.measures if m.column == expr), None)


def _is_count(expr: Expr, finish: Finish) -> bool:
    measure = _measure(expr, finish)
    return measure is not None and measure.function == "count"


def _is_summed(expr: Expr, finish: Finish) -> bool:
    """Is it an aggregate that grows with one lane?"""
    measure = _measure(expr, finish)
    if measure is None or measure.function not in ("sum", "count"):
        return False
    return all(len(lanes) == 1 and lanes[0][0] > 0 for lanes in (measure.value, measure.present))


def _is_monotone(predicate: Expr, read: Iterable[Column]) -> bool:
    """Does it read one aggregate, and stay as it is once that passes a bound? (Where it is not NULL: NULL is apart.)"""
    values = list(read)
    if len(values) != 1:
        return False
    known = replace(values[0], nullable=False)
    folded = fold_nulls(substitute(predicate, {known.id: known}))
    return direction(folded, known) in (RISING, FALLING)
