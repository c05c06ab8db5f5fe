"""Band joins of a plan: two columns whose difference every join of the rows of a grid with its columns bounds.

    ΔR(a, x) → range M_S(b, y: y >= x − 1, y <= x + 2)    →   R.x less S.y is from −2 to 1

Only then may tuples be partitioned by ranges: on a grid all pairs meet, in ranges those that the band allows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.base.types import Kind, Type
from squallpy.logical.expressions import Call, Cast, Column, Expr, Literal, columns, conjuncts
from squallpy.logical.isolate_column import split_difference
from squallpy.physical.joins.mapping import Side
from squallpy.physical.plan import BandKeys, BandPlan, FilterStep, Lookup, Plan, Terms, Update
from squallpy.program.views import View

RelationField = tuple[str, str]  # a relation's
_Keys = dict[int, Column]  # of a view or delta that a statement reads: its keys by position


@dataclass(frozen=True, slots=True)
class _Found:
    """A band that a statement tests, with the fields that it compares, and those that it equates."""

    fields: tuple[RelationField, RelationField]
    low: Terms
    high: Terms
    equal: frozenset[tuple[RelationField, RelationField]]


def find_band(plan: Plan) -> BandPlan | None:
    """Find the band that all statements test which join rows of the grid with columns, if there is one."""
    sides = {view.view: view.side for view in plan.on_grid}
    sends = [send for stage in (plan.reading, *plan.stages) for send in stage.sends if send.side is not None]
    sides |= {send.name: send.side for send in sends if send.side is not None}
    fields = _fields(plan)
    if any(send.source not in fields for send in sends):
        return None
    fields |= {send.name: fields[send.source] for send in sends}
    found: list[_Found] | None = None
    forms_pairs = False
    for update in (step for stage in plan.stages for step in stage.steps if isinstance(step, Update)):
        refs = [(name, keys) for name, keys in _refs(plan, update) if name in sides]
        if refs and update.delta not in sides:
            return None
        if {sides[name] for name, _ in refs} == {*Side}:
            here = list(_bands(update, refs, sides, fields))
            forms_pairs |= any(isinstance(step, Lookup) and step.method != "sum" for step in update.steps)
            found = here if found is None else [both for one in found for other in here if (both := _meet(one, other))]
    for each in found or ():
        keys = {name: _keys_of(sides[name], fields[name], each) for name in fields if name in sides}
        if all(keys.values()):
            keys |= {send.source: keys[send.name] for send in sends if send.source not in keys}
            (r, x), (s, y) = each.fields
            type = next(v.type for of in fields.values() for v, own in of if each.fields[0] in own)
            placed = tuple((name, found) for name, found in keys.items() if found)
            return BandPlan(
                (f"{r}.{x}", f"{s}.{y}"), each.low, each.high, type.kind is Kind.DOUBLE, forms_pairs, placed
            )
    return None


def _fields(plan: Plan) -> dict[str, list[tuple[Column, frozenset[RelationField]]]]:
    """List the keys of each view and delta, with the fields that each is."""
    deltas = [delta for feed in plan.feeds for delta in feed.deltas]
    return {view.name: list(_fields_of(view)) for view in (*plan.program.views, *deltas)}


def _fields_of(view: View) -> Iterator[tuple[Column, frozenset[RelationField]]]:
    for key in view.keys:
        yield key, frozenset((atom.relation.name, name) for atom in view.atoms for name, v in atom.fields if v == key)


def _refs(plan: Plan, update: Update) -> Iterator[tuple[str, _Keys]]:
    """Yield what a statement reads, with the variables of its keys."""
    yield update.delta, dict(enumerate(update.variables))
    orders = {pool.name: pool.orders for pool in (*plan.pools, *plan.deltas)}
    for step in update.steps:
        if isinstance(step, Lookup):
            keys = dict((*step.bound_keys, *step.binds))
            if step.range:
                order = orders[step.source][step.index]
                keys[order.columns[order.equal]] = step.range.variable
            yield step.source, keys


def _bands(
    update: Update,
    refs: list[tuple[str, _Keys]],
    sides: Mapping[str, Side],
    fields: Mapping[str, list[tuple[Column, frozenset[RelationField]]]],
) -> Iterator[_Found]:
    """Yield the bands that a statement tests."""
    of = {side: dict[Column, frozenset[RelationField]]() for side in Side}
    for name, keys in refs:
        for position, variable in keys.items():
            known = of[sides[name]].get(variable, frozenset())
            of[sides[name]][variable] = known | fields[name][position][1]
    shared = [v for v in of[Side.R] if v in of[Side.S]]
    equal = frozenset((a, b) for v in shared for a in of[Side.R][v] for b in of[Side.S][v])
    tests = [test for predicate in _predicates(update) for test in conjuncts(predicate)]
    for x, xs in of[Side.R].items():
        for y, ys in of[Side.S].items():
            if x != y and _are_alike(x.type, y.type) and x.type.is_held_in_order and not x.type.is_wide:
                bounds = dict[bool, Terms]()
                for test in tests:
                    bounds |= dict(_bounds(test, x, y))
                if len(bounds) == 2:
                    yield from (_Found((a, b), bounds[False], bounds[True], equal) for a in xs for b in ys)


def _are_alike(a: Type, b: Type) -> bool:
    """True if keys of both types are in the same unit, as far as their kinds tell."""
    return a.kind is b.kind or (a.is_integer and b.is_integer)


def _predicates(update: Update) -> Iterator[Expr]:
    for step in update.steps:
        match step:
            case FilterStep(predicate):
                yield predicate
            case Lookup(range=ranged) if ranged:
                yield from (each for each in (ranged.rising, ranged.falling) if each is not None)


def _bounds(test: Expr, x: Column, y: Column) -> Iterator[tuple[bool, Terms]]:
    """Yield the bounds of x less y that a comparison sets, lower ones as False and upper ones as True."""
    match test:
        case Call("<" | "<=", (Call("abs", (inner,)), limit)) | Call(">" | ">=", (limit, Call("abs", (inner,)))):
            found = split_difference(inner, limit, y.type)  # |d| <= c: d − c <= 0 and −d − c <= 0
            mirrored = found and split_difference(Call("negate", (inner,), inner.type, inner.nullable), limit, y.type)
            for terms in (found, mirrored):
                yield from _bound(terms or [], x, y)
        case Call("<" | "<=", (a, b)) | Call(">" | ">=", (b, a)):
            yield from _bound(split_difference(a, b, y.type) or [], x, y)


def _bound(terms: list[tuple[int, Expr]], x: Column, y: Column) -> Iterator[tuple[bool, Terms]]:
    """Yield the bound that a sum of terms, which is at most 0, sets for x less y."""
    rest = [(sign, term) for sign, term in terms if term not in (x, y)]
    signs = {term: sign for sign, term in terms if term in (x, y)}
    if len(signs) == 2 and len(terms) == len(rest) + 2 and signs[x] == -signs[y] and all(map(_is_constant, rest)):
        yield signs[x] > 0, tuple((-signs[x] * sign, term) for sign, term in rest)


def _is_constant(term: tuple[int, Expr]) -> bool:
    """True if it has no columns, and is not NULL."""
    _, expr = term
    while isinstance(expr, Cast):
        expr = expr.arg
    if isinstance(expr, Literal):
        return expr.value is not None
    return isinstance(expr, Call) and expr.name == "negate" and not columns(expr) and _is_constant((1, expr.args[0]))


def _meet(one: _Found, other: _Found) -> _Found | None:
    """Find the band that both statements test, with what both equate."""
    if (one.fields, one.low, one.high) != (other.fields, other.low, other.high):
        return None
    return replace(one, equal=one.equal & other.equal)


def _keys_of(side: Side, keys: list[tuple[Column, frozenset[RelationField]]], found: _Found) -> BandKeys | None:
    """Find the positions of the banded key and of the equated ones; None if the band is not among the keys."""
    banded = next((i for i, (_, of) in enumerate(keys) if found.fields[side] in of), None)
    if banded is None:
        return None
    pairs = sorted(found.equal)
    equal = [next((i for i, (_, of) in enumerate(keys) if pair[side] in of), None) for pair in pairs]
    if None in equal:
        return None
    return BandKeys(banded, tuple(i for i in equal if i is not None))
