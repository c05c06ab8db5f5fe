"""Sums that might exceed their 128 bits: those of decimals that take more than a machine word."""

from squallpy.base.types import DOUBLE, Kind
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.expressions import Cast, Column, Expr, Literal, children
from squallpy.logical.nodes import Aggregate, GroupingSets, Node, Project, SetOperation, Union, WindowFunctions, nodes

NARROW = 19  # digits of a BIGINT


def is_risky(agg: Agg, wide: frozenset[int]) -> bool:
    """True if a few rows may add up to more than 38 digits."""
    arg = agg.arg
    return agg.function in ("sum", "avg") and arg is not None and arg.type.kind is Kind.DECIMAL and _is_wide(arg, wide)


def wide_columns(plan: Node) -> frozenset[int]:
    """Find the columns of a plan, by id, whose values are wide, and not just of a type that could hold such."""
    wide: dict[int, frozenset[int]] = {}
    for node in nodes(plan):
        wide[id(node)] = _wide_columns(node, [wide[id(child)] for child in node.inputs])
    return wide[id(plan)]


def _wide_columns(node: Node, below: list[frozenset[int]]) -> frozenset[int]:
    """Find the wide columns of an operator, given those of its inputs."""
    match node:
        case Project(_, items):
            return frozenset(column.id for column, expr in items if _is_wide(expr, below[0]))
        case Aggregate(_, keys, aggs) | GroupingSets(_, keys, _, aggs):
            values = (*keys, *((column, agg.arg) for column, agg in aggs if agg.arg is not None))
            return frozenset(column.id for column, expr in values if _is_wide(expr, below[0]))
        case WindowFunctions(_, functions):
            args = ((c, f.function.arg) for c, f in functions if isinstance(f.function, Agg))
            return below[0].union(c.id for c, arg in args if arg is not None and _is_wide(arg, below[0]))
        case Union(inputs, columns) | SetOperation(_, _, inputs, columns):
            rows = zip(columns, *(child.output for child in inputs), strict=True)
            return frozenset(c.id for c, *same in rows if any(s.id in ids for s, ids in zip(same, below, strict=True)))
    if not node.inputs:
        return frozenset(c.id for c in node.output if c.type.precision > NARROW)
    return frozenset[int]().union(*below)


def _is_wide(expr: Expr, wide: frozenset[int]) -> bool:
    match expr:
        case Column(id):
            return id in wide
        case Literal(value):
            return expr.type.kind is Kind.DECIMAL and value is not None and abs(value) >= 10**NARROW
        case Cast(arg) if not arg.type.is_exact:
            return expr.type.precision > NARROW
    return expr.type != DOUBLE and any(_is_wide(child, wide) for child in children(expr))
