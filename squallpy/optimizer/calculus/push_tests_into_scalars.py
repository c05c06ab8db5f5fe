"""Replacement of a scalar subquery's value by the tests made on it, whose results change less often.

    R(a) ⋈ N2(rows, values) ⋈ (a IS NULL OR values < rows)      N2(rows, values) := M_S
 →  R(a) ⋈ N2(asked) ⋈ (a IS NULL OR asked)                     N2(asked) := (asked := M_S.1 < M_S.0)

Every row of S changes the count of rows, and each change would scan all of R. The result of the test seldom changes,
and an auxiliary relation's row that stays the same makes no delta. A condition that reads nothing else needs no such
relation: it filters the changes of the value.
"""

from collections.abc import Iterator
from dataclasses import replace

from squallpy.base.types import BOOLEAN
from squallpy.catalog.relation import Field
from squallpy.logical.expressions import Column, Expr, children, columns, rebuild, substitute
from squallpy.optimizer.pass_manager import PassContext
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Assign, Cmp, Factor, Rel, variables
from squallpy.program.components import bound_by
from squallpy.program.trigger_program import Lowered
from squallpy.program.views import Monomial


def push_tests_into_scalars(lowered: Lowered, context: PassContext) -> Lowered:
    """Replace a scalar subquery's value by the test made on it: outer rows are revisited only when the test flips."""
    results, auxiliary = lowered.views, lowered.auxiliary
    in_context = {name for aux in auxiliary for name in aux.kind.reads}
    for name in [
        n.relation.name for n in auxiliary if n.is_by_group and n.output.single and not n.output.aggregated_key
    ]:
        aux = next(aux for aux in auxiliary if aux.relation.name == name)
        views = (*results, *(aux.view for aux in auxiliary))
        tests = list(dict.fromkeys(t for v in views for term in v.terms for t in _tests(aux, term, v.keys)))
        if name in in_context or None in tests or not any(_is_mixed(aux, term) for v in views for term in v.terms):
            continue
        items = tuple((f"asked_{i}" if i else "asked", t) for i, t in enumerate(tests) if t is not None)
        fields = tuple(Field(title, BOOLEAN, test.nullable) for title, test in items)
        new = replace(aux, relation=replace(aux.relation, fields=fields), output=replace(aux.output, items=items))
        views = tuple(replace(v, terms=tuple(_rewrite(aux, new, t, context.ids) for t in v.terms)) for v in views)
        results, others = views[: len(results)], views[len(results) :]
        auxiliary = tuple(replace(new if n is aux else n, view=v) for n, v in zip(auxiliary, others, strict=True))
    return replace(lowered, views=results, auxiliary=auxiliary)


def _tests(aux: AuxiliaryRelation, term: Monomial, keys: tuple[Column, ...]) -> Iterator[Expr | None]:
    """Yield the tests that a term makes on an auxiliary relation's row, over its measures; None if it reads more."""
    for atom in _atoms(aux, term):
        mine = variables(atom)
        if mine & {*bound_by(f for f in term.body if f is not atom), *keys}:
            yield None
        named = [f.value for f in _tests_named(term, mine)]
        if len({*named}) < len(named):  # a field of the new relation has one name
            yield None
        for expr in _expressions(term):
            yield from (None if part in mine else _over_measures(aux, atom, part) for part in _parts(expr, mine))


def _is_mixed(aux: AuxiliaryRelation, term: Monomial) -> bool:
    """True if a predicate reads it together with columns of others."""
    every = ((expr, variables(atom)) for atom in _atoms(aux, term) for expr in _expressions(term))
    return any(columns(expr) & mine and not columns(expr) <= mine for expr, mine in every)


def _rewrite(aux: AuxiliaryRelation, new: AuxiliaryRelation, term: Monomial, ids: Iterator[int]) -> Monomial:
    """Rewrite a term over the new auxiliary relation."""
    for atom in _atoms(aux, term):
        term = _replace_atom(aux, new, term, atom, ids)
    return term


def _replace_atom(
    aux: AuxiliaryRelation, new: AuxiliaryRelation, term: Monomial, atom: Rel, ids: Iterator[int]
) -> Monomial:
    mine, titles = variables(atom), {test: title for title, test in new.output.items}
    named = _tests_named(term, mine)
    fields = {titles[_over_measures(aux, atom, f.value)]: f.variable for f in named}

    def ask(expr: Expr) -> Expr:
        if not columns(expr) & mine:
            return expr
        if not _is_test(expr, mine):
            return rebuild(expr, tuple(map(ask, children(expr))))
        title = titles[_over_measures(aux, atom, expr)]
        return fields.setdefault(title, Column(next(ids), title, BOOLEAN, new.relation.nullable(title)))

    def asking(factor: Factor) -> Factor:
        match factor:
            case Cmp(predicate):
                return Cmp(ask(predicate))
            case Assign(variable, value):
                return Assign(variable, ask(value))
        return factor

    body = [(f, asking(f)) for f in term.body if f not in named]
    lanes = tuple(lane and tuple(map(ask, lane)) for lane in term.lanes)
    there = Rel(new.relation, tuple(fields.items()))
    return Monomial(tuple(there if f is atom else after for f, after in body), lanes)


def _atoms(aux: AuxiliaryRelation, term: Monomial) -> list[Rel]:
    return [atom for atom in term.atoms if atom.relation.name == aux.relation.name]


def _tests_named(term: Monomial, mine: frozenset[Column]) -> list[Assign]:
    """List the tests that are assigned to a variable."""
    return [f for f in term.body if isinstance(f, Assign) and _is_test(f.value, mine)]


def _expressions(term: Monomial) -> Iterator[Expr]:
    for factor in term.body:
        if not isinstance(factor, Rel):
            yield factor.predicate if isinstance(factor, Cmp) else factor.value
    yield from (expr for lane in term.lanes for expr in lane or ())


def _parts(expr: Expr, mine: frozenset[Column]) -> Iterator[Expr]:
    """List the largest tests in an expression, and the columns that it reads outside of them."""
    if columns(expr) & mine:
        if _is_test(expr, mine) or isinstance(expr, Column):
            yield expr
        else:
            yield from (part for child in children(expr) for part in _parts(child, mine))


def _is_test(expr: Expr, mine: frozenset[Column]) -> bool:
    read = columns(expr)
    return not isinstance(expr, Column) and expr.type == BOOLEAN and bool(read) and read <= mine


def _over_measures(aux: AuxiliaryRelation, atom: Rel, expr: Expr) -> Expr:
    """Rewrite an expression over an auxiliary relation's fields in terms of what makes them."""
    made = dict(aux.output.items)
    return substitute(expr, {v.id: made[title] for title, v in atom.fields})
