"""Aggregate calls of a query block: collected once each, and replaced by the columns of the Aggregate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.types import BIGINT, DOUBLE, INT, VARCHAR, Kind
from squallpy.functions.registry import AGGREGATE_OPERATIONS, AGGREGATES
from squallpy.logical.bind.aggregates.overflow import is_risky, wide_columns
from squallpy.logical.bind.context import Context
from squallpy.logical.coercion import coerce
from squallpy.logical.column_allocator import short_name
from squallpy.logical.expressions import Column, Expr, Literal
from squallpy.logical.functions import call
from squallpy.logical.nodes import Agg, Aggregate, Node, Project, SortKeys, Union

if TYPE_CHECKING:
    from squallpy.logical.bind.subqueries import Subqueries

Items = tuple[tuple[Column, Expr], ...]


@dataclass(slots=True)
class Aggregation:
    """The aggregates met so far, each with its column."""

    ctx: Context
    subqueries: "Subqueries"  # those that arguments and keys read
    aggs: dict[Agg, Column] = field(default_factory=dict)
    groupings: dict[Expr, Column] = field(default_factory=dict)  # what GROUPING asks for, and its answers
    asked: list[tuple[Expr, exp.Expr]] = field(default_factory=list)  # the same, and where
    late: bool = False  # are they of what other aggregates make, of which it is told later whether it may be NULL?

    def column(
        self, function: str, arg: Expr | None, distinct: tuple[Expr, ...] = (), share: Fraction | None = None
    ) -> Column:
        """Collect an aggregate of `arg`, over rows or over the `distinct` values that it reads.

        COUNT(x) of an x that is never NULL is COUNT(*); MIN(DISTINCT x) is MIN(x).
        """
        if arg is not None and arg.type.kind is Kind.NULL:
            arg = coerce(arg, BIGINT)
            distinct = distinct and (arg,)
        if function in ("min", "max"):
            distinct = ()
        if function == "count" and arg is not None and not arg.nullable and not distinct and not self.late:
            arg = None
        return self._of(Agg(function, arg, share, distinct=distinct))

    def listed(self, arg: Expr, distinct: tuple[Expr, ...], separator: str, order: SortKeys) -> Column:
        """Collect the texts of all values of `arg`."""
        if arg.type.kind is Kind.NULL:
            arg, distinct = coerce(arg, VARCHAR), distinct and (coerce(arg, VARCHAR),)
        return self._of(Agg("listagg", arg, None, separator, order, distinct))

    def _of(self, agg: Agg) -> Column:
        """Make the column of an aggregate; equal ones share one."""
        function, arg = agg.function, agg.arg
        if agg not in self.aggs:
            type = AGGREGATE_OPERATIONS[function].rule(function, None if arg is None else arg.type)
            self.aggs[agg] = self.ctx.column(short_name(str(agg)), type, nullable=function != "count")
        return self.aggs[agg]

    def arg_extreme(self, function: str, value: Expr, by: Expr | None = None) -> Column:
        """Collect "max_by" or "min_by", the value that a row has in which another is extreme, or the "mode"."""
        value, *keys = (coerce(e, BIGINT) if e.type.kind is Kind.NULL else e for e in (value, by) if e is not None)
        return self._of(Agg(function, value, order=tuple((key, False, False) for key in keys)))

    @property
    def made(self) -> tuple[Column, ...]:
        """The columns that they add."""
        return tuple(self.aggs.values())

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """Expressions that they read."""
        return tuple(arg for agg in self.aggs for arg in agg.args)

    def in_terms_of(self, rewrite: Callable[[Expr], Expr]) -> "Aggregation":
        """Rewrite the arguments of all aggregates."""
        aggs: dict[Agg, Column] = {}
        for agg, column in sorted(self.aggs.items(), key=lambda each: each[0].arg is not None):
            told = agg.with_args(map(rewrite, agg.args))
            rows = Agg("count", None)
            is_of_rows = agg.function == "count" and not agg.distinct and told.arg and not told.arg.nullable
            if is_of_rows and rows not in aggs:
                told = rows
            aggs[told] = column
        return replace(self, aggs=aggs)

    def grouping(self, key: Expr, node: exp.Expr) -> Column:
        """The column of GROUPING(key): 1 where rows are not grouped by it."""
        self.asked.append((key, node))
        if key not in self.groupings:
            self.groupings[key] = self.ctx.column(f"GROUPING({key})", INT, False)
        return self.groupings[key]

    def over_sets(self, plan: Node, keys: Mapping[Expr, Column], sets: Sequence[tuple[Expr, ...]]) -> Node:
        """The Aggregates of several sets of keys, under NULLs for those that a set lacks.

        GROUP BY ROLLUP (a)  →  Union(a, SUM(x) of (Aggregate by a: SUM(x));  NULL, SUM(x) of (Aggregate: SUM(x)))
        """
        plan, parts = self.subqueries.attach(plan), list[Node]()
        columns = (*keys.values(), *self.made, *self.groupings.values())
        for chosen in sets:
            mine = {expr: self.ctx.like(expr) for expr in chosen}
            aggs = {agg: self.ctx.column(c.name, c.type, c.nullable) for agg, c in self.aggs.items()}
            grouped = replace(self, aggs=aggs)
            grouped_plan = grouped.over(plan, tuple((column, expr) for expr, column in mine.items()))
            values = (
                *(mine.get(expr) or Literal(None, expr.type) for expr in keys),
                *grouped.made,
                *(Literal(int(expr not in chosen), INT) for expr in self.groupings),
            )
            parts.append(Project(grouped_plan, self.ctx.copies(values)))
        return Union(tuple(parts), columns)

    def over(self, plan: Node, keys: Items) -> Node:
        """The Aggregate with all of them."""
        plan = self.subqueries.attach(plan)
        wide = wide_columns(plan)
        if any(is_risky(agg, wide) for agg in self.aggs):
            return self._checked(plan, keys, wide)
        return Aggregate(plan, keys, self._items)

    def _checked(self, plan: Node, keys: Items, wide: frozenset[int]) -> Node:
        """Sums of wide decimals beside the same of doubles, which say whether they have left what they are kept in.

        SUM(x)  →  CHECKED(SUM(x), SUM(CAST(x AS DOUBLE)))        AVG(x)  →  AVG(CAST(x AS DOUBLE))
        """
        raw = replace(self, aggs={})
        checked: list[tuple[Column, Expr]] = [(column, column) for column, _ in keys]
        for agg, column in self.aggs.items():
            if agg.arg is None or not is_risky(agg, wide):
                raw.aggs[agg] = column
                checked.append((column, column))
                continue
            near = raw.column(agg.function, coerce(agg.arg, DOUBLE), agg.distinct)
            total = raw.column("sum", agg.arg, agg.distinct) if agg.function == "sum" else None
            checked.append((column, call("checked", total, near) if total else near))
        return Project(Aggregate(plan, keys, raw._items), tuple(checked))

    @property
    def _items(self) -> tuple[tuple[Column, Agg], ...]:
        return tuple((column, agg) for agg, column in self.aggs.items())


def is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, exp.Filter | exp.WithinGroup) or (
        isinstance(node, exp.Anonymous) and str(node.name).upper() in AGGREGATES
    )
