"""Aggregates of DISTINCT values as aggregates of a union, which has each set of distinct values once."""

from squallpy.base.types import INT
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expression_builders import replace_known
from squallpy.logical.expressions import Case, Column, Expr, Literal, columns, not_null
from squallpy.logical.nodes import Aggregate, Node, Project, Union

ROW = Literal(1, INT)


def expand_distinct_aggregates(node: Node, context: ColumnAllocator) -> Node | None:
    """Read each set of DISTINCT values once, with NULLs in the columns of the other sets and of the plain aggregates.

    k: COUNT(*), SUM(v), SUM(DISTINCT x)  of r
    →  k: COUNT(row), SUM(v), SUM(x)  of  Union(k, 1, v, NULL of r;  k, NULL, NULL, x of (DISTINCT k, x of r))
    """
    if not isinstance(node, Aggregate) or not any(agg.distinct for _, agg in node.aggs):
        return None
    keys, plain_aggs = tuple(expr for _, expr in node.keys), [agg for _, agg in node.aggs if not agg.distinct]
    plain = list(dict.fromkeys(arg for agg in plain_aggs for arg in agg.args or (ROW,)))
    kinds = list(dict.fromkeys(_values(agg) for _, agg in node.aggs if agg.distinct))
    values = [value for kind in kinds for value in kind]
    nothing: list[Expr] = [Literal(None, e.type) for e in (*plain, *values)]
    inputs = [(node.child, [*keys, *plain, *nothing[len(plain) :]])] if plain else []
    start = len(plain)
    for kind in kinds:
        once = context.copies((*keys, *kind))
        found: list[Expr] = [column for column, _ in once]
        end = start + len(kind)
        row = [*found[: len(keys)], *nothing[:start], *found[len(keys) :], *nothing[end:]]
        inputs.append((Aggregate(node.child, once, ()), row))
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


def _values(agg: Agg) -> tuple[Expr, ...]:
    """List the values that differ, and what is read of them but is a column of its own by now, as in a frame."""
    known = {value: Column(-1, "", value.type) for value in agg.distinct}
    others = (arg for arg in agg.args if any(c.id >= 0 for c in columns(replace_known(arg, known))))
    return (*agg.distinct, *dict.fromkeys(others))
