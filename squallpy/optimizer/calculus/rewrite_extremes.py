"""MIN, MAX and EXISTS under an inequality, decided by one value (the nearest, or the extreme) instead of all pairs.

    the last quote before each trade: (SELECT MAX(q.time) FROM quotes AS q WHERE q.sym = t.sym AND q.time <= t.time)

    TRADES(s, time, …) ⋈ N2(s, time, last)      N2(s, p, last) := N1(s, p) ⋈ QUOTES(s, q) ⋈ (q <= p) ⋈ (last := MAX q)
 →  TRADES(s, time, …) ⋈ N3(s, last, next) ⋈ (last <= time) ⋈ (time < next)

The pairs of a trade and an earlier quote are as many as both sizes multiplied. But a time is in one interval between
neighbouring quotes, and a new quote splits one interval: N3 has a row for each quote, a trade finds its row in a
logarithm, and so does a quote the trades whose last quote it becomes. The same holds for the row before or after one of
the same relation (LAG and LEAD, as MAX and MIN), and for tests whether such a value exists.

    trades below a bid: EXISTS (SELECT * FROM quotes AS q WHERE q.sym = t.sym AND q.bid > t.price)

    TRADES(s, price, …) ⋈ N2(s, price)      N2(s, p) := Exists(N1(s, p) ⋈ QUOTES(s, q) ⋈ (q > p))
 →  TRADES(s, price, …) ⋈ N3(s, most) ⋈ (most > price)      N3(s, most) := Exists(QUOTES(s, q)) ⋈ (most := MAX q)

    the highest bid so far: (SELECT MAX(q.bid) FROM quotes AS q WHERE q.sym = t.sym AND q.time <= t.time)

    N2(s, p, bid) := N1(s, p) ⋈ QUOTES(s, q, b) ⋈ (q <= p) ⋈ (bid := MAX b)
 →  N1(s, p) ⋈ N3(s, q, bid) ⋈ N4(s, q, next) ⋈ (q <= p) ⋈ (p < next)

N3 is the skyline of the quotes: those with no earlier bid as high. Each is the highest until the next of them.

    the highest bid of the last minute: (… WHERE q.sym = t.sym AND q.time > t.time - 60 AND q.time <= t.time)

    N2(s, p, bid) := N1(s, p) ⋈ QUOTES(s, q, b) ⋈ (q > p - 60) ⋈ (q <= p) ⋈ (bid := MAX b)
 →  N1(s, p) ⋈ N3(s, q, bid, before, behind) ⋈ (q > p - 60) ⋈ (before <= p - 60) ⋈ (q <= p) ⋈ (behind > p)

N3 has a row for each time, with the span of times around it in which its bid is the highest. The highest bid of the
minute is the one whose span reaches beyond the minute on both sides. EXISTS and NOT EXISTS of a higher bid than t.price
compare that one.
"""

from collections.abc import Iterator
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.base.types import BOOLEAN
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.expressions import (
    MIRRORED,
    OPPOSITE,
    Call,
    Column,
    Expr,
    are_stored_alike,
    columns,
    conjunction,
    disjunction,
    is_null,
    not_null,
    substitute,
)
from squallpy.logical.monotonicity import FALLING, RISING, STEADY, direction
from squallpy.optimizer.calculus.clamp_existence_counts import counts_only_existence, has_plain_items
from squallpy.optimizer.pass_manager import PassContext
from squallpy.program.auxiliary.adjacent_pairs import AdjacentPairs
from squallpy.program.auxiliary.groups import Groups
from squallpy.program.auxiliary.properties import bounded, implies, in_order, is_domain, needed, only_adds
from squallpy.program.auxiliary.range_extreme_spans import RangeExtremeSpans
from squallpy.program.auxiliary.relation import AnyAuxiliaryKind, AuxiliaryRelation, auxiliary_name
from squallpy.program.auxiliary.skyline import Skyline
from squallpy.program.calculus import Cmp, Factor, Rel, rename_factor, variables
from squallpy.program.components import prune
from squallpy.program.output_spec import Measure
from squallpy.program.trigger_program import Lowered
from squallpy.program.views import Monomial, View, index_atoms

