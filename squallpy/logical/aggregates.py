"""Aggregates over the rows of a plan: each once, with the column that names it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from squallpy.base.types import BIGINT, DOUBLE, INT, VARCHAR, Kind
from squallpy.functions.registry import AGGREGATE_OPERATIONS
from squallpy.logical.calls import Agg, SortKeys
from squallpy.logical.coercion import coerce
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expressions import Case, Column, Expr, Literal, columns, not_null, replace_known
from squallpy.logical.functions import call
from squallpy.logical.nodes import Aggregate, Node, Project, Union
from squallpy.logical.overflow import is_risky, wide_columns

Items = tuple[tuple[Column, Expr], ...]
Values = tuple[Expr, ...]  # what DISTINCT compares


@dataclass(slots=True)
class Aggregates:
    """The aggregates met so far, and of the DISTINCT values of what, each with its column."""

    allocator: ColumnAllocator
    aggs: dict[tuple[Agg, Values | None], Column] = field(default_factory=dict, kw_only=True)
    late: bool = field(default=False, kw_only=True)  # is it told later whether arguments may be NULL?

    def column(
        self, function: str, arg: Expr | None, distinct: Values | None = None, share: Fraction | None = None
    ) -> Column:
        """Return the column of an aggregate of `arg`, over rows or over the `distinct` values that it reads.

        COUNT(x) of an x that is never NULL is COUNT(*); MIN(DISTINCT x) is MIN(x).
        """
        if arg is not None and arg.type.kind is Kind.NULL:
            arg = coerce(arg, BIGINT)
            distinct = distinct and (arg,)
        if function in ("min", "max"):
            distinct = None
        if function == "count" and arg is not None and not arg.nullable and distinct is None and not self.late:
            arg = None
        return self.of(Agg(function, arg, share), distinct)

    def listed(self, arg: Expr, distinct: Values | None, separator: str, order: SortKeys) -> Column:
        """Return the column of the texts of all values of `arg`."""
        if arg.type.kind is Kind.NULL:
            arg, distinct = coerce(arg, VARCHAR), distinct and (coerce(arg, VARCHAR),)
        return self.of(Agg("listagg", arg, None, separator, order), distinct)

    def of(self, agg: Agg, distinct: Values | None) -> Column:
        """Return the column of an aggregate; equal ones share one."""
        if (agg, distinct) not in self.aggs:
            self.aggs[agg, distinct] = self.new(agg, distinct)
        return self.aggs[agg, distinct]

    def new(self, agg: Agg, distinct: Values | None) -> Column:
        """Make the column of an aggregate."""
        function, arg = agg.function, agg.arg
        name = str(agg) if distinct is None else f"{function.upper()}(DISTINCT {', '.join(map(str, distinct))})"
        type = AGGREGATE_OPERATIONS[function].rule(function, None if arg is None else arg.type)
        return self.allocator.column(name, type, nullable=function != "count")

    def arg_extreme(self, function: str, value: Expr, by: Expr | None = None) -> Column:
        """Collect "max_by" or "min_by", the value that a row has in which another is extreme, or the "mode"."""
        value, *keys = (coerce(e, BIGINT) if e.type.kind is Kind.NULL else e for e in (value, by) if e is not None)
        return self.of(Agg(function, value, order=tuple((key, False, False) for key in keys)), None)

    @property
    def made(self) -> tuple[Column, ...]:
        """The columns that they add."""
        return tuple(self.aggs.values())

    @property
    def arguments(self) -> tuple[Expr, ...]:
        """All that they read."""
        return tuple(e for agg, distinct in self.aggs for e in (*agg.args, *(distinct or ())))

    def in_terms_of(self, rewrite: Callable[[Expr], Expr]) -> "Aggregates":
        """Rewrite what the aggregates are of."""
        aggs: dict[tuple[Agg, Values | None], Column] = {}
        for (agg, distinct), column in sorted(self.aggs.items(), key=lambda each: each[0][0].arg is not None):
            told = agg.with_args(map(rewrite, agg.args))
            rows = Agg("count", None)
            is_of_rows = agg.function == "count" and distinct is None and told.arg and not told.arg.nullable
            if is_of_rows and (rows, None) not in aggs:
                told = rows
            aggs[told, distinct and tuple(map(rewrite, distinct))] = column
        return replace(self, aggs=aggs)

    def over(self, plan: Node, keys: Items) -> Node:
        """Build the Aggregate with all of them."""
        wide = wide_columns(plan)
        is_one_risky = any(is_risky(agg, wide) for agg, _ in self.aggs)
        return self._checked(plan, keys, wide) if is_one_risky else self._grouped(plan, keys)

    def _checked(self, plan: Node, keys: Items, wide: frozenset[int]) -> Node:
        """Pair sums of wide decimals with sums of doubles, which tell whether the former have overflowed.

        SUM(x)  →  CHECKED(SUM(x), SUM(CAST(x AS DOUBLE)))        AVG(x)  →  AVG(CAST(x AS DOUBLE))
        """
        raw = replace(self, aggs={})
        checked: list[tuple[Column, Expr]] = [(column, column) for column, _ in keys]
        for (agg, distinct), column in self.aggs.items():
            if agg.arg is None or not is_risky(agg, wide):
                raw.aggs[agg, distinct] = column
                checked.append((column, column))
                continue
            near = raw.column(agg.function, coerce(agg.arg, DOUBLE), distinct)
            total = raw.column("sum", agg.arg, distinct) if agg.function == "sum" else None
            checked.append((column, call("checked", total, near) if total else near))
        return Project(raw._grouped(plan, keys), tuple(checked))

    def _grouped(self, plan: Node, keys: Items) -> Node:
        aggs = tuple((column, agg) for (agg, _), column in self.aggs.items())
        if all(distinct is None for _, distinct in self.aggs):
            return Aggregate(plan, keys, aggs)
        return self._apart(plan, keys)

    def _apart(self, plan: Node, keys: Items) -> Node:
        """Unite the rows with the DISTINCT values that aggregates are of, with NULLs in the columns of the others.

        k: COUNT(*), SUM(v), SUM(DISTINCT x)  of r
        →  k: COUNT(row), SUM(v), SUM(x)  of  Union(k, 1, v, NULL of r;  k, NULL, NULL, x of (DISTINCT k, x of r))
        """
        row = Literal(1, INT)
        plain = list(
            dict.fromkeys(arg for agg, distinct in self.aggs if distinct is None for arg in agg.args or (row,))
        )
        values = list(dict.fromkeys(distinct for _, distinct in self.aggs if distinct is not None))
        of_all = [x for each in values for x in each]
        parts = [[*(e for _, e in keys), *plain, *(Literal(None, x.type) for x in of_all)]] if plain else []
        inputs = [plan] if plain else []
        start = len(plain)
        for each in values:
            once = self.allocator.copies((*(e for _, e in keys), *each))
            inputs.append(Aggregate(plan, once, ()))
            found = [column for column, _ in once]
            nulls: list[Expr] = [Literal(None, e.type) for e in (*plain, *of_all)]
            nulls[start : start + len(each)] = found[len(keys) :]
            start += len(each)
            parts.append([*found[: len(keys)], *nulls])
        united = tuple(self.allocator.like(*same) for same in zip(*parts, strict=True))
        projects = tuple(Project(input, self.allocator.copies(part)) for input, part in zip(inputs, parts, strict=True))
        names, first, last = united[: len(keys)], united[len(keys) :][: len(plain)], united[len(keys) + len(plain) :]
        rows, rest = dict(zip(plain, first, strict=True)), iter(last)
        taken = {each: {x: next(rest) for x in each} for each in values}

        def given(arg: Expr, distinct: Values | None) -> Expr:
            if distinct is None:
                return rows[arg]
            known = taken[distinct]
            value = replace_known(arg, known)
            if columns(value):
                return value
            # a constant, which is as well where the values of others are
            return Case(((not_null(known[distinct[0]]), value),), Literal(None, value.type), value.type)

        of_rows = (
            (agg if agg.arg else replace(agg, arg=row), distinct, column)
            for (agg, distinct), column in self.aggs.items()
        )
        aggs = tuple(
            (column, agg.with_args(given(arg, distinct) for arg in agg.args)) for agg, distinct, column in of_rows
        )
        regrouped = tuple((column, name) for (column, _), name in zip(keys, names, strict=True))
        return Aggregate(Union(projects, united), regrouped, aggs)
