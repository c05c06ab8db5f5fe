"""Properties of auxiliary relations that several passes ask for: domains, implications, who reads whom."""

from collections.abc import Iterable

from squallpy.base.types import BOOLEAN
from squallpy.logical.expressions import Call, Column, Expr, conjunction, disjunction, is_null, not_null
from squallpy.program.calculus import MINUS, Cmp, Factor, Rel, renamed
from squallpy.program.program import Nest, View


def is_domain(nest: Nest) -> bool:
    """Has it each of its rows once?"""
    return nest.by_group and not nest.finish.measures and nest.finish.times is None


def implies(body: Iterable[Factor], domain: Iterable[Factor], names: dict[int, Expr]) -> bool:
    """Is a domain's definition part of the body, its keys called as `names` say? Then what the body leaves is in it."""
    factors = tuple(body)
    others = [f for f in domain if not isinstance(f, Rel)]

    def search(left: list[Rel], names: dict[int, Expr]) -> bool:
        if not left:
            return all(isinstance(f, Cmp) and renamed(f, names) in factors for f in others)
        first, *more = left
        for f in factors:
            if isinstance(f, Rel) and f.relation == first.relation:
                mine = dict(f.fields)
                found: dict[int, Expr] = {v.id: mine[t] for t, v in first.fields if t in mine}
                agree = len(found) == len(first.fields) and all(names.get(i, v) == v for i, v in found.items())
                if agree and search(more, names | found):
                    return True
        return False

    return search([f for f in domain if isinstance(f, Rel)], names)


def only_adds(nest: Nest) -> bool:
    """Is a group there if any of the terms of the nest's view has it?"""
    lanes = [term.lanes[nest.finish.count] for term in nest.view.terms]
    return all(lane is not None and MINUS not in lane for lane in lanes)


def bounded(op: str, value: Expr, bound: Column) -> Expr:
    """bound IS NULL OR value >= bound, of a value that is not NULL"""
    known = (not_null(value),) if value.nullable else ()
    open_ = conjunction((is_null(bound), *known))
    return disjunction((open_, Call(op, (value, bound), BOOLEAN, True)))


def in_order(nests: Iterable[Nest]) -> list[Nest]:
    """Innermost first: each nest behind those that it reads."""
    known = {nest.relation.name: nest for nest in nests}
    out: dict[str, Nest] = {}

    def visit(nest: Nest) -> None:
        for name in nest.reads:
            if name in known and name not in out:
                visit(known[name])
        out[nest.relation.name] = nest

    for name, nest in known.items():
        if name not in out:
            visit(nest)
    return list(out.values())


def needed(view: View, nests: list[Nest]) -> tuple[Nest, ...]:
    """Without the nests, innermost first, that nothing reads any more."""
    read = {atom.relation.name for atom in view.atoms}
    for nest in reversed(nests):
        if nest.relation.name in read:
            read |= nest.reads
    return tuple(nest for nest in nests if nest.relation.name in read)
