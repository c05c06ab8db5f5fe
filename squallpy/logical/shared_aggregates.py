"""Aggregates over the rows of a plan: equal ones once, each with its column."""

from collections.abc import Callable
from dataclasses import field, replace
from fractions import Fraction

from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, DOUBLE, VARCHAR, Kind
from squallpy.functions.registry import AGGREGATE_OPERATIONS
from squallpy.logical.aggregate_calls import Agg, SortKeys
from squallpy.logical.coercion import coerce
from squallpy.logical.column_allocator import ColumnAllocator, short_name
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Column, Expr
from squallpy.logical.nodes import Aggregate, Node, Project
from squallpy.logical.sum_overflow import is_risky, wide_columns

Items = tuple[tuple[Column, Expr], ...]


@dataclass(slots=True)
class Aggregates:
    """The aggregates met so far, each with its column.

    Args:
        late: They are of what other aggregates make, of which it is told later whether it may be NULL.
    """

    allocator: ColumnAllocator
    aggs: dict[Agg, Column] = field(default_factory=dict, kw_only=True)
    is_late: bool = field(default=False, kw_only=True)

    def column(
        self, function: str, arg: Expr | None, distinct: tuple[Expr, ...] = (), fraction: Fraction | None = None
    ) -> Column:
        """Collect an aggregate of `arg`, over rows or over the `distinct` values that it reads.

        COUNT(x) of an x that is never NULL is COUNT(*); MIN(DISTINCT x) is MIN(x).
        """
        if arg is not None and arg.type.kind is Kind.NULL:
            arg = coerce(arg, BIGINT)
            distinct = distinct and (arg,)
        if function in ("min", "max"):
            distinct = ()
        if function == "count" and arg is not None and not arg.nullable and not distinct and not self.is_late:
            arg = None
        return self.of(Agg(function, arg, fraction, distinct=distinct))

    def collect_texts(self, arg: Expr, distinct: tuple[Expr, ...], separator: str, order: SortKeys) -> Column:
        """Collect the texts of all values of `arg`."""
        if arg.type.kind is Kind.NULL:
            arg, distinct = coerce(arg, VARCHAR), distinct and (coerce(arg, VARCHAR),)
        return self.of(Agg("listagg", arg, None, separator, order, distinct))

    def arg_extreme(self, function: str, value: Expr, by: Expr | None = None, descending: bool = False) -> Column:
        """Collect "max_by" or "min_by", the value that a row has in which another is extreme, or the "mode".

        Args:
            by: What is extreme, or the order that decides which of several modes it is.
        """
        value, *keys = (coerce(e, BIGINT) if e.type.kind is Kind.NULL else e for e in (value, by) if e is not None)
        return self.of(Agg(function, value, order=tuple((key, descending, False) for key in keys)))

    def first_value(self, value: Expr, order: SortKeys) -> Column:
        """Collect "first_by", the value of the first row in an order."""
        value = coerce(value, BIGINT) if value.type.kind is Kind.NULL else value
        return self.of(Agg("first_by", value, order=order))

    def of(self, agg: Agg) -> Column:
        """Return the column of an aggregate; equal ones share one."""
        if agg not in self.aggs:
            self.aggs[agg] = self.add_aggregate(agg)
        return self.aggs[agg]

    def add_aggregate(self, agg: Agg) -> Column:
        """Make the column of an aggregate."""
        type = AGGREGATE_OPERATIONS[agg.function].rule(agg.function, None if agg.arg is None else agg.arg.type)
        return self.allocator.column(short_name(str(agg)), type, nullable=agg.function != "count")

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that they add."""
        return tuple(self.aggs.values())

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """Expressions that they read."""
        return tuple(arg for agg in self.aggs for arg in agg.args)

    def in_terms_of(self, rewrite: Callable[[Expr], Expr]) -> "Aggregates":
        """Rewrite the arguments of all aggregates."""
        aggs: dict[Agg, Column] = {}
        for agg, column in sorted(self.aggs.items(), key=lambda each: each[0].arg is not None):
            message = agg.with_args(map(rewrite, agg.args))
            rows = Agg("count", None)
            is_of_rows = agg.function == "count" and not agg.distinct and message.arg and not message.arg.nullable
            if is_of_rows and rows not in aggs:
                message = rows
            aggs[message] = column
        return replace(self, aggs=aggs)

    def build_aggregate(self, plan: Node, keys: Items) -> Node:
        """Build the Aggregate with all of them."""
        wide = wide_columns(plan)
        if any(is_risky(agg, wide) for agg in self.aggs):
            return self._check_overflow(plan, keys, wide)
        return Aggregate(plan, keys, self._items)

    def _check_overflow(self, plan: Node, keys: Items, wide: frozenset[int]) -> Node:
        """Pair sums of wide decimals with sums of doubles, which tell whether the former have overflowed.

        SUM(x)  →  CHECKED(SUM(x), SUM(CAST(x AS DOUBLE)))        AVG(x)  →  AVG(CAST(x AS DOUBLE))
        """
        raw = Aggregates(self.allocator, is_late=self.is_late)
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
