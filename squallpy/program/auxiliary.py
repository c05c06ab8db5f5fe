"""What rewritings of nests have in common: which domains there are, what is read of whom, in which order, and what a
nest says that is known."""

from collections.abc import Iterable
from dataclasses import replace

from squallpy.base.types import BOOLEAN
from squallpy.logical.expressions import Call, Column, Expr, conjunction, disjunction, is_null, not_null
from squallpy.program.calculus import MINUS, Assign, Cmp, Factor, Rel, renamed
from squallpy.program.program import Monomial, Nest, View


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


def without_known(view: View, nests: tuple[Nest, ...]) -> tuple[View, tuple[Nest, ...]]:
    """The query's view and its nests, without uses of nests that only ask whether a group is there which must be.

    T(k) ⋈ N1(k), N1(k, n) := Exists(R(k) + T(k))   →   T(k)
    T(k) ⋈ N1(),  N1(n) := a row, also over nothing  →   T(k)
    """
    for known in (_is_one_row, _has_groups):
        by_name = {nest.relation.name: nest for nest in nests if known(nest)}
        view, nests = _rid(view, by_name), tuple(replace(nest, view=_rid(nest.view, by_name)) for nest in nests)
    return view, needed(view, list(nests))


def _is_one_row(nest: Nest) -> bool:
    """Has it one row from the first batch on, whatever there is?"""
    return nest.by_group and nest.finish.single and not (nest.finish.having or nest.finish.times)


def _has_groups(nest: Nest) -> bool:
    """Has it a row for each group, if that is there?"""
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
    """Does it follow from the body that the group of a nest is there, of which nothing else is read?"""
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