_NEAR = {"min": (">", ">="), "max": ("<", "<=")}  # comparisons of candidate values with the given one
_FURTHER = {"min": FALLING, "max": RISING}  # direction of predicates that all values fail if the extreme fails
_ENDS = {
    ">": ">=",
    ">=": ">",
    "<": "<=",
    "<=": "<",
}  # comparison of the given value with the neighbour on its other side

Relations = tuple[AuxiliaryRelation, ...]


@dataclass(frozen=True, slots=True)
class _ExtremeMatch:
    """A term domain(k, p) ⋈ rest(k, x) ⋈ predicates(x, p) whose result depends on one extreme x.

    It is the least or greatest x that passes: next to the bound `near` (x op e(p)), or of all.
    """

    aux: AuxiliaryRelation
    term: Monomial
    domain: Rel
    definition: AuxiliaryRelation  # of the domain
    other_factors: Monomial
    keys: tuple[Column, ...]  # of the rest: k, x
    predicates: tuple[Factor, ...]
    function: str
    near: tuple[str, Expr] | None

    @property
    def x(self) -> Column:
        return self.keys[-1]

    def make_relations(self, names: Iterator[str], ids: Iterator[Column]) -> tuple[Relations, tuple[Monomial, ...]]:
        """Make the auxiliary relation of the deciding values, and the term over it: each group's extreme, or all
        values with neighbours."""
        name = next(names)
        *group, x = self.keys
        titles = [f"k{i}" for i in range(1, len(self.keys))]
        fields = [Field(title, key.type, key.nullable) for title, key in zip(titles, group, strict=True)]
        items: list[tuple[str, Expr]] = list(zip(titles, group, strict=True))
        output = replace(self.aux.output, measures=(), aggregated_key=None, single=False)
        view = View(f"G_{name.upper()}", self.keys, (self.other_factors,))
        kind: AnyAuxiliaryKind = Groups()
        body = [self.domain, *self.predicates]
        if self.near:
            op, given = self.near
            fields += [Field("value", x.type, False), Field("next" if op in ("<", "<=") else "previous", x.type)]
            value, other = x, _with_name_and_type(next(ids), fields[-1])
            items += [("value", x), (other.name, other)]
            body.append(Cmp(bounded(_ENDS[op], given, other)))
            kind = AdjacentPairs(x, other, op in ("<", "<="))
            titles.append("value")
        else:
            value = replace(next(ids), name=self.function, type=x.type, nullable=True)
            fields.append(Field(self.function, x.type))
            items.append((self.function, value))
            output = replace(output, measures=(Measure(self.function, value, (), ()),), aggregated_key=x)
        stream = self.aux.relation.stream
        relation = Relation(name, tuple(fields), stream, "view", primary_key=tuple(titles))
        aux = AuxiliaryRelation(relation, view, replace(output, items=tuple(items)), kind)
        bound = {v.id: x if v == value else v for _, v in items if isinstance(v, Column)}
        body.insert(1, Rel(relation, tuple((title, bound[v.id]) for title, v in items if isinstance(v, Column))))
        return (aux,), (Monomial(tuple(body), self.term.lanes),)


@dataclass(frozen=True, slots=True)
class _PrefixExtreme(_ExtremeMatch):
    """A term of rest(k, x, v) whose result depends on the extreme v among the x on one side of e(p)."""

    nulls: Monomial | None = None  # the term of rows whose v is NULL

    def make_relations(self, names: Iterator[str], ids: Iterator[Column]) -> tuple[Relations, tuple[Monomial, ...]]:
        """Make the auxiliary relations of the skyline and of the neighbours on it, and the term over these."""
        assert self.near is not None
        name, stream, (op, _) = next(names), self.aux.relation.stream, self.near
        titles = (*(f"k{i}" for i in range(1, len(self.keys) - 1)), "at", "value")
        items = tuple(zip(titles, self.keys, strict=True))
        fields = tuple(Field(t, c.type, c.nullable and t not in ("at", "value")) for t, c in items)
        relation = Relation(name, fields, stream, "view", primary_key=titles[:-1])
        output = replace(self.aux.output, measures=(), aggregated_key=None, single=False, items=items)
        line = Skyline(self.keys[-2], self.keys[-1], op in ("<", "<="), self.function == "max")
        skyline = AuxiliaryRelation(relation, View(f"G_{name.upper()}", self.keys, (self.other_factors,)), output, line)

        along = Monomial((Rel(relation, items[:-1]),), ((),))
        beside = _ExtremeMatch(
            replace(self.aux, output=replace(output, count=0)), self.term, self.domain, self.definition, along,
            self.keys[:-1], self.predicates, self.function, self.near,
        )  # fmt: skip
        ((between,), (term,)) = beside.make_relations(names, ids)
        term = Monomial((*term.body, Rel(relation, items)), self.term.lanes)
        return (skyline, between), (term,) if self.nulls is None else (term, self.nulls)


