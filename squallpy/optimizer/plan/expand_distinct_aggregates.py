"""Aggregates of DISTINCT values as aggregates of a union, which has each set of distinct values once."""

from collections.abc import Iterable, Sequence

from squallpy.base.types import BIGINT, BOOLEAN, INT
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expression_builders import replace_known
from squallpy.logical.expressions import Call, Case, Column, Expr, Literal, columns, disjunction, not_null
from squallpy.logical.nodes import Aggregate, Filter, Node, Project, Union

ROW = Literal(1, INT)
Kind = tuple[Expr, ...]
"""Values of which each combination counts once."""


def expand_distinct_aggregates(node: Node, context: ColumnAllocator) -> Node | None:
    """Read each set of DISTINCT values once, with NULLs in the columns of the other sets and of the plain aggregates.

    k: COUNT(*), SUM(v), SUM(DISTINCT x)  of r
    →  k: COUNT(row), SUM(v), SUM(x)  of  Union(k, 1, v, NULL of r;  k, NULL, NULL, x of (DISTINCT k, x of r))

    Values of one expression, each where a condition of its own is TRUE, are read together, with how often that is.

    k: COUNT(DISTINCT x), COUNT(DISTINCT x) FILTER (WHERE c)  of r
    →  k: COUNT(x), COUNT(y)  of  (k, x, CASE WHEN n > 0 THEN x END AS y  of  (k, x: COUNT(c) AS n  of r))
    """
    if not isinstance(node, Aggregate) or not any(agg.distinct for _, agg in node.aggs):
        return None
    keys, plain_aggs = tuple(expr for _, expr in node.keys), [agg for _, agg in node.aggs if not agg.distinct]
    plain = list(dict.fromkeys(arg for agg in plain_aggs for arg in agg.args or (ROW,)))
    groups = _alike(_values(agg) for _, agg in node.aggs if agg.distinct)
    kinds = [kind for group in groups for kind in group]
    values = [value for kind in kinds for value in kind]
    nothing: list[Expr] = [Literal(None, e.type) for e in (*plain, *values)]
    inputs = [(node.child, [*keys, *plain, *nothing[len(plain) :]])] if plain else []
    start = len(plain)
    for group in groups:
        once, found = _read_once(node.child, keys, group, context)
        end = start + len(found) - len(keys)
        row = [*found[: len(keys)], *nothing[:start], *found[len(keys) :], *nothing[end:]]
        inputs.append((once, row))
        start = end
    united = tuple(context.like(*same) for same in zip(*(row for _, row in inputs), strict=True))
    names, first, rest = united[: len(keys)], united[len(keys) :][: len(plain)], iter(united[len(keys) + len(plain) :])
    of_rows = dict(zip(plain, first, strict=True))
    of_kinds = {kind: {value: next(rest) for value in kind} for kind in kinds}

    def read(arg: Expr, agg: Agg) -> Expr:
        if not agg.distinct:
            return of_rows[arg]
        known = of_kinds[_values(agg)]
        value = replace_known(arg, known)
        if columns(value):
            return value
        # NB: a constant is also in the rows of the other sets
        return Case(((not_null(known[agg.distinct[0]]), value),), Literal(None, value.type), value.type)

    def expanded(agg: Agg) -> Agg:
        arg = ROW if agg.arg is None else agg.arg
        order = tuple((read(key, agg), down, nulls_first) for key, down, nulls_first in agg.order)
        return Agg(agg.function, read(arg, agg), agg.fraction, agg.separator, order)

    children = tuple(Project(child, context.copies(row)) for child, row in inputs)
    aggs = tuple((column, expanded(agg)) for column, agg in node.aggs)
    return Aggregate(Union(children, united), tuple(zip((c for c, _ in node.keys), names, strict=True)), aggs)


def _alike(kinds: Iterable[Kind]) -> list[list[Kind]]:
    """Put kinds together that are of one expression, under conditions or not."""
    groups = dict[Kind, list[Kind]]()
    for kind in dict.fromkeys(kinds):
        groups.setdefault((_under_condition(kind)[0],) if len(kind) == 1 else kind, []).append(kind)
    return list(groups.values())


def _under_condition(kind: Kind) -> tuple[Expr, Expr | None]:
    """Return what a value is, and the condition under which it is not NULL: CASE WHEN c THEN x ELSE NULL END → x, c"""
    (value,) = kind
    match value:
        case Case(((condition, chosen),), Literal(None)):
            return chosen, condition
    return value, None


def _read_once(child: Node, keys: Kind, kinds: Sequence[Kind], context: ColumnAllocator) -> tuple[Node, list[Expr]]:
    """Read each combination of kinds that are alike once; return what does, and the keys and values there."""
    if len(kinds) == 1:
        once = context.copies((*keys, *kinds[0]))
        return Aggregate(child, once, ()), [column for column, _ in once]
    value, conditions = _under_condition(kinds[0])[0], [_under_condition(kind)[1] for kind in kinds]
    known = [condition for condition in conditions if condition is not None]
    once = context.copies((*keys, value))
    often = {condition: context.column("times", BIGINT, False) for condition in known}
    counts = tuple((column, _count(condition)) for condition, column in often.items())
    rows = child if len(known) < len(kinds) else Filter(child, disjunction(known))
    *group, same = (column for column, _ in once)

    def under(condition: Expr | None) -> Expr:
        if condition is None:
            return same
        is_there = Call(">", (often[condition], Literal(0, BIGINT)), BOOLEAN, False)
        return Case(((is_there, same),), Literal(None, same.type), same.type)

    return Aggregate(rows, once, counts), [*group, *map(under, conditions)]


def _count(condition: Expr) -> Agg:
    """Count the rows for which a condition is TRUE."""
    return Agg("count", Case(((condition, ROW),), Literal(None, INT), INT))


def _values(agg: Agg) -> Kind:
    """List the values that differ, and what is read of them but is a column of its own by now, as in a frame."""
    known = {value: Column(-1, "", value.type) for value in agg.distinct}
    others = (arg for arg in agg.args if any(c.id >= 0 for c in columns(replace_known(arg, known))))
    return (*agg.distinct, *dict.fromkeys(others))
