"""Unique keys of relations, and which variables they determine.

N1(p, avg) has a row for each p    →    ΔL(p) ⋈ M_N1(p, avg) finds one
"""

from collections.abc import Iterable, Mapping

from squallpy.logical.expressions import Column, columns
from squallpy.program.calculus import Assign, Rel
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.views import Monomial, View

Keys = Mapping[str, tuple[str, ...]]  # fields, by relation


def known_keys(program: TriggerProgram) -> Keys:
    """Find the unique keys of relations, where they are known.

    NB: data may break a declared PRIMARY KEY, so this is for costs; for answers there is `certain_keys`.
    """
    return {r.name: r.primary_key for r in program.relations if r.primary_key} | certain_keys(program)


def certain_keys(program: TriggerProgram) -> dict[str, tuple[str, ...]]:
    """Find the unique keys of auxiliary relations, which hold whatever the data."""
    keys = ((aux.relation.name, aux.unique_key) for aux in program.auxiliary)
    return {name: key for name, key in keys if key is not None}


def finds_one(view: View, bound: Iterable[Column], keys: Keys) -> bool:
    """True if the variables in `bound` leave at most one record of the view."""
    if len(view.terms) > 1:
        return False
    return set(view.keys) <= determined(view.terms[0], bound, keys)


def determined(term: Monomial, bound: Iterable[Column], keys: Keys) -> set[Column]:
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
