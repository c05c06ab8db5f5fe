"""Unique keys of relations, and hence the lookups that find at most one record.

N1(p, avg) has a row for each p    →    ΔL(p) ⋈ M_N1(p, avg) finds one
"""

from collections.abc import Iterable, Iterator, Mapping

from squallpy.logical.expressions import Call, Column, columns
from squallpy.physical.plan import UniqueView
from squallpy.program.auxiliary.kind import RowSearch
from squallpy.program.calculus import Assign, Cmp, Factor, Rel
from squallpy.program.trigger_program import Program
from squallpy.program.views import Monomial, View

Keys = Mapping[str, tuple[str, ...]]  # fields, by relation


def known_keys(program: Program) -> Keys:
    """Find the unique keys of relations, where they are known.

    NB: data may break a declared PRIMARY KEY, so this is for costs; for answers there is `certain_keys`.
    """
    return {r.name: r.primary_key for r in program.relations if r.primary_key} | certain_keys(program)


def certain_keys(program: Program) -> dict[str, tuple[str, ...]]:
    """Find the unique keys of auxiliary relations, which hold whatever the data."""
    keys = ((aux.relation.name, aux.unique_key) for aux in program.auxiliary)
    return {name: key for name, key in keys if key is not None}


def unique_views(program: Program) -> Iterator[UniqueView]:
    """Find the views in which a count above 1 shows that data break a PRIMARY KEY.

    These are the views of one relation by its key, and those whose auxiliary relations rely on it.
    """
    auxiliary = {aux.relation.name for aux in program.auxiliary}
    declared = {r.name: r.primary_key for r in program.relations if r.primary_key and r.name not in auxiliary}
    relied_on = {aux.materialised.name for aux in program.auxiliary if aux.kind.relies_on_primary_key}
    for view in (v for v in program.views if len(v.terms) == 1 and v.terms[0].lanes[0] == ()):
        (term,) = view.terms
        if not term.atoms or any(atom.relation.name not in declared for atom in term.atoms):
            continue
        atom, *others = term.atoms
        fields, key = dict(atom.fields), declared[atom.relation.name]
        whole = not others and {fields.get(name) for name in key} == set(view.keys)
        read = {v for each in term.atoms for _, v in each.fields}
        if whole or (view.name in relied_on and read <= _determined(term, view.keys, declared)):
            at = tuple((name, view.keys.index(v)) for name, v in fields.items() if name in key and v in view.keys)
            options = atom.relation.source.options
            yield UniqueView(view.name, options.get("path", ""), at, skips=options.get("on_error", "fail") != "fail")


def few_record_views(program: Program) -> frozenset[str]:
    """Return the views of auxiliary relations without groups alone, which have few rows."""
    few = {aux.relation.name for aux in program.auxiliary if not aux.kind.has_groups}
    return frozenset(v.name for v in program.views if v.atoms and all(a.relation.name in few for a in v.atoms))


def row_searches(program: Program, keys: Keys) -> dict[str, RowSearch]:
    """Return how a range finds one row of a group, by view that has a record for each row of an auxiliary relation."""
    auxiliary = {aux.relation: aux for aux in program.auxiliary}
    found = {}
    for view in (v for v in program.views if len(v.terms) == 1):
        for atom in (a for a in view.atoms if a.relation in auxiliary):
            aux = auxiliary[atom.relation]
            items = dict(aux.output.items)
            at = {items[title]: view.keys.index(v) for title, v in atom.fields if v in view.keys}
            search = aux.kind.search(at) if {*items.values()} <= {*at, *aux.kind.unsearched} else None
            if search and finds_one(view, [view.keys[i] for i in at.values()], keys):
                found[view.name] = search
    return found


def narrow_views(program: Program) -> frozenset[str]:
    """Find the views that lack rows of their relations because of predicates other than NOT NULL."""
    return frozenset(v.name for v in program.views if all(any(map(_narrows, term.body)) for term in v.terms))


def _narrows(factor: Factor) -> bool:
    match factor:
        case Cmp(Call("not", (Call("is_null"),))):
            return False
    return isinstance(factor, Cmp)


def foreign_keys(program: Program) -> frozenset[tuple[str, str]]:
    """Find (relation, field) that are declared a foreign key, or equated with another relation's primary key of one
    field.

    TPC-H Q17: {(lineitem, l_partkey)}: a part has few lineitems, however many there are of either.
    """
    keys = {r.name: r.primary_key[0] for r in program.relations if len(r.primary_key) == 1}
    found = {(r.name, ref.fields[0]) for r in program.relations for ref in r.references if len(ref.fields) == 1}
    for term in (t for view in (*program.results, *(aux.view for aux in program.auxiliary)) for t in view.terms):
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
