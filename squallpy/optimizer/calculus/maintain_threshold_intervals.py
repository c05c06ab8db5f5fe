"""Threshold intervals: a running aggregate that is only compared becomes the intervals where the comparison holds.

    b1.price: 0.25 * t > (SELECT SUM(b2.volume) FROM bids AS b2 WHERE b2.price > b1.price)

    BIDS(p, …) ⋈ N1(t) ⋈ N3(p, f) ⋈ (0.25 * t > f)      N3(p, f) := N2(p) ⋈ (f := Sum(BIDS(p2, v) ⋈ (p2 > p) ⋈ ⟨v⟩))
 →  BIDS(p, …) ⋈ N4(low, high) ⋈ (p >= low) ⋈ (p < high)

One order changes f for every p on one side of it, which is why the paper evaluates such a query anew
(`dbtoaster-batch-ivm` §3.2.3). But f is a prefix sum of a view of p2, so a sorted index with the least and greatest
prefix sums of its nodes finds where f crosses the bound in a logarithm; N4 has a row for each interval, mostly one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.base.rings import Ring
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.expressions import (
    MIRRORED,
    Call,
    Column,
    Expr,
    Literal,
    are_stored_alike,
    columns,
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
class _RunningAggregate:
    """A relation f(g, p) = term ⋈ (x op p), for the g, p that a domain has; if `total`, also where there is nothing.

    `total`: values with nothing to sum have a row, too. `is_alone`: there are no further terms; else p may be the first
    of several sort keys.
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
    is_alone: bool
    given: Rel  # the domain of the values, in the term

    @property
    def titles(self) -> dict[Column, str]:
        """Fields that are keys, by their columns in the definition."""
        keys, items = self.aux.view.keys, self.aux.output.items
        return {expr: title for title, expr in items if isinstance(expr, Column) and expr in keys}


def maintain_threshold_intervals(lowered: Lowered, context: PassContext) -> Lowered:
    """Replace running aggregates that are only compared by the intervals in which the comparison holds."""
    views, auxiliary = lowered.views, lowered.auxiliary
    found = [aggregate for aux in auxiliary if (aggregate := _match_running(aux, auxiliary))]
    if not found:
        return lowered
    rewriting = _Rewriting(views, auxiliary, context.ids)
    for aggregate in found:
        views = tuple(rewriting.rewrite(view, aggregate) for view in views)
        rewriting.auxiliary = [replace(aux, view=rewriting.rewrite(aux.view, aggregate)) for aux in rewriting.auxiliary]
    auxiliary = needed(views, in_order([*rewriting.auxiliary, *rewriting.relations.values()]))
    return replace(lowered, views=views, auxiliary=auxiliary)


def _match_running(aux: AuxiliaryRelation, auxiliary: tuple[AuxiliaryRelation, ...]) -> _RunningAggregate | None:
    """Match an auxiliary relation as a running aggregate."""
    output, view = aux.output, aux.view
    if output.having or output.aggregated_key or output.times or not aux.is_by_group:
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
            domain = asking[0].body if asking else found.domain
            return replace(found, domain=domain, total=bool(asking), is_alone=len(summing) == 1)
    return None


