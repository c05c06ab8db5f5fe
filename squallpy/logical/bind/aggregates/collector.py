"""Aggregate calls of a query block: collected once each, and replaced by the columns of the Aggregate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.types import INT
from squallpy.functions.registry import AGGREGATES
from squallpy.logical.aggregates import Aggregates, Items
from squallpy.logical.expressions import Column, Expr, Literal
from squallpy.logical.nodes import Node, Project, Union

if TYPE_CHECKING:
    from squallpy.logical.bind.subqueries import Subqueries


@dataclass(slots=True)
class Aggregation(Aggregates):
    """The aggregates of a query block."""

    subqueries: "Subqueries"  # those that arguments and keys read
    groupings: dict[Expr, Column] = field(default_factory=dict)  # what GROUPING asks for, and its answers
    asked: list[tuple[Expr, exp.Expr]] = field(default_factory=list)  # the same, and where

    def grouping(self, key: Expr, node: exp.Expr) -> Column:
        """Return the column of GROUPING(key): 1 where rows are not grouped by it."""
        self.asked.append((key, node))
        if key not in self.groupings:
            self.groupings[key] = self.allocator.column(f"GROUPING({key})", INT, False)
        return self.groupings[key]

    def over_sets(self, plan: Node, keys: Mapping[Expr, Column], sets: Sequence[tuple[Expr, ...]]) -> Node:
        """Build the Aggregates of several sets of keys, with NULLs for those that a set lacks.

        GROUP BY ROLLUP (a)  →  Union(a, SUM(x) of (Aggregate by a: SUM(x));  NULL, SUM(x) of (Aggregate: SUM(x)))
        """
        plan, parts = self.subqueries.attach(plan), list[Node]()
        columns = (*keys.values(), *self.made, *self.groupings.values())
        for chosen in sets:
            mine = {expr: self.allocator.like(expr) for expr in chosen}
            aggs = {agg: self.allocator.column(c.name, c.type, c.nullable) for agg, c in self.aggs.items()}
            grouped = replace(self, aggs=aggs)
            grouped_plan = grouped.over(plan, tuple((column, expr) for expr, column in mine.items()))
            values = (
                *(mine.get(expr) or Literal(None, expr.type) for expr in keys),
                *grouped.made,
                *(Literal(int(expr not in chosen), INT) for expr in self.groupings),
            )
            parts.append(Project(grouped_plan, self.allocator.copies(values)))
        return Union(tuple(parts), columns)

    def over(self, plan: Node, keys: Items) -> Node:
        """Build the Aggregate with all of them, over the rows with what arguments and keys read of subqueries."""
        return Aggregates.over(self, self.subqueries.attach(plan), keys)


def is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Filter | exp.WithinGroup) or (
        isinstance(node, exp.Anonymous) and str(node.name).upper() in AGGREGATES
    )
