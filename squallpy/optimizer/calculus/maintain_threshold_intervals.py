"""Threshold intervals: a running aggregate that is only compared becomes the intervals where the comparison holds.

    b1.price: 0.25 * t > (SELECT SUM(b2.volume) FROM bids AS b2 WHERE b2.price > b1.price)

    BIDS(p, …) ⋈ N1(t) ⋈ N3(p, f) ⋈ (0.25 * t > f)      N3(p, f) := N2(p) ⋈ (f := Sum(BIDS(p2, v) ⋈ (p2 > p) ⋈ ⟨v⟩))
 →  BIDS(p, …) ⋈ N4(low, high) ⋈ (p >= low) ⋈ (p < high)

One order changes f for every p on one side of it, which is why the paper evaluates such a query anew
(`dbtoaster-batch-ivm` §3.2.3). But f is a prefix sum of a view of p2, so a sorted index with the least and greatest
prefix sums of its nodes finds where f crosses the bound in a logarithm; N4 has a row for each interval, mostly one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from squallpy.base.rings import Ring
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.expressions import (
    MIRRORED,
    Call,
    Column,
    Expr,
    Literal,
    columns,
    held_alike,
    is_null,
    not_null,
    substitute,
)
from squallpy.logical.monotonicity import FALLING, RISING, direction
from squallpy.logical.null_folding import fold_nulls
from squallpy.optimizer.pass_manager import PassContext
from squallpy.program.auxiliary.groups import Groups
from squallpy.program.auxiliary.properties import bounded, implies, in_order, is_domain, needed
from squallpy.program.auxiliary.relation import AuxiliaryRelation, auxiliary_name
from squallpy.program.auxiliary.threshold_intervals import ThresholdIntervals
from squallpy.program.calculus import Cmp, Factor, Rel, rename_factor, variables
from squallpy.program.components import prune
from squallpy.program.output_spec import Measure, OutputSpec
from squallpy.program.trigger_program import Lowered
from squallpy.program.views import Monomial, View

Context = tuple[tuple[Column, str, str], ...]


@dataclass(frozen=True, slots=True)
class _Running:
    """A relation f(g, p) = term ⋈ (x op p), for the g, p that a domain has; if `total`, also where there is nothing.

    `total`: values with nothing to sum have a row, too. `alone`: there are no further terms; else p may be the first of
    several sort keys.
    """

    aux: AuxiliaryRelation
    domain: tuple[Factor, ...]
    title: str  # the field of p
    p: Column
    x: Column
    op: str
    term: Monomial
    total: bool
    group: tuple[Column, ...]
    alone: bool
    given: Rel  # the domain of the values, in the term

    @property
    def titles(self) -> dict[Column, str]:
        """Fields that are keys, by their columns in the definition."""
        keys, items = self.aux.view.keys, self.aux.output.items
        return {expr: title for title, expr in items if isinstance(expr, Column) and expr in keys}


def maintain_threshold_intervals(lowered: Lowered, context: PassContext) -> Lowered:
    """Replace running aggregates that are only compared by the intervals in which the comparison holds."""
    view, auxiliary = lowered.view, lowered.auxiliary
    found = [running for aux in auxiliary if (running := _match_running(aux, auxiliary))]
    if not found:
        return lowered
    rewriting = _Rewriting(view, auxiliary, context.ids)
    for running in found:
        view = rewriting.rewrite(view, running)
        rewriting.auxiliary = [replace(aux, view=rewriting.rewrite(aux.view, running)) for aux in rewriting.auxiliary]
    auxiliary = needed(view, in_order([*rewriting.auxiliary, *rewriting.made.values()]))
    return replace(lowered, view=view, auxiliary=auxiliary)


def _match_running(aux: AuxiliaryRelation, auxiliary: tuple[AuxiliaryRelation, ...]) -> _Running | None:
    """Match an auxiliary relation as a running aggregate."""
    output, view = aux.output, aux.view
    if output.having or output.over or output.times or not aux.is_by_group:
        return None
    if not all(ring in (Ring.COUNT, Ring.EXACT) for ring in view.rings):
        return None
    domains = {n.relation.name: n for n in auxiliary if is_domain(n)}
    asking = [t for t in view.terms if _is_existence_term(t, output)]
    summing = [t for t in view.terms if t not in asking]
    if len(asking) > 1:
        return None
    for term in summing:
        if found := _match_prefix_sum(aux, term, domains):
            given = asking[0].body if asking else found.domain
            return replace(found, domain=given, total=bool(asking), alone=len(summing) == 1)
    return None


def _match_prefix_sum(
    aux: AuxiliaryRelation, term: Monomial, domains: Mapping[str, AuxiliaryRelation]
) -> _Running | None:
    """Match a term that sums up the values on one side of a key."""
    keys = set(aux.view.keys)
    atoms = [a for a in term.atoms if a.relation.name in domains and {v for _, v in a.fields} == keys]
    atoms = [a for a in atoms if len(a.fields) == len(a.relation.fields)]  # fields that it omits may have any value
    compared = [f for f in term.body if isinstance(f, Cmp) and (keys & columns(f.predicate))]
    if len(atoms) != 1 or len(compared) != 1:
        return None
    (atom,), (comparison,) = atoms, compared
    match comparison.predicate:
        case Call(op, (Column() as x, Column() as y)) if op in ("<", "<=", ">", ">=") and (x in keys) != (y in keys):
            x, p, op = (x, y, op) if y in keys else (y, x, MIRRORED[op])
        case _:
            return None
    body = tuple(f for f in term.body if f not in (atom, comparison))
    read = {v for f in body for v in variables(f)} | {v for e in _factors(term) for v in columns(e)}
    group = tuple(key for key in aux.view.keys if key in read)
    ordered = x.type.is_held_in_order and held_alike(x.type, p.type)
    bound = {v for f in body if isinstance(f, Rel) for _, v in f.fields}
    if p in read or not ordered or not bound.issuperset({x, *group}):
        return None
    given = domains[atom.relation.name]
    if len(given.view.terms) != 1:
        return None
    if not given.relation.stream and any(a.relation.stream for a in term.atoms):
        return None  # NB: a table is loaded once, but its join with a stream changes
    title = next(title for title, expr in aux.output.items if expr == p)
    body = prune((*body, *((Cmp(not_null(x)),) if x.nullable else ())), (*group, x), term.lanes)
    return _Running(
        aux, _definition(given, atom), title, p, x, op, Monomial(body, term.lanes), False, group, True, atom
    )


def _definition(domain: AuxiliaryRelation, atom: Rel) -> tuple[Factor, ...]:
    """Copy the definition of a domain over the variables of one of its atoms."""
    mine = dict(atom.fields)
    names: dict[int, Expr] = {v.id: mine[title] for title, v in domain.output.items if isinstance(v, Column)}
    return tuple(rename_factor(f, names) for f in domain.view.terms[0].body)


def _factors(term: Monomial) -> Iterator[Expr]:
    return (factor for lane in term.lanes for factor in lane or ())


class _Rewriting:
    """Replacement of the uses of running aggregates, one after the other."""

    def __init__(self, view: View, auxiliary: tuple[AuxiliaryRelation, ...], ids: Iterator[int]) -> None:
        self.auxiliary = list(auxiliary)
        self._single = {n.relation.name for n in auxiliary if _is_total(n)}
        self._names = {a.relation.name for v in (view, *(n.view for n in auxiliary)) for a in v.atoms}
        self._names |= {n.relation.name for n in auxiliary}
        self.made: dict[tuple[str, ...], AuxiliaryRelation] = {}
        self._fresh = ids

    def rewrite(self, view: View, running: _Running) -> View:
        return replace(view, terms=tuple(t for term in view.terms for t in self._rewrite(term, view.keys, running)))

    def _rewrite(self, term: Monomial, keys: tuple[Column, ...], running: _Running) -> list[Monomial]:
        for atom in term.atoms:
            if atom.relation == running.aux.relation and (found := self._replaced(term, atom, set(keys), running)):
                return [t for each in found for t in self._rewrite(each, keys, running)]
        return [term]

    def _replaced(self, term: Monomial, atom: Rel, keys: set[Column], running: _Running) -> list[Monomial] | None:
        """Replace an atom by intervals, with a monomial for NULL; None if more is read of it than comparisons."""
        fields, names = dict(atom.fields), dict[int, Expr]()
        for key, title in running.titles.items():
            if title not in fields:
                return None
            names[key.id] = fields.pop(title)
        p, values = names[running.p.id], set(fields.values())
        assert isinstance(p, Column)
        others = [f for f in term.body if f is not atom]
        asking = [f for f in others if variables(f) & values]
        rest = tuple(f for f in others if f not in asking)
        if not implies(rest, running.domain, names):
            return None
        own = [f for f in running.term.body if f != Cmp(not_null(running.x))]
        if running.group and not implies(rest, own, {**names, running.x.id: p}):
            return None  # NB: a group without values has no interval
        lanes = {c for factor in _factors(term) for c in columns(factor)}
        if not running.alone or values & (keys | lanes) or not all(isinstance(f, Cmp) for f in asking):
            return self._limit(term, atom, running, fields, names)
        expressions = dict(running.aux.output.items)
        measured: dict[int, Expr] = {v.id: expressions[title] for title, v in fields.items()}
        context = self._context(rest)
        where = []
        for f in asking:
            assert isinstance(f, Cmp)
            read = columns(f.predicate) & values
            around = columns(f.predicate) - read
            if not around <= context.keys() or (around and running.group) or not _is_monotone(f.predicate, read):
                return self._limit(term, atom, running, fields, names)
            where.append(substitute(f.predicate, measured))
        if not all(_is_summed(expressions[title], running.aux.output) for title in fields):
            return None
        needed = {c for w in where for c in columns(w)}
        aux = self._intervals(running, tuple(where), tuple((c, *context[c]) for c in context if c in needed))
        body = (*rest, *self._within(aux, running, names))
        out = [Monomial(prune(self._without_idle(body, keys | lanes), keys, term.lanes), term.lanes)]
        if running.total and p.nullable:  # NB: NULL is neither before nor after a value
            nothing: dict[int, Expr] = {
                v.id: Literal(0 if _is_count(expressions[title], running.aux.output) else None, v.type)
                for title, v in fields.items()
            }
            tests = (Cmp(fold_nulls(substitute(f.predicate, nothing))) for f in asking if isinstance(f, Cmp))
            out.append(Monomial(prune((*rest, Cmp(is_null(p)), *tests), keys, term.lanes), term.lanes))
        return out

    def _within(self, aux: AuxiliaryRelation, running: _Running, names: Mapping[int, Expr]) -> tuple[Factor, ...]:
        """Test that p is in one of the intervals of its group."""
        p = names[running.p.id]
        assert isinstance(p, Column)
        *group, low, high = aux.relation.fields
        ends = [Column(next(self._fresh), f.name, f.type) for f in (low, high)]
        fields = zip((f.name for f in group), (names[c.id] for c in running.group), strict=True)
        from_low, to_high = (">", "<=") if running.op in ("<", ">=") else (">=", "<")
        return (
            Rel(aux.relation, (*fields, (low.name, ends[0]), (high.name, ends[1]))),  # type: ignore[arg-type]
            Cmp(bounded(from_low, p, ends[0])),
            Cmp(bounded(to_high, p, ends[1])),
        )

    def _limit(
        self, term: Monomial, atom: Rel, running: _Running, fields: Mapping[str, Column], names: Mapping[int, Expr]
    ) -> list[Monomial] | None:
        """Count only at values that may pass, where a count has to stay below a bound.

        R(k, t) ⋈ N3(k, t, n) ⋈ (n < 3), n printed   →   the same with N3 of only the t in N4(k, low, high), where n < 3
        """
        expressions, where = dict(running.aux.output.items), list[Expr]()
        measured: dict[int, Expr] = {v.id: expressions[title] for title, v in fields.items()}
        for f in term.body:
            for predicate in _bounds(f.predicate) if isinstance(f, Cmp) else ():
                read = columns(predicate)
                tests = {expr for c in read if (expr := measured.get(c.id)) is not None}
                if len(read) == len(tests) == 1 and all(_is_counted(expr, running.aux.output) for expr in tests):
                    (value,) = read
                    if _direction(predicate, value) == FALLING:
                        where.append(substitute(predicate, measured))
        given = next(n for n in self.auxiliary if n.relation == running.given.relation)
        mine = dict(running.given.fields)
        own = {v.id: names[mine[title].id] for title, v in given.output.items if isinstance(v, Column)}
        rest = tuple(f for f in term.body if f is not atom and not variables(f) & set(fields.values()))
        if not where or not implies(rest, given.view.terms[0].body, own):
            return None
        aux = self._restricted_aggregate(running, self._intervals(running, tuple(where), ()), given)
        if aux is None:
            return None
        body = tuple(Rel(aux.relation, atom.fields) if f is atom else f for f in term.body)
        return [replace(term, body=body)]

    def _restricted_aggregate(
        self, running: _Running, within: AuxiliaryRelation, given: AuxiliaryRelation
    ) -> AuxiliaryRelation | None:
        """Make the running aggregate of only the values that pass the intervals, and of NULL."""
        view, output = running.aux.view, running.aux.output
        key = (running.aux.relation.name, within.relation.name)
        if key in self.made:
            return self.made[key]
        same: dict[int, Expr] = {key.id: key for key in view.keys}
        one: tuple[Factor, ...] = (running.given,)
        kept = [(*one, *self._within(within, running, same))]
        if running.p.nullable:
            kept.append((*one, Cmp(is_null(running.p)), *self._null_test(running, within, given)))
        mine = dict(running.given.fields)
        limited = View("", view.keys, tuple(Monomial(body, ((),)) for body in kept))
        items = tuple((title, mine[title]) for title, _ in given.output.items)
        passing = self._made((*key, "few"), given, limited, replace(given.output, items=items))
        asked = Rel(passing.relation, running.given.fields)
        terms = []
        for term in view.terms:
            if _is_existence_term(term, output):
                terms.append(replace(term, body=(asked,)))
            elif any(atom == running.given for atom in term.atoms):
                terms.append(replace(term, body=tuple(asked if f == running.given else f for f in term.body)))
            elif more := [f for f in term.atoms if {v for _, v in f.fields} == set(view.keys)]:
                terms.append(replace(term, body=self._restrict(term.body, more[0], asked, running, given)))
            else:
                return None
        return self._made(key, running.aux, replace(view, terms=tuple(terms)), output)

    def _restrict(
        self, body: tuple[Factor, ...], atom: Rel, passing: Rel, running: _Running, given: AuxiliaryRelation
    ) -> tuple[Factor, ...]:
        """Restrict a product to the passing values of `atom`, which may be a part of the running aggregate's."""
        more = self._extra_predicates(atom, running, given)
        return (*body, passing) if more is None else (*(passing if f == atom else f for f in body), *more)

    def _extra_predicates(self, atom: Rel, running: _Running, given: AuxiliaryRelation) -> tuple[Factor, ...] | None:
        """List the predicates of an atom's domain beyond the given domain; None if it is another domain."""
        domain = next((n for n in self.auxiliary if n.relation == atom.relation and is_domain(n)), None)
        if domain is None or len(domain.view.terms) != 1:
            return None
        mine, every = _definition(domain, atom), _definition(given, running.given)
        more, keys = tuple(f for f in mine if f not in every), set(running.aux.view.keys)
        apart = all(isinstance(f, Cmp) and variables(f) <= keys for f in more)
        return more if apart and len(mine) == len(every) + len(more) else None

    def _null_test(self, running: _Running, within: AuxiliaryRelation, given: AuxiliaryRelation) -> tuple[Factor, ...]:
        """Test a NULL that sorts last: all rows counted before it, in its group, have to pass."""
        view, output, group = running.aux.view, running.aux.output, running.group
        asking = next((t for t in view.terms if _is_existence_term(t, output)), None)
        for term in view.terms:
            atom = next((f for f in term.atoms if {v for _, v in f.fields} == set(view.keys)), None)
            if not (asking and atom and self._extra_predicates(atom, running, given) == (Cmp(is_null(running.p)),)):
                continue
            body = tuple(f for f in term.body if f is not atom)
            bound = {v for f in body if isinstance(f, Rel) for _, v in f.fields}
            if {v for f in body for v in variables(f)} & set(view.keys) - set(group) or not bound.issuperset(group):
                continue
            every = prune((running.given,), group, asking.lanes)
            terms = (replace(term, body=prune(body, group, term.lanes)), replace(asking, body=every))
            measures = within.output.measures
            titles = {expr: title for title, expr in output.items}
            items = tuple((titles[c], c) for c in (*group, *(m.column for m in measures)))
            key = (running.aux.relation.name, within.relation.name, "behind")
            aux = self._made(key, running.aux, View("", group, terms), replace(output, measures=measures, items=items))
            fields = tuple(Field(title, c.type, c.nullable) for title, c in items)
            relation = replace(aux.relation, fields=fields, primary_key=tuple(titles[c] for c in group))
            self.made[key] = replace(aux, relation=relation)
            counts = {m.column: replace(m.column, id=next(self._fresh), name=titles[m.column]) for m in measures}
            read = (*((titles[c], c) for c in group), *((titles[c], counts[c]) for c in counts))
            assert isinstance(within.kind, ThresholdIntervals)
            names: dict[int, Expr] = {c.id: v for c, v in counts.items()}
            return (Rel(relation, read), *(Cmp(substitute(w, names)) for w in within.kind.where))
        return ()

    def _made(self, key: tuple[str, ...], like: AuxiliaryRelation, view: View, output: OutputSpec) -> AuxiliaryRelation:
        name = auxiliary_name(self._names)
        self._names.add(name)
        relation = replace(like.relation, name=name)
        self.made[key] = AuxiliaryRelation(relation, replace(view, name=f"G_{name.upper()}"), output, Groups())
        return self.made[key]

    def _context(self, body: Iterable[Factor]) -> dict[Column, tuple[str, str]]:
        """Map the variables that a relation of exactly one row binds to the relation and field that they stand for."""
        return {
            v: (f.relation.name, title)
            for f in body
            if isinstance(f, Rel) and f.relation.name in self._single
            for title, v in f.fields
        }

    def _without_idle(self, body: tuple[Factor, ...], asked: set[Column]) -> tuple[Factor, ...]:
        """Drop one-row relations whose columns are not read."""

        def idle(f: Factor) -> bool:
            if not isinstance(f, Rel) or f.relation.name not in self._single:
                return False
            mine = variables(f)
            return not mine & asked and not any(mine & variables(g) for g in body if g is not f)

        return tuple(f for f in body if not idle(f))

    def _intervals(self, running: _Running, where: tuple[Expr, ...], context: Context) -> AuxiliaryRelation:
        """Make the intervals in which the aggregate exists and satisfies the predicates; equal ones are one."""
        key = (running.aux.relation.name, repr([substitute(w, _by_origin(context)) for w in where]))
        if key not in self.made:
            name = auxiliary_name(self._names)
            self._names.add(name)
            ends = [Column(next(self._fresh), title, running.x.type) for title in ("low", "high")]
            titles = {c: f"{title}_of" if title in ("low", "high") else title for c, title in running.titles.items()}
            items = (*((titles[c], c) for c in running.group), *((c.name, c) for c in ends))
            fields = tuple(Field(title, c.type, c.nullable) for title, c in items)
            relation = Relation(name, fields, running.aux.relation.stream, "view")
            view = View(f"G_{name.upper()}", (*running.group, running.x), (running.term,))
            read = {c for w in where for c in columns(w)}
            measures = tuple(m for m in running.aux.output.measures if m.column in read)
            output = replace(running.aux.output, measures=measures, items=items)
            ranged = ThresholdIntervals(running.x, running.op, where, context, running.total, running.group)
            self.made[key] = AuxiliaryRelation(relation, view, output, ranged)
        return self.made[key]


