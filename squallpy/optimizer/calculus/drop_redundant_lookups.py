"""Removal of lookups of auxiliary relations that cannot fail and of which nothing is read."""

from dataclasses import replace

from squallpy.logical.expressions import Column, Expr
from squallpy.optimizer.passes import PassContext
from squallpy.program.auxiliary import implies, needed, only_adds
from squallpy.program.calculus import Assign, Factor, Rel
from squallpy.program.program import Lowered, Monomial, Nest, View


def drop_redundant_lookups(lowered: Lowered, _: PassContext) -> Lowered:
    """Drop lookups that only ask whether a group exists which must exist.

    T(k) ⋈ N1(k), N1(k, n) := Exists(R(k) + T(k))   →   T(k)
    T(k) ⋈ N1(),  N1(n) := a row, also over nothing  →   T(k)
    """
    view, nests = lowered.view, lowered.nests
    for known in (_is_one_row, _has_groups):
        by_name = {nest.relation.name: nest for nest in nests if known(nest)}
        view, nests = _rid(view, by_name), tuple(replace(nest, view=_rid(nest.view, by_name)) for nest in nests)
    return replace(lowered, view=view, nests=needed(view, list(nests)))


def _is_one_row(nest: Nest) -> bool:
    """True if it has one row from the first batch on, whatever its inputs hold."""
    return nest.by_group and nest.finish.single and not (nest.finish.having or nest.finish.times)


def _has_groups(nest: Nest) -> bool:
    """True if it has a row for each group that exists."""
    finish = nest.finish
    return nest.by_group and not (finish.having or finish.times or finish.single) and only_adds(nest)


def _rid(view: View, nests: dict[str, Nest]) -> View:
    return replace(view, terms=tuple(_without(term, nests) for term in view.terms))


def _without(term: Monomial, nests: dict[str, Nest]) -> Monomial:
    body = list(term.body)
    for atom in term.atoms:
        others = [f for f in body if f is not atom]
        if (nest := nests.get(atom.relation.name)) and _is_known(others, atom, nest):
            body = others
    return term if len(body) == len(term.body) else replace(term, body=tuple(body))


def _is_known(body: list[Factor], atom: Rel, nest: Nest) -> bool:
    """True if the body implies that the group of a lookup exists, and nothing else of it is read."""
    if nest.finish.single:
        return not atom.fields and any(isinstance(f, Rel) for f in body)
    made, group = dict(nest.finish.items), {*nest.view.keys} - nest.finish.beside
    names: dict[int, Expr] = {e.id: v for title, v in atom.fields if isinstance(e := made[title], Column)}
    if names.keys() != {key.id for key in group} or len(names) != len(atom.fields):
        return False
    definitions = (
        [f for f in term.body if not (isinstance(f, Assign) and f.variable in nest.finish.beside)]
        for term in nest.view.terms
    )
    return any(implies(body, definition, names) for definition in definitions)