def _match_prefix_sum(
    aux: AuxiliaryRelation, term: Monomial, domains: Mapping[str, AuxiliaryRelation]
) -> _RunningAggregate | None:
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
    ordered = x.type.is_held_in_order and are_stored_alike(x.type, p.type)
    bound = {v for f in body if isinstance(f, Rel) for _, v in f.fields}
    if p in read or not ordered or not bound.issuperset({x, *group}):
        return None
    domain = domains[atom.relation.name]
    if len(domain.view.terms) != 1:
        return None
    if not domain.relation.stream and any(a.relation.stream for a in term.atoms):
        return None  # NB: a table is loaded once, but its join with a stream changes
    title = next(title for title, expr in aux.output.items if expr == p)
    body = prune((*body, *((Cmp(not_null(x)),) if x.nullable else ())), (*group, x), term.lanes)
    return _RunningAggregate(
        aux, _definition(domain, atom), title, p, x, op, Monomial(body, term.lanes), False, group, True, atom
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

    def __init__(self, views: tuple[View, ...], auxiliary: tuple[AuxiliaryRelation, ...], ids: Iterator[int]) -> None:
        self.auxiliary = list(auxiliary)
        self._single = {n.relation.name for n in auxiliary if _is_total(n)}
        self._names = {a.relation.name for v in (*views, *(n.view for n in auxiliary)) for a in v.atoms}
        self._names |= {n.relation.name for n in auxiliary}
        self.relations: dict[tuple[str, ...], AuxiliaryRelation] = {}
        self._ids = ids

    def rewrite(self, view: View, aggregate: _RunningAggregate) -> View:
        return replace(view, terms=tuple(t for term in view.terms for t in self._rewrite(term, view.keys, aggregate)))

    def _rewrite(self, term: Monomial, keys: tuple[Column, ...], aggregate: _RunningAggregate) -> list[Monomial]:
        for atom in term.atoms:
            if atom.relation == aggregate.aux.relation and (
                found := self._replace_atom(term, atom, set(keys), aggregate)
            ):
                return [t for each in found for t in self._rewrite(each, keys, aggregate)]
        return [term]

    def _replace_atom(
        self, term: Monomial, atom: Rel, keys: set[Column], aggregate: _RunningAggregate
    ) -> list[Monomial] | None:
        """Replace an atom by intervals, with a monomial for NULL; None if more is read of it than comparisons."""
        fields, names = dict(atom.fields), dict[int, Expr]()
        for key, title in aggregate.titles.items():
            if title not in fields:
                return None
            names[key.id] = fields.pop(title)
        p, values = names[aggregate.p.id], set(fields.values())
        assert isinstance(p, Column)
        others = [f for f in term.body if f is not atom]
        asking = [f for f in others if variables(f) & values]
        rest = tuple(f for f in others if f not in asking)
        if not implies(rest, aggregate.domain, names):
            return None
        own = [f for f in aggregate.term.body if f != Cmp(not_null(aggregate.x))]
        if aggregate.group and not implies(rest, own, {**names, aggregate.x.id: p}):
            return None  # NB: a group without values has no interval
        lanes = {c for factor in _factors(term) for c in columns(factor)}
        if not aggregate.is_alone or values & (keys | lanes) or not all(isinstance(f, Cmp) for f in asking):
            return self._limit(term, atom, aggregate, fields, names)
        expressions = dict(aggregate.aux.output.items)
        measured: dict[int, Expr] = {v.id: expressions[title] for title, v in fields.items()}
        context = self._context(rest)
        predicates = []
        for f in asking:
            assert isinstance(f, Cmp)
            read = columns(f.predicate) & values
            around = columns(f.predicate) - read
            if not around <= context.keys() or (around and aggregate.group) or not _is_monotone(f.predicate, read):
                return self._limit(term, atom, aggregate, fields, names)
            predicates.append(substitute(f.predicate, measured))
        if not all(_is_summed(expressions[title], aggregate.aux.output) for title in fields):
            return None
        needed = {c for w in predicates for c in columns(w)}
        aux = self._intervals(aggregate, tuple(predicates), tuple((c, *context[c]) for c in context if c in needed))
        body = (*rest, *self._test_interval(aux, aggregate, names))
        out = [Monomial(prune(self._without_idle(body, keys | lanes), keys, term.lanes), term.lanes)]
        if aggregate.total and p.nullable:  # NB: NULL is neither before nor after a value
            nothing: dict[int, Expr] = {
                v.id: Literal(0 if _is_count(expressions[title], aggregate.aux.output) else None, v.type)
                for title, v in fields.items()
            }
            tests = (Cmp(fold_nulls(substitute(f.predicate, nothing))) for f in asking if isinstance(f, Cmp))
            out.append(Monomial(prune((*rest, Cmp(is_null(p)), *tests), keys, term.lanes), term.lanes))
        return out

    def _test_interval(
        self, aux: AuxiliaryRelation, aggregate: _RunningAggregate, names: Mapping[int, Expr]
    ) -> tuple[Factor, ...]:
        """Test that p is in one of the intervals of its group."""
        p = names[aggregate.p.id]
        assert isinstance(p, Column)
        *group, low, high = aux.relation.fields
        ends = [Column(next(self._ids), f.name, f.type) for f in (low, high)]
        fields = zip((f.name for f in group), (names[c.id] for c in aggregate.group), strict=True)
        from_low, to_high = (">", "<=") if aggregate.op in ("<", ">=") else (">=", "<")
        return (
            Rel(aux.relation, (*fields, (low.name, ends[0]), (high.name, ends[1]))),  # type: ignore[arg-type]
            Cmp(bounded(from_low, p, ends[0])),
            Cmp(bounded(to_high, p, ends[1])),
        )

    def _limit(
        self,
        term: Monomial,
        atom: Rel,
        aggregate: _RunningAggregate,
        fields: Mapping[str, Column],
        names: Mapping[int, Expr],
    ) -> list[Monomial] | None:
        """Count only at values that may pass, where a count has to stay below a bound.

        R(k, t) ⋈ N3(k, t, n) ⋈ (n < 3), n printed   →   the same with N3 of only the t in N4(k, low, high), where n < 3
        """
        expressions, predicates = dict(aggregate.aux.output.items), list[Expr]()
        measured: dict[int, Expr] = {v.id: expressions[title] for title, v in fields.items()}
        for f in term.body:
            for predicate in _bounds(f.predicate) if isinstance(f, Cmp) else ():
                read = columns(predicate)
                tests = {expr for c in read if (expr := measured.get(c.id)) is not None}
                if len(read) == len(tests) == 1 and all(_is_counted(expr, aggregate.aux.output) for expr in tests):
                    (value,) = read
                    if _direction(predicate, value) == FALLING:
                        predicates.append(substitute(predicate, measured))
        domain = next(n for n in self.auxiliary if n.relation == aggregate.given.relation)
        mine = dict(aggregate.given.fields)
        own = {v.id: names[mine[title].id] for title, v in domain.output.items if isinstance(v, Column)}
        rest = tuple(f for f in term.body if f is not atom and not variables(f) & set(fields.values()))
        if not predicates or not implies(rest, domain.view.terms[0].body, own):
            return None
        aux = self._restricted_aggregate(aggregate, self._intervals(aggregate, tuple(predicates), ()), domain)
        if aux is None:
            return None
        body = tuple(Rel(aux.relation, atom.fields) if f is atom else f for f in term.body)
        return [replace(term, body=body)]

    def _restricted_aggregate(
        self, aggregate: _RunningAggregate, within: AuxiliaryRelation, domain: AuxiliaryRelation
    ) -> AuxiliaryRelation | None:
        """Make the running aggregate of only the values that pass the intervals, and of NULL."""
        view, output = aggregate.aux.view, aggregate.aux.output
        key = (aggregate.aux.relation.name, within.relation.name)
        if key in self.relations:
            return self.relations[key]
        same: dict[int, Expr] = {key.id: key for key in view.keys}
        one: tuple[Factor, ...] = (aggregate.given,)
        bodies = [(*one, *self._test_interval(within, aggregate, same))]
        if aggregate.p.nullable:
            bodies.append((*one, Cmp(is_null(aggregate.p)), *self._null_test(aggregate, within, domain)))
        mine = dict(aggregate.given.fields)
        limited = View("", view.keys, tuple(Monomial(body, ((),)) for body in bodies))
        items = tuple((title, mine[title]) for title, _ in domain.output.items)
        passing = self._make_relation((*key, "few"), domain, limited, replace(domain.output, items=items))
        needed_columns = Rel(passing.relation, aggregate.given.fields)
        terms = []
        for term in view.terms:
            if _is_existence_term(term, output):
                terms.append(replace(term, body=(needed_columns,)))
            elif any(atom == aggregate.given for atom in term.atoms):
                terms.append(
                    replace(term, body=tuple(needed_columns if f == aggregate.given else f for f in term.body))
                )
            elif more := [f for f in term.atoms if {v for _, v in f.fields} == set(view.keys)]:
                terms.append(replace(term, body=self._restrict(term.body, more[0], needed_columns, aggregate, domain)))
            else:
                return None
        return self._make_relation(key, aggregate.aux, replace(view, terms=tuple(terms)), output)

    def _restrict(
        self, body: tuple[Factor, ...], atom: Rel, passing: Rel, aggregate: _RunningAggregate, domain: AuxiliaryRelation
    ) -> tuple[Factor, ...]:
        """Restrict a product to the passing values of `atom`, which may be a part of the running aggregate's."""
        more = self._extra_predicates(atom, aggregate, domain)
        return (*body, passing) if more is None else (*(passing if f == atom else f for f in body), *more)

    def _extra_predicates(
        self, atom: Rel, aggregate: _RunningAggregate, given: AuxiliaryRelation
    ) -> tuple[Factor, ...] | None:
        """List the predicates of an atom's domain beyond the given domain; None if it is another domain."""
        domain = next((n for n in self.auxiliary if n.relation == atom.relation and is_domain(n)), None)
        if domain is None or len(domain.view.terms) != 1:
            return None
        mine, every = _definition(domain, atom), _definition(given, aggregate.given)
        more, keys = tuple(f for f in mine if f not in every), set(aggregate.aux.view.keys)
        apart = all(isinstance(f, Cmp) and variables(f) <= keys for f in more)
        return more if apart and len(mine) == len(every) + len(more) else None

    def _null_test(
        self, aggregate: _RunningAggregate, within: AuxiliaryRelation, domain: AuxiliaryRelation
    ) -> tuple[Factor, ...]:
        """Test a NULL that sorts last: all rows counted before it, in its group, have to pass."""
        view, output, group = aggregate.aux.view, aggregate.aux.output, aggregate.group
        asking = next((t for t in view.terms if _is_existence_term(t, output)), None)
        for term in view.terms:
            atom = next((f for f in term.atoms if {v for _, v in f.fields} == set(view.keys)), None)
            if not (
                asking and atom and self._extra_predicates(atom, aggregate, domain) == (Cmp(is_null(aggregate.p)),)
            ):
                continue
            body = tuple(f for f in term.body if f is not atom)
            bound = {v for f in body if isinstance(f, Rel) for _, v in f.fields}
            if {v for f in body for v in variables(f)} & set(view.keys) - set(group) or not bound.issuperset(group):
                continue
            every = prune((aggregate.given,), group, asking.lanes)
            terms = (replace(term, body=prune(body, group, term.lanes)), replace(asking, body=every))
            measures = within.output.measures
            titles = {expr: title for title, expr in output.items}
            items = tuple((titles[c], c) for c in (*group, *(m.column for m in measures)))
            key = (aggregate.aux.relation.name, within.relation.name, "behind")
            aux = self._make_relation(
                key, aggregate.aux, View("", group, terms), replace(output, measures=measures, items=items)
            )
            fields = tuple(Field(title, c.type, c.nullable) for title, c in items)
            relation = replace(aux.relation, fields=fields, primary_key=tuple(titles[c] for c in group))
            self.relations[key] = replace(aux, relation=relation)
            counts = {m.column: replace(m.column, id=next(self._ids), name=titles[m.column]) for m in measures}
            read = (*((titles[c], c) for c in group), *((titles[c], counts[c]) for c in counts))
            assert isinstance(within.kind, ThresholdIntervals)
            names: dict[int, Expr] = {c.id: v for c, v in counts.items()}
            return (Rel(relation, read), *(Cmp(substitute(w, names)) for w in within.kind.predicates))
        return ()

    def _make_relation(
        self, key: tuple[str, ...], like: AuxiliaryRelation, view: View, output: OutputSpec
    ) -> AuxiliaryRelation:
        name = auxiliary_name(self._names)
        self._names.add(name)
        relation = replace(like.relation, name=name)
        self.relations[key] = AuxiliaryRelation(relation, replace(view, name=f"G_{name.upper()}"), output, Groups())
        return self.relations[key]

    def _context(self, body: Iterable[Factor]) -> dict[Column, tuple[str, str]]:
        """Map the variables that a relation of exactly one row binds to the relation and field that they stand for."""
        return {
            v: (f.relation.name, title)
            for f in body
            if isinstance(f, Rel) and f.relation.name in self._single
            for title, v in f.fields
        }

    def _without_idle(self, body: tuple[Factor, ...], needed_columns: set[Column]) -> tuple[Factor, ...]:
        """Drop one-row relations whose columns are not read."""

        def idle(f: Factor) -> bool:
            if not isinstance(f, Rel) or f.relation.name not in self._single:
                return False
            mine = variables(f)
            return not mine & needed_columns and not any(mine & variables(g) for g in body if g is not f)

        return tuple(f for f in body if not idle(f))

    def _intervals(
        self, aggregate: _RunningAggregate, predicates: tuple[Expr, ...], context: Context
    ) -> AuxiliaryRelation:
        """Make the intervals in which the aggregate exists and satisfies the predicates; equal ones are one."""
        key = (aggregate.aux.relation.name, repr([substitute(w, _by_origin(context)) for w in predicates]))
        if key not in self.relations:
            name = auxiliary_name(self._names)
            self._names.add(name)
            ends = [Column(next(self._ids), title, aggregate.x.type) for title in ("low", "high")]
            titles = {c: f"{title}_of" if title in ("low", "high") else title for c, title in aggregate.titles.items()}
            items = (*((titles[c], c) for c in aggregate.group), *((c.name, c) for c in ends))
            fields = tuple(Field(title, c.type, c.nullable) for title, c in items)
            relation = Relation(name, fields, aggregate.aux.relation.stream, "view")
            view = View(f"G_{name.upper()}", (*aggregate.group, aggregate.x), (aggregate.term,))
            read = {c for w in predicates for c in columns(w)}
            measures = tuple(m for m in aggregate.aux.output.measures if m.column in read)
            output = replace(aggregate.aux.output, measures=measures, items=items)
            ranged = ThresholdIntervals(
                aggregate.x, aggregate.op, predicates, context, aggregate.total, aggregate.group
            )
            self.relations[key] = AuxiliaryRelation(relation, view, output, ranged)
        return self.relations[key]


def _by_origin(context: Context) -> dict[int, Expr]:
    """Name context variables by their origin, so that other names yield the same relation."""
    return {c.id: Column(0, f"{relation}.{title}", c.type, c.nullable) for c, relation, title in context}


def _is_total(aux: AuxiliaryRelation) -> bool:
    """True if it always has one row."""
    output = aux.output
    return output.single and output.having is None and output.aggregated_key is None and output.times is None


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
