"""Properties of auxiliary relations for several passes: domains, implications, and whether they are read."""

from collections.abc import Iterable

from squallpy.base.types import BOOLEAN
from squallpy.logical.expressions import Call, Column, Expr, conjunction, disjunction, is_null, not_null
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import MINUS, Cmp, Factor, Rel, rename_factor
from squallpy.program.views import View


def is_domain(aux: AuxiliaryRelation) -> bool:
    """True if it has each of its rows once."""
    return aux.is_by_group and not aux.output.measures and aux.output.times is None


def implies(body: Iterable[Factor], domain: Iterable[Factor], names: dict[int, Expr]) -> bool:
    """True if a domain's definition is part of the body, its keys called as `names` say: what that leaves is in it."""
    factors = tuple(body)
    others = [f for f in domain if not isinstance(f, Rel)]

    def search(left: list[Rel], names: dict[int, Expr]) -> bool:
        if not left:
            return all(isinstance(f, Cmp) and rename_factor(f, names) in factors for f in others)
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


def only_adds(aux: AuxiliaryRelation) -> bool:
    """True if a group is there as soon as any of the terms of the view has it."""
    lanes = [term.lanes[aux.output.count] for term in aux.view.terms]
    return all(lane is not None and MINUS not in lane for lane in lanes)


def bounded(op: str, value: Expr, bound: Column) -> Expr:
    """Return bound IS NULL OR value >= bound, of a value that is not NULL."""
    known = (not_null(value),) if value.nullable else ()
    open_ = conjunction((is_null(bound), *known))
    return disjunction((open_, Call(op, (value, bound), BOOLEAN, True)))


def in_order(auxiliary: Iterable[AuxiliaryRelation]) -> list[AuxiliaryRelation]:
    """Order auxiliary relations, each after those that it reads."""
    known = {aux.relation.name: aux for aux in auxiliary}
    out: dict[str, AuxiliaryRelation] = {}

    def visit(aux: AuxiliaryRelation) -> None:
        for name in aux.reads:
            if name in known and name not in out:
                visit(known[name])
        out[aux.relation.name] = aux

    for name, aux in known.items():
        if name not in out:
            visit(aux)
    return list(out.values())


def needed(views: Iterable[View], auxiliary: list[AuxiliaryRelation]) -> tuple[AuxiliaryRelation, ...]:
    """Drop the auxiliary relations, given innermost first, that nothing reads for these views."""
    read = {atom.relation.name for view in views for atom in view.atoms}
    for aux in reversed(auxiliary):
        if aux.relation.name in read:
            read.update(aux.reads)
    return tuple(aux for aux in auxiliary if aux.relation.name in read)
