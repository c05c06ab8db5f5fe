"""Rows numbered up to a bound as the first rows of each group, which are kept as such.

    σ_{n <= 3}(r with ROW_NUMBER() n OVER (PARTITION BY k ORDER BY x DESC))   →   σ_{n <= 3}(FirstRows 3 by k of r)

Other rows have no number then; to number all, those before each are counted (`window_functions/`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from squallpy.base.types import BIGINT
from squallpy.logical.aggregate_calls import OverClause, WindowFunction
from squallpy.logical.expressions import Call, Column, Expr, Literal, columns, conjuncts
from squallpy.logical.first_rows import FirstRows
from squallpy.logical.nodes import (
    Aggregate,
    ConditionalJoin,
    Filter,
    Join,
    Node,
    Project,
    WindowFunctions,
    nodes,
    with_inputs,
)
from squallpy.logical.total_order import drop_redundant_keys, total_order
from squallpy.optimizer.pass_manager import PassContext, columns_read

MOST = 1_000  # rows of a group that are looked at anew when one of them changes


Bounds = Mapping[int, int]  # the most that a column may be, by its id, in rows that matter


def take_first_rows(plan: Node, context: PassContext) -> Node:
    """Replace each ROW_NUMBER that a condition above bounds by the first rows."""
    if not any(isinstance(node, WindowFunctions) for node in nodes(plan)):
        return plan
    read, known = columns_read(plan), dict[tuple[int, frozenset[tuple[int, int]]], Node]()

    def bounded(node: Node, bounds: Bounds) -> Node:
        key = id(node), frozenset(bounds.items())
        if key not in known:
            known[key] = rewritten(node, bounds)
        return known[key]

    def rewritten(node: Node, bounds: Bounds) -> Node:
        match node:
            case WindowFunctions(child, ((column, WindowFunction("ROW_NUMBER", OverClause(_, order))),)) if (
                order and 0 < bounds.get(column.id, 0) <= MOST
            ):
                below = replace(node, child=bounded(child, {}))
                return _first_rows(below, bounds[column.id], read[id(node)], context)
            case Filter(child, predicate):
                return with_inputs(node, (bounded(child, _with(bounds, predicate)),))
            case Project(child, items):
                passed = {e.id: bounds[c.id] for c, e in items if c.id in bounds and isinstance(e, Column)}
                return with_inputs(node, (bounded(child, passed),))
            case Join(left, right, on):
                both = _with(bounds, on) if on is not None else bounds
                return with_inputs(node, (bounded(left, both), bounded(right, both)))
            case ConditionalJoin(left, right, on):  # NB: a bound from above is of rows that have a match
                return with_inputs(node, (bounded(left, bounds), bounded(right, _with(bounds, on))))
        return with_inputs(node, tuple(bounded(each, {}) for each in node.inputs)) if node.inputs else node

    return bounded(plan, {})


def _with(bounds: Bounds, predicate: Expr) -> Bounds:
    """Add the bounds of a condition that is TRUE in all rows that matter."""
    found = dict(bounds)
    for column, bound in _bounds(predicate):
        found[column] = min(bound, found.get(column, bound))
    return found


def _bounds(predicate: Expr) -> Iterator[tuple[int, int]]:
    """Yield the columns that a predicate bounds from above by a whole number."""
    for test in conjuncts(predicate):
        match test:
            case Call("<=" | "<" | "=", (Column() as column, Literal(int() as bound))):
                yield column.id, bound - (test.name == "<")
            case Call(">=" | ">" | "=", (Literal(int() as bound), Column() as column)):
                yield column.id, bound - (test.name == ">")


def _first_rows(node: WindowFunctions, count: int, read: frozenset[int], context: PassContext) -> Node:
    """Build the first rows of each group, with the columns that are read of them."""
    ((column, function),) = node.functions
    partition = tuple(dict.fromkeys(expr for expr in function.over.partition if columns(expr)))
    order = drop_redundant_keys(partition, function.over.order)
    order = total_order(node.child, partition, order, is_extended=True) or order
    shown = [c for c in node.child.output if c.id in read]
    keys = {expr: context.like(expr) for expr in dict.fromkeys((*partition, *(e for e, _, _ in order), *shown))}
    number = context.column("number", BIGINT, False)
    rows = Aggregate(node.child, tuple((c, expr) for expr, c in keys.items()), ())
    ordered = tuple((keys[expr], down, nulls_first) for expr, down, nulls_first in order if expr not in partition)
    first = FirstRows(rows, len(partition), ordered, count, number)
    return Project(first, (*((c, keys[c]) for c in shown), (column, number)))
