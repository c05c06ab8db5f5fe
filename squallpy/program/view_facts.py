"""Facts about how many records views have, from their definitions."""

from collections.abc import Iterator

from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Call
from squallpy.program.auxiliary.kind import RowSearch
from squallpy.program.calculus import Cmp, Factor
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.unique_keys import Keys, finds_one


def few_record_views(program: TriggerProgram) -> frozenset[str]:
    """Return the views of auxiliary relations without groups alone, which have few rows."""
    few = {aux.relation.name for aux in program.auxiliary if not aux.kind.has_groups}
    return frozenset(v.name for v in program.views if v.atoms and all(a.relation.name in few for a in v.atoms))


def row_searches(program: TriggerProgram, keys: Keys) -> dict[str, RowSearch]:
    """Return how a range finds one row of a group, by view that has a record for each row of an auxiliary relation."""
    auxiliary = {aux.relation: aux for aux in program.auxiliary}
    found = {}
    for view in (v for v in program.views if len(v.terms) == 1):
        places = {v: i for i, v in enumerate(view.keys)}
        for atom in (a for a in view.atoms if a.relation in auxiliary):
            aux = auxiliary[atom.relation]
            items = dict(aux.output.items)
            at = {items[title]: places[v] for title, v in atom.fields if v in places}
            search = aux.kind.search(at) if {*items.values()} <= {*at, *aux.kind.unsearched} else None
            if search and finds_one(view, [view.keys[i] for i in at.values()], keys):
                found[view.name] = search
    return found


def narrow_views(program: TriggerProgram) -> frozenset[str]:
    """Find the views that lack rows of their relations because of predicates other than NOT NULL."""
    return frozenset(v.name for v in program.views if all(any(map(_narrows, term.body)) for term in v.terms))


def _narrows(factor: Factor) -> bool:
    match factor:
        case Cmp(Call("not", (Call("is_null"),))):
            return False
    return isinstance(factor, Cmp)


def foreign_keys(program: TriggerProgram) -> frozenset[tuple[str, str]]:
    """Find (relation, field) that are declared a foreign key, or equated with another relation's primary key of one
    field.

    TPC-H Q17: {(lineitem, l_partkey)}: a part has few lineitems, however many there are of either.
    """
    declared = {(r.name, ref.fields[0]) for r in program.relations for ref in r.references if len(ref.fields) == 1}
    return frozenset(declared).union((r, name) for r, name, other in _equated_keys(program) if r != other.name)


def stream_keys(program: TriggerProgram) -> frozenset[tuple[str, str]]:
    """Find (relation, field) that are a stream's primary key of one field, or equated with one.

    TPC-H Q5: (lineitem, l_suppkey), not (customer, c_nationkey): nations are a table.
    """
    return frozenset((r, name) for r, name, of in _equated_keys(program) if of.stream)


def _equated_keys(program: TriggerProgram) -> Iterator[tuple[str, str, Relation]]:
    """Yield the fields of relations that are, or are equated with, a primary key of one field, and whose."""
    keys = {r.name: r.primary_key[0] for r in program.relations if len(r.primary_key) == 1}
    for term in (t for view in (*program.results, *(aux.view for aux in program.auxiliary)) for t in view.terms):
        named = {v: a.relation for a in term.atoms for name, v in a.fields if keys.get(a.relation.name) == name}
        yield from (
            (atom.relation.name, name, named[v]) for atom in term.atoms for name, v in atom.fields if v in named
        )