@dataclass(frozen=True, slots=True)
class _RangeExtreme(_ExtremeMatch):
    """A term of rest(k, x, v) whose result depends on the extreme v among the x between the bounds `low` and `high`."""

    low: Call
    high: Call

    def make_relations(self, names: Iterator[str], ids: Iterator[Column]) -> tuple[Relations, tuple[Monomial, ...]]:
        """Make the auxiliary relation of the spans, and the term over it."""
        name, stream, (x, v) = next(names), self.aux.relation.stream, self.keys[-2:]
        before, behind = (Column(next(ids).id, title, x.type, True) for title in ("before", "behind"))
        titles = (*(f"k{i}" for i in range(1, len(self.keys) - 1)), "at", "value", "before", "behind")
        items = tuple(zip(titles, (*self.keys, before, behind), strict=True))
        fields = tuple(Field(t, c.type, c.nullable and t != "at") for t, c in items)
        relation = Relation(name, fields, stream, "view", primary_key=titles[:-3])
        output = replace(self.aux.output, measures=(), aggregated_key=None, single=False, items=items)
        spans = RangeExtremeSpans(x, v, before, behind, self.function == "max")
        aux = AuxiliaryRelation(relation, View(f"G_{name.upper()}", self.keys, (self.other_factors,)), output, spans)
        outside = (Cmp(_is_beyond(self.low, x, before)), Cmp(_is_beyond(self.high, x, behind)))
        body = (self.domain, Rel(relation, items), *self.predicates, *outside)
        return (aux,), (Monomial(body, self.term.lanes),)


def rewrite_extremes(lowered: Lowered, context: PassContext) -> Lowered:
    """Replace pairs that are only searched for an extreme by the one or two values that decide it.

    An auxiliary relation that says nothing else is what its users join themselves; one that also says where there is
    none has two candidates at most, where it had all. Several extremes are split, if one value decides each.
    """
    views, auxiliary = lowered.views, lowered.auxiliary
    taken = {a.relation.name for v in (*views, *(n.view for n in auxiliary)) for a in v.atoms}
    taken |= {n.relation.name for n in auxiliary}
    ids = (Column(id, "x", BOOLEAN) for id in context.ids)
    seen_relations = set[Relation]()

    def names() -> Iterator[str]:
        while True:
            name = auxiliary_name(taken)
            taken.add(name)
            yield name

    for number in reversed(range(len(auxiliary))):
        parts = _split_extremes(auxiliary[number], auxiliary, names())
        if len(parts) > 1:
            auxiliary = (*auxiliary[:number], *parts, *auxiliary[number + 1 :])
            views = tuple(_of_parts(view, parts) for view in views)
            auxiliary = tuple(replace(aux, view=_of_parts(aux.view, parts)) for aux in auxiliary)
    while found := next(_all_matches(views, auxiliary, seen_relations), None):
        values, terms = found.make_relations(names(), ids)
        seen_relations |= {aux.relation for aux in values}
        every = (new for t in found.aux.view.terms for new in (terms if t == found.term else (t,)))
        rewritten = replace(found.aux.view, terms=tuple(every))
        auxiliary = tuple(replace(n, view=rewritten) if n is found.aux else n for n in (*auxiliary, *values))
        whole = len(rewritten.terms) == 1 and (is_domain(found.aux) or found.aux.output.aggregated_key)
        if has_plain_items(found.aux) and whole and variables(found.domain) <= {*rewritten.keys}:
            views = tuple(_inline(view, found, rewritten.terms[0], ids) for view in views)
            auxiliary = tuple(replace(n, view=_inline(n.view, found, rewritten.terms[0], ids)) for n in auxiliary)
        auxiliary = needed(views, in_order(auxiliary))
    return replace(lowered, views=views, auxiliary=auxiliary)


