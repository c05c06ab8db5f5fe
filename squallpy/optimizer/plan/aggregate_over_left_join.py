"""An aggregate over an outer join that ignores the rows padded with NULLs.

    Aggregate by l.k: COUNT(r.x) of L ⟕ R   →   Aggregate by l.k: COUNT(x) of (L ⋈ R) ∪ (L, with NULL for x)

A further row of NULLs changes no aggregate, and its group exists anyway: it does not matter which rows of L have a
match (TPC-H Q13).
"""

from collections.abc import Iterator

from squallpy.logical.containment import strip_projections
from squallpy.logical.expressions import Column, Expr, Literal, column_of, columns, substitute
from squallpy.logical.nodes import Aggregate, Join, LeftJoin, Node, Project, Union, nodes
from squallpy.logical.null_folding import fold_nulls
from squallpy.optimizer.plan.split_aggregates import split_aggregates


def aggregate_over_left_join(node: Node, ids: Iterator[int]) -> Node | None:
    """Replace an outer join below an aggregate that ignores its NULLs by a union of matches and of left rows."""
    if not isinstance(node, Aggregate):
        return None
    if split := split_aggregates(node, ids):  # each aggregate is tried in turn
        each = (part for part in nodes(split) if isinstance(part, Aggregate) and part.child is node.child)
        return split if any(aggregate_over_left_join(part, ids) for part in each) else None
    below, shown, filters = strip_projections(node.child)
    if filters or not isinstance(below, LeftJoin) or not node.aggs or any(agg.arg is None for _, agg in node.aggs):
        return None
    left, right = below.left, below.right
    nothing: dict[int, Expr] = {c.id: Literal(None, c.type) for c in right.output}
    keys = tuple(substitute(expr, shown) for _, expr in node.keys)
    args = tuple(substitute(arg, shown) for _, agg in node.aggs for arg in agg.args)
    lost = tuple(fold_nulls(substitute(arg, nothing)) for arg in args)
    ours = {c.id for c in left.output}
    if any(c.id not in ours for key in keys for c in columns(key)) or any(x != Literal(None, x.type) for x in lost):
        return None

    def columns_of(exprs: tuple[Expr, ...]) -> tuple[Column, ...]:
        return tuple(column_of(e, next(ids)) for e in exprs)

    own: dict[int, Expr] = {c.id: c for c in right.output}  # some may be NOT NULL now
    found = tuple(substitute(arg, own) for arg in args)
    parts: list[tuple[Node, tuple[Expr, ...]]] = [(Join(left, right, below.on), (*keys, *found))]
    parts.append((_rows(left, {c.id for key in keys for c in columns(key)}), (*keys, *lost)))
    children = tuple(Project(plan, tuple(zip(columns_of(exprs), exprs, strict=True))) for plan, exprs in parts)
    every = Union(children, columns_of((*keys, *args)))
    given = iter(every.columns)
    return Aggregate(
        every,
        tuple((column, next(given)) for column, _ in node.keys),
        tuple((column, agg.with_args(given)) for column, agg in node.aggs),
    )


def _rows(plan: Node, read: set[int]) -> Node:
    """Drop outer joins whose columns are not read: they remove no row."""
    while isinstance(plan, LeftJoin) and read <= {c.id for c in plan.left.output}:
        plan = plan.left
    return plan
