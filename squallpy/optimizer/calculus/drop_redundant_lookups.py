"""Removal of lookups of auxiliary relations that cannot fail and whose columns are not read."""

from dataclasses import replace

from squallpy.logical.expressions import Column, Expr
from squallpy.optimizer.pass_manager import PassContext
from squallpy.program.auxiliary.properties import implies, needed, only_adds
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Assign, Factor, Rel
from squallpy.program.trigger_program import Lowered
from squallpy.program.views import Monomial, View


def drop_redundant_lookups(lowered: Lowered, _: PassContext) -> Lowered:
    """Drop lookups that only ask whether a group exists which must exist.

    T(k) ⋈ N1(k), N1(k, n) := Exists(R(k) + T(k))   →   T(k)
    T(k) ⋈ N1(),  N1(n) := a row, also over nothing  →   T(k)
    """
    views, auxiliary = lowered.views, lowered.auxiliary
    for known in (_is_one_row, _has_groups):
        by_name = {aux.relation.name: aux for aux in auxiliary if known(aux)}
        views = tuple(_rid(view, by_name) for view in views)
        auxiliary = tuple(replace(aux, view=_rid(aux.view, by_name)) for aux in auxiliary)
    return replace(lowered, views=views, auxiliary=needed(views, list(auxiliary)))


def _is_one_row(aux: AuxiliaryRelation) -> bool:
    """True if it has one row from the first batch on, whatever there is."""
    return aux.is_by_group and aux.output.single and not (aux.output.having or aux.output.times)


def _has_groups(aux: AuxiliaryRelation) -> bool:
    """True if it has a row for each group that is there."""
    output = aux.output
    return aux.is_by_group and not (output.having or output.times or output.single) and only_adds(aux)


def _rid(view: View, auxiliary: dict[str, AuxiliaryRelation]) -> View:
    return replace(view, terms=tuple(_drop_lookup(term, auxiliary) for term in view.terms))


def _drop_lookup(term: Monomial, auxiliary: dict[str, AuxiliaryRelation]) -> Monomial:
    body = list(term.body)
    for atom in term.atoms:
        others = [f for f in body if f is not atom]
        if (aux := auxiliary.get(atom.relation.name)) and _is_known(others, atom, aux):
            body = others
    return term if len(body) == len(term.body) else replace(term, body=tuple(body))


def _is_known(body: list[Factor], atom: Rel, aux: AuxiliaryRelation) -> bool:
    """True if the body implies that the group exists, and no other column of it is read."""
    if aux.output.single:
        return not atom.fields and any(isinstance(f, Rel) for f in body)
    made, group = dict(aux.output.items), {*aux.view.keys} - aux.output.beside
    names: dict[int, Expr] = {e.id: v for title, v in atom.fields if isinstance(e := made[title], Column)}
    if names.keys() != {key.id for key in group} or len(names) != len(atom.fields):
        return False
    definitions = (
        [f for f in term.body if not (isinstance(f, Assign) and f.variable in aux.output.beside)]
        for term in aux.view.terms
    )
    return any(implies(body, definition, names) for definition in definitions)