def _all_matches(
    views: tuple[View, ...], auxiliary: Relations, seen_relations: set[Relation]
) -> Iterator[_ExtremeMatch]:
    uses = index_atoms((*views, *(aux.view for aux in auxiliary)))
    for aux in auxiliary:
        only_existence = counts_only_existence(aux, uses[aux.relation.name])
        yield from _match_extremes(aux, auxiliary, seen_relations, only_existence)


def _split_extremes(aux: AuxiliaryRelation, auxiliary: Relations, names: Iterator[str]) -> Relations:
    """Split several extremes into one relation for each that one value decides, and one for the others.

    N3(k, p, most, least)   →   N3(k, p, most), N4(k, p, least)
    """
    output = aux.output
    if (
        len(output.measures) < 2
        or not output.aggregated_key
        or not has_plain_items(aux)
        or output.having
        or output.times
    ):
        return (aux,)
    alone = [
        (m,)
        for m in output.measures
        if any(_match_extremes(_keep_extremes(aux, (m,), aux.relation.name), auxiliary, set()))
    ]
    rest = tuple(m for m in output.measures if (m,) not in alone)
    first, *more = (*alone, rest) if rest else alone
    return _keep_extremes(aux, first, aux.relation.name), *(
        _keep_extremes(aux, measures, next(names)) for measures in more
    )


def _keep_extremes(aux: AuxiliaryRelation, measures: tuple[Measure, ...], name: str) -> AuxiliaryRelation:
    """Keep some of the extremes."""
    others = {m.column for m in aux.output.measures if m not in measures}
    items = tuple((title, expr) for title, expr in aux.output.items if expr not in others)
    fields = tuple(f for f in aux.relation.fields if f.name in dict(items))
    relation, view = replace(aux.relation, name=name, fields=fields), replace(aux.view, name=f"G_{name.upper()}")
    return replace(aux, relation=relation, view=view, output=replace(aux.output, measures=measures, items=items))


def _of_parts(view: View, parts: Relations) -> View:
    """Replace atoms of a split relation by its parts; the first one keeps its name."""

    def atoms(whole: Rel) -> Iterator[Rel]:
        for part in parts:
            fields = tuple((title, v) for title, v in whole.fields if part.relation.field(title))
            own = {title for title, _ in fields}.difference(part.relation.primary_key)
            if own or (part is parts[0] and {*dict(whole.fields)} <= {*part.relation.primary_key}):
                yield Rel(part.relation, fields)

    terms = []
    for term in view.terms:
        body = (
            (*atoms(f),) if isinstance(f, Rel) and f.relation.name == parts[0].relation.name else (f,)
            for f in term.body
        )
        terms.append(replace(term, body=tuple(f for some in body for f in some)))
    return replace(view, terms=tuple(terms))


def _match_extremes(
    aux: AuxiliaryRelation, auxiliary: Relations, seen_relations: set[Relation], only_existence: bool = False
) -> Iterator[_ExtremeMatch]:
    """Find the terms that one value decides, and that do not read relations `seen_relations` for such terms.

    `only_existence`: the counts of the relation are only compared with 0.
    """
    output = aux.output
    only_existence = only_existence or is_domain(aux)
    functions = ("max", "min") if only_existence else tuple(m.function for m in output.measures)
    if not {*functions} <= _NEAR.keys():
        return  # of the values at a share
    if output.single or not only_adds(aux) or not (only_existence or (output.aggregated_key and len(functions) == 1)):
        return
    domains = {n.relation.name: n for n in auxiliary if is_domain(n)}
    for term in aux.view.terms if not only_existence else (t for t in aux.view.terms if not any(t.lanes)):
        for domain in (atom for atom in term.atoms if atom.relation.name in domains):
            others, known = [f for f in term.body if f is not domain], variables(domain)
            own = known.difference(*(variables(f) for f in others if isinstance(f, Rel)))
            predicates = tuple(f for f in others if variables(f) & own)
            read = frozenset().union(*map(variables, predicates)) - known
            x, definition = next(iter(read), output.aggregated_key), domains[domain.relation.name]
            if not own or x is None or not {x, output.aggregated_key or x}.isdisjoint(known):
                continue
            if not any(isinstance(f, Rel) for f in others):
                continue  # a constant: there are no values to choose from
            if output.aggregated_key and not output.aggregated_key.type.is_held_in_order:
                continue
            if any(isinstance(f, Rel) and f.relation in seen_relations and (read | {x}) & variables(f) for f in others):
                continue
            rest = [f for f in others if f not in predicates]
            if (output.aggregated_key and x != output.aggregated_key) or len(read) > 1:
                yield from _match_ranges(aux, term, domain, definition, rest, predicates, read)
                continue
            more = [key for key in aux.view.keys if key not in known and key != output.aggregated_key]
            if not x.type.is_held_in_order or x in more or (more and output.aggregated_key):
                continue
            keys = (*sorted(known - own, key=lambda v: v.id), *more, x)
            # NB: if x is not read, a row with a NULL counts as existing, too
            body = _restrict_to_known(rest, (x,) if x in read else (), keys, term)
            ways = {function: found for function in functions if (found := _ways(predicates, x, function)) is not None}
            for function in sorted(ways, key=lambda function: len(ways[function])):
                if len(ways[function]) < 2:
                    near = next(iter(ways[function]), None)
                    yield _ExtremeMatch(aux, term, domain, definition, body, keys, predicates, function, near)


