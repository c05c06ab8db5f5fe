"""Separation of aggregates that select values of a group, as MIN and MAX do, from those that are sums."""

from collections.abc import Iterator
from dataclasses import replace

from squallpy.base.types import BOOLEAN
from squallpy.functions.aggregate.entries import Maintenance
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.expressions import Call, conjunction
from squallpy.logical.nodes import Aggregate, Join, Node, Project


def split_aggregates(node: Node, ids: Iterator[int]) -> Node | None:
    """Split an Aggregate into a join of Aggregates, one for each argument of MIN or MAX and one for all sums.

    Aggregate by k: SUM(a), MIN(b)   →   π(Aggregate by k: SUM(a)  ⋈_{k <=> k'}  Aggregate by k': MIN(b))
    """
    if not isinstance(node, Aggregate):
        return None
    parts = list(dict.fromkeys(_part(agg) for _, agg in node.aggs))
    if len(parts) < 2:
        return None
    plan: Node | None = None
    for part in parts:
        aggs = tuple((column, agg) for column, agg in node.aggs if _part(agg) == part)
        if plan is None:
            plan = replace(node, aggs=aggs)
            continue
        keys = tuple((replace(column, id=next(ids)), expr) for column, expr in node.keys)
        same = [
            Call("<=>", (column, key), BOOLEAN, False) for (column, _), (key, _) in zip(node.keys, keys, strict=True)
        ]
        plan = Join(plan, Aggregate(node.child, keys, aggs), conjunction(same) if same else None)
    assert plan is not None
    return Project(plan, tuple((c, c) for c in node.output))


def _part(agg: Agg) -> tuple[object, ...]:
    """Return equal parts for aggregates that one view holds."""
    return (agg.arg, agg.order, agg.maintenance is Maintenance.FOLD) if agg.extreme else ()
