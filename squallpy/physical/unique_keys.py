"""Keys: what tells the rows of relations apart, and hence whether a lookup finds one record at most.

N1(p, avg) has a row for each p    →    ΔL(p) ⋈ M_N1(p, avg) finds one
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from squallpy.base.index_order import Heights
from squallpy.base.types import Kind
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Call, Column, Expr, columns
from squallpy.physical.plan import UniqueView
from squallpy.program.calculus import Assign, Cmp, Factor, Rel
from squallpy.program.program import Monomial, Nest, Program, View

Keys = Mapping[str, tuple[str, ...]]  # fields, by relation


class Beside(NamedTuple):
    """Positions of a view's keys that are the group of a value, the value, and its neighbour."""

    group: tuple[int, ...]
    value: int
    other: int


class Spanned(NamedTuple):
    """Positions of a view's keys that are the group of an x, the x, and the value of the span, with its ranking."""

    group: tuple[int, ...]
    x: int
    value: int
    heights: Heights


def known_keys(program: Program) -> Keys:
    """Find the fields that identify the rows of a relation, if known: of an auxiliary relation, its group keys.

    NB: data may break a declared PRIMARY KEY, so this is for costs; for answers there is `certain_keys`.
    """
    return {r.name: r.primary_key for r in program.relations if r.primary_key} | certain_keys(program)


def certain_keys(program: Program) -> dict[str, tuple[str, ...]]:
    """Find the fields that identify the rows of an auxiliary relation, whatever the data: its group keys."""
    return {nest.relation.name: _group(nest) for nest in program.nests if not (nest.running or nest.window)}


def unique_views(program: Program) -> Iterator[UniqueView]:
    """Find the views in which a count above 1 reveals that data violate a PRIMARY KEY.

    These are views of one relation by its key, and those whose rows LAG and LEAD find by it.
    """
    nests = {nest.relation.name for nest in program.nests}
    declared = {r.name: r.primary_key for r in program.relations if r.primary_key and r.name not in nests}
    adjacent = {nest.source.name for nest in program.nests if nest.neighbours and nest.source}
    for view in (v for v in program.views if len(v.terms) == 1 and v.terms[0].lanes[0] == ()):
        (term,) = view.terms
        if not term.atoms or any(atom.relation.name not in declared for atom in term.atoms):
            continue
        atom, *others = term.atoms
        fields, key = dict(atom.fields), declared[atom.relation.name]
        whole = not others and {fields.get(name) for name in key} == set(view.keys)
        read = {v for each in term.atoms for _, v in each.fields}
        if whole or (view.name in adjacent and read <= _determined(term, view.keys, declared)):
            at = tuple((name, view.keys.index(v)) for name, v in fields.items() if name in key and v in view.keys)
            options = atom.relation.source.options
            yield UniqueView(view.name, options.get("path", ""), at, skips=options.get("on_error") == "skip")


def views_of_intervals(program: Program) -> frozenset[str]:
    """Find the views with a record for each threshold interval, which are few: mostly one."""
    nests = {nest.relation.name for nest in program.nests if nest.running and not nest.running.group}
    return frozenset(v.name for v in program.views if v.atoms and all(a.relation.name in nests for a in v.atoms))


def views_of_neighbours(program: Program, keys: Keys) -> dict[str, Beside]:
    """Find the views with at most a record for each adjacent pair."""
    found = {}
    for view, nest, at in _rows_of(program, keys, {n.relation: n for n in program.nests if n.neighbours}):
        assert nest.neighbours
        value, other = at.pop(nest.neighbours.value), at.pop(nest.neighbours.other)
        found[view.name] = Beside(tuple(at.values()), value, other)
    return found


def views_of_spans(program: Program, keys: Keys) -> dict[str, Spanned]:
    """Find the views with a record for each span."""
    found = {}
    for view, nest, at in _rows_of(program, keys, {n.relation: n for n in program.nests if n.spans}):
        spans = nest.spans
        assert spans
        x, value, _, _ = (at.pop(column) for column in (spans.x, spans.value, spans.before, spans.behind))
        heights = Heights(spans.great, real=spans.value.type.kind is Kind.DOUBLE)
        found[view.name] = Spanned(tuple(at.values()), x, value, heights)
    return found


def _rows_of(
    program: Program, keys: Keys, nests: Mapping[Relation, Nest]
) -> Iterator[tuple[View, Nest, dict[Expr, int]]]:
    """Find the views with at most a record for each row of these relations, and the positions of the row's fields."""
    for view in (v for v in program.views if len(v.terms) == 1):
        for atom in (a for a in view.atoms if a.relation in nests):
            items = dict(nests[atom.relation].finish.items)
            at = {items[title]: view.keys.index(v) for title, v in atom.fields if v in view.keys}
            if len(at) == len(items) and finds_one(view, [view.keys[i] for i in at.values()], keys):
                yield view, nests[atom.relation], at


def narrow_views(program: Program) -> frozenset[str]:
    """Find the views that lack rows of their relations because of predicates other than NOT NULL."""
    return frozenset(v.name for v in program.views if all(any(map(_narrows, term.body)) for term in v.terms))


def _narrows(factor: Factor) -> bool:
    match factor:
        case Cmp(Call("not", (Call("is_null"),))):
            return False
    return isinstance(factor, Cmp)


def _group(nest: Nest) -> tuple[str, ...]:
    assert nest.source is not None
    line = nest.skyline or nest.spans
    group = {*nest.source.variables} - (nest.finish.beside | ({line.value} if line else set()))
    return tuple(title for title, expr in nest.finish.items if expr in group or expr == nest.finish.number)


def foreign_keys(program: Program) -> frozenset[tuple[str, str]]:
    """Find (relation, field) that are declared a foreign key, or equated with another relation's primary key of one
    field.

    TPC-H Q17: {(lineitem, l_partkey)}: a part has few lineitems, however many there are of either.
    """
    keys = {r.name: r.primary_key[0] for r in program.relations if len(r.primary_key) == 1}
    found = {(r.name, ref.fields[0]) for r in program.relations for ref in r.references if len(ref.fields) == 1}
    for term in (t for view in (program.result, *(nest.view for nest in program.nests)) for t in view.terms):
        named = {v: a.relation for a in term.atoms for name, v in a.fields if keys.get(a.relation.name) == name}
        found |= {
            (atom.relation.name, name)
            for atom in term.atoms
            for name, v in atom.fields
            if v in named and named[v] is not atom.relation
        }
    return frozenset(found)


def finds_one(view: View, bound: Iterable[Column], keys: Keys) -> bool:
    """True if the variables in `bound` leave at most one record of the view."""
    if len(view.terms) > 1:
        return False
    return set(view.keys) <= _determined(view.terms[0], bound, keys)


def _determined(term: Monomial, bound: Iterable[Column], keys: Keys) -> set[Column]:
    """Find the variables that have one value each, given those in `bound`."""
    known = set(bound)
    while True:
        more: set[Column] = set()
        for factor in term.body:
            match factor:
                case Rel(relation, fields, delta=False) if (key := keys.get(relation.name)) is not None:
                    by_name = dict(fields)
                    if all(name in by_name and by_name[name] in known for name in key):
                        more |= {v for _, v in fields}
                case Assign(variable, value) if columns(value) <= known:
                    more.add(variable)
        if more <= known:
            return known
        known |= more