def _match_ranges(
    aux: AuxiliaryRelation, term: Monomial, domain: Rel, definition: AuxiliaryRelation, rest: list[Factor],
    predicates: tuple[Factor, ...], read: frozenset[Column],
) -> Iterator[_PrefixExtreme | _RangeExtreme]:  # fmt: skip
    """Match a term that depends on the extreme value of a prefix, or between two bounds, or on comparing that
    extreme."""
    known, over = variables(domain), aux.output.aggregated_key
    for x, v, function in _roles(aux, predicates, read):
        unknown = Cmp(is_null(v))
        if unknown in rest or not x.type.is_held_in_order or not {*aux.view.keys} <= known | {v}:
            continue
        group = known & frozenset().union(*(variables(f) for f in rest if isinstance(f, Rel)))
        keys = (*sorted(group, key=lambda v: v.id), x, v)
        moving = [f for f in predicates if not isinstance(f, Cmp) or direction(f.predicate, x) != STEADY]
        near = _comparison_with(moving[0], x) if len(moving) == 1 and isinstance(moving[0], Cmp) else None
        if bounds := _bounds(moving, x):
            body = _restrict_to_known(rest, (x,) if over else (x, v), keys, term)
            yield _RangeExtreme(aux, term, domain, definition, body, keys, predicates, function, None, *bounds)
        elif near:
            body = _restrict_to_known(rest, (x, v), keys, term)
            nulls = Monomial((*term.body, unknown), term.lanes) if over and v.nullable else None
            yield _PrefixExtreme(aux, term, domain, definition, body, keys, predicates, function, near, nulls)


def _roles(
    aux: AuxiliaryRelation, predicates: tuple[Factor, ...], read: frozenset[Column]
) -> Iterator[tuple[Column, Column, str]]:
    """Yield the column x that selects values, the values v, and the extreme of v that decides.

    In an EXISTS it is the v whose predicates all go the same way, none reading x as well.
    """
    if aux.output.aggregated_key:
        for x in read if len(read) == 1 else ():
            yield x, aux.output.aggregated_key, aux.output.measures[0].function
        return
    for v in sorted(read, key=lambda v: v.id) if len(read) == 2 else ():
        (x,) = read - {v}
        ways = {direction(f.predicate, v) if isinstance(f, Cmp) else None for f in predicates if v in variables(f)}
        apart = not any({x, v} <= variables(f) for f in predicates)
        for function in (function for function, way in _FURTHER.items() if ways == {way}):
            if apart and v.type.is_held_in_order:
                yield x, v, function


def _restrict_to_known(
    rest: list[Factor], values: tuple[Column, ...], keys: tuple[Column, ...], term: Monomial
) -> Monomial:
    """Restrict a body to values that are not NULL."""
    body = (*rest, *(Cmp(not_null(v)) for v in values if v.nullable))
    return Monomial(prune(body, keys, term.lanes), term.lanes)


