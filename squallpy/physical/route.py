"""Routing: relations are partitioned by one field each, or replicated to every partition.

    Q17:  lineitem → by l_partkey, part → by p_partkey, and with lineitem the nest of its averages

Joins are multilinear: if what is partitioned meets on one variable, partition p's triggers see its share of that and
all of the rest, and the partial results add up. So it is one exchange and one block of statements on every node,
whatever the query. A nest's rows are not sums, so its groups must be whole: the variable has to be one of its keys.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations

from squallpy.logical.expressions import Column
from squallpy.maintain.program import Monomial, Program, View
from squallpy.physical.plan import Route

Fields = dict[str, str]  # the field by which a relation is partitioned; the others are replicated


def choose_routes(program: Program, sizes: Mapping[str, int]) -> dict[str, Route]:
    """Routes that partition most tuples, by relation; empty if nothing can be partitioned.

    Without a variable to do it by, the largest relation is spread by its contents.
    """
    atoms = [atom for view in _definitions(program) for atom in view.atoms]
    nested = {nest.relation.name for nest in program.nests}
    read = {(a.relation.name, field) for a in atoms if a.relation.name not in nested for field, _ in a.fields}
    ordered = sorted(read, key=lambda pair: (-sizes.get(pair[0], 0), pair))
    best: Fields = {}
    for chosen in _seeds(program, ordered):
        for name, field in ordered:
            if name not in chosen and _spread(program, {**chosen, name: field}) is not None:
                chosen[name] = field
        if _weight(program, chosen, sizes) > _weight(program, best, sizes):
            best = chosen
    spread = _spread(program, best)
    if best and spread is not None:
        return {name: Route((field,)) for name, field in spread.items()}
    if program.nests or len(program.result.terms) > 1:
        return {}
    single = [a for a in atoms if sum(b.relation.name == a.relation.name for b in atoms) == 1]
    if not single:
        return {}
    largest = max(single, key=lambda a: (sizes.get(a.relation.name, 0), a.relation.name))
    return {largest.relation.name: Route(())}  # NB: an update's old and new row may part


def _seeds(program: Program, fields: list[tuple[str, str]]) -> Iterator[Fields]:
    """Fields that relations may be partitioned by; two where only both together may, as in R EXCEPT S."""
    alone = []
    for field in fields:
        if _spread(program, dict([field])) is not None:
            yield dict([field])
        else:
            alone.append(field)
    if any(len(view.terms) > 1 for view in _definitions(program)):
        for pair in combinations(alone, 2):
            if len(dict(pair)) == 2 and _spread(program, dict(pair)) is not None:
                yield dict(pair)


def _definitions(program: Program) -> tuple[View, ...]:
    return (*(nest.view for nest in program.nests), program.result)


def _spread(program: Program, fields: Fields) -> Fields | None:
    """The same with the nests that follow from it; None if an answer would be wrong."""
    known = dict(fields)
    for nest in program.nests:
        found = {_variable(term, known) for term in nest.view.terms}
        if found == {None}:
            continue
        (x, *others) = found
        title = next((title for title, expr in nest.finish.items if isinstance(x, Column) and expr == x), None)
        if others or title is None or x not in nest.view.keys:
            return None
        known[nest.relation.name] = title
    met = [_variable(term, known) for term in program.result.terms]
    return known if all(isinstance(x, Column) for x in met) else None


def _variable(term: Monomial, fields: Fields) -> Column | str | None:
    """The variable on which what is partitioned meets; None if nothing is, a text if it does not meet."""
    bound = {dict(a.fields).get(fields[a.relation.name]) for a in term.atoms if a.relation.name in fields}
    if len(bound) > 1 or bound == {None}:
        return "apart"
    return next(iter(bound), None)


def _weight(program: Program, fields: Fields, sizes: Mapping[str, int]) -> tuple[int, int, int, int]:
    """Tuples, relations, declared keys (which have most distinct values), and whether groups stay whole."""
    keys = sum(fields.get(r.name) in r.primary_key for r in program.relations)
    whole = sum(_variable(term, fields) in program.result.keys for term in program.result.terms)
    return (sum(sizes.get(name, 0) for name in fields), len(fields), keys, whole)