def _by_origin(context: Context) -> dict[int, Expr]:
    """Name context variables by their origin, so that other names yield the same relation."""
    return {c.id: Column(0, f"{relation}.{title}", c.type, c.nullable) for c, relation, title in context}


def _is_total(aux: AuxiliaryRelation) -> bool:
    """True if it always has one row."""
    output = aux.output
    return output.single and output.having is None and output.over is None and output.times is None


def _measure(expr: Expr, output: OutputSpec) -> Measure | None:
    return next((m for m in output.measures if m.column == expr), None)


def _is_count(expr: Expr, output: OutputSpec) -> bool:
    measure = _measure(expr, output)
    return measure is not None and measure.function == "count"


def _is_summed(expr: Expr, output: OutputSpec) -> bool:
    """True if it is an aggregate that grows with one lane."""
    measure = _measure(expr, output)
    if measure is None or measure.function not in ("sum", "count"):
        return False
    return all(len(lanes) == 1 and lanes[0][0] > 0 for lanes in (measure.value, measure.present))


def _is_existence_term(term: Monomial, output: OutputSpec) -> bool:
    """True if the term only makes groups exist."""
    return all(lane is None for i, lane in enumerate(term.lanes) if i != output.count)


def _is_counted(expr: Expr, output: OutputSpec) -> bool:
    """True if it is a number of rows."""
    return _is_count(expr, output) and _is_summed(expr, output)


def _bounds(predicate: Expr) -> Iterator[Expr]:
    """List a predicate's bounds: an equality has one on each side."""
    match predicate:
        case Call("=", args):
            yield from (replace(predicate, name=name, args=args) for name in ("<=", ">="))
        case _:
            yield predicate


def _is_monotone(predicate: Expr, read: Iterable[Column]) -> bool:
    """True if a predicate reads one aggregate and keeps its result beyond some bound, NULL aside."""
    values = list(read)
    return len(values) == 1 and _direction(predicate, values[0]) in (RISING, FALLING)


def _direction(predicate: Expr, value: Column) -> int | None:
    known = replace(value, nullable=False)
    return direction(fold_nulls(substitute(predicate, {known.id: known})), known)