def _ways(predicates: tuple[Factor, ...], x: Column, function: str) -> list[tuple[str, Expr]] | None:
    """List the comparisons of x with the given value; None if a value other than the extreme might decide."""
    near = []
    for factor in predicates:
        if not isinstance(factor, Cmp):
            return None
        if direction(factor.predicate, x) not in (_FURTHER[function], STEADY):
            way = _comparison_with(factor, x)
            if way is None or way[0] not in _NEAR[function]:
                return None
            near.append(way)
    return near


def _bounds(moving: list[Factor], x: Column) -> tuple[Call, Call] | None:
    """Find the one comparison that bounds x from below, and the one from above; None if there are others."""
    found: dict[int | None, Call] = {}
    for factor in moving:
        match factor:
            case Cmp(Call("<" | "<=" | ">" | ">=") as predicate):
                found[direction(predicate, x)] = predicate
    return (found[RISING], found[FALLING]) if len(moving) == 2 and found.keys() == {RISING, FALLING} else None


def _is_beyond(bound: Call, x: Column, end: Column) -> Expr:
    """Build `end IS NULL OR NOT bound(end)`, where bound(x) is TRUE for some x, so that nothing else in it is NULL."""
    known = (not_null(c) for c in sorted(columns(bound) - {x}, key=lambda c: c.id))  # NB: a user's may be nullable
    out = Call(OPPOSITE[bound.name], bound.args, BOOLEAN, True)
    return disjunction((conjunction((is_null(end), *known)), substitute(out, {x.id: end})))


def _comparison_with(factor: Cmp, x: Column) -> tuple[str, Expr] | None:
    """Match x op e, where the values of e are stored as those of x are, as (op, e)."""
    match factor.predicate:
        case Call("<" | "<=" | ">" | ">=" as op, (a, b)) if x in (a, b):
            way, other = (str(op), b) if a == x else (MIRRORED[op], a)
            if x not in columns(other) and are_stored_alike(other.type, x.type) and not other.type.is_wide:
                return way, other
    return None


def _with_name_and_type(column: Column, field: Field | Column) -> Column:
    """Copy a column with the name and type of another."""
    return Column(column.id, field.name, field.type, field.nullable)


def _inline(view: View, found: _ExtremeMatch, term: Monomial, ids: Iterator[Column]) -> View:
    """Replace a relation's atom by its only term, which has each row once."""
    return replace(view, terms=tuple(_replace_atom(t, view.keys, found, term, ids) for t in view.terms))


def _replace_atom(
    user: Monomial, keys: tuple[Column, ...], found: _ExtremeMatch, term: Monomial, ids: Iterator[Column]
) -> Monomial:
    atom = next((a for a in user.atoms if a.relation == found.aux.relation), None)
    if atom is None:
        return user
    output, given = found.aux.output, dict(atom.fields)
    names: dict[int, Expr] = {e.id: given[t] for t, e in output.items if isinstance(e, Column) and t in given}
    for measure in output.measures:
        if measure.column.id in names:
            names[found.x.id] = names[measure.column.id]
    if isinstance(found, _RangeExtreme) and any(
        names.get(found.x.id) in variables(a) for a in user.atoms if a is not atom
    ):
        return user  # NB: any x may have that value, and only of the relation's rows is it known which do
    for v in sorted(frozenset().union(*map(variables, term.body)), key=lambda v: v.id):
        names.setdefault(v.id, _with_name_and_type(next(ids), v))
    body = [f for f in user.body if f is not atom]
    known = _is_implied(body, found, names)
    body += [rename_factor(f, names) for f in term.body if not (known and f is found.domain)]
    return _replace_atom(Monomial(prune(tuple(body), keys, user.lanes), user.lanes), keys, found, term, ids)


def _is_implied(body: list[Factor], found: _ExtremeMatch, names: dict[int, Expr]) -> bool:
    """True if the body implies that the values are in the domain."""
    definition, called = found.definition, dict(found.domain.fields)
    titles = {title for title, _ in definition.output.items}
    if len(definition.view.terms) > 1 or not has_plain_items(definition) or not titles <= called.keys():
        return False
    keys = {expr.id: substitute(called[t], names) for t, expr in definition.output.items if isinstance(expr, Column)}
    return implies(body, definition.view.terms[0].body, keys)
