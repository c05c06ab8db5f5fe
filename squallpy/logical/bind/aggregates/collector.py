"""Aggregate calls of a query block: collected once each, and replaced by the columns of the Aggregate."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.records import dataclass
from squallpy.base.types import INT
from squallpy.functions.registry import AGGREGATES
from squallpy.logical.expressions import Column, Expr
from squallpy.logical.nodes import Aggregate, GroupingSets, Node, Project
from squallpy.logical.shared_aggregates import Aggregates, Items

if TYPE_CHECKING:
    from squallpy.logical.bind.subqueries import Subqueries


@dataclass(slots=True)
class Aggregation(Aggregates):
    """The aggregates of a query block."""

    subqueries: "Subqueries"  # those that arguments and keys read
    groupings: dict[Expr, Column] = field(default_factory=dict)  # what GROUPING asks for, and its answers
    asked: list[tuple[Expr, exp.Expr]] = field(default_factory=list)  # the same, and where

    def collect_grouping(self, key: Expr, node: exp.Expr) -> Column:
        """Collect GROUPING(key), which is 1 where rows are not grouped by it."""
        self.asked.append((key, node))
        if key not in self.groupings:
            self.groupings[key] = self.allocator.column(f"GROUPING({key})", INT, False)
        return self.groupings[key]

    def over_sets(self, plan: Node, keys: Mapping[Expr, Column], sets: Sequence[tuple[Expr, ...]]) -> Node:
        """Build the GroupingSets with all of them."""
        over = self.build_aggregate(plan, tuple((column, expr) for expr, column in keys.items()))
        top = over.child if isinstance(over, Project) else over
        assert isinstance(top, Aggregate)
        chosen = tuple(tuple(keys[expr] for expr in each) for each in sets)
        groupings = tuple((column, keys[expr]) for expr, column in self.groupings.items())
        grouped = GroupingSets(top.child, top.keys, chosen, top.aggs, groupings)
        shown = tuple((column, column) for column, _ in groupings)
        return Project(grouped, (*over.items, *shown)) if isinstance(over, Project) else grouped

    def build_aggregate(self, plan: Node, keys: Items) -> Node:
        """Build the Aggregate with all of them, over the rows with what arguments and keys read of subqueries."""
        return Aggregates.build_aggregate(self, self.subqueries.attach(plan), keys)


def is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Filter | exp.WithinGroup) or (
        isinstance(node, exp.Anonymous) and str(node.name).upper() in AGGREGATES
    )
